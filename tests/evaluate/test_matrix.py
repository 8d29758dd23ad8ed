"""Engines side by side: the same cases, honest marks, and the published counts."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from loop.core.errors import DataError, EngineError, NoEffectError
from loop.core.records import Status, ValueCode
from loop.evaluate.matrix import runs as runs_module
from loop.evaluate.matrix.matrix import _differ, _take, has_enough
from loop.evaluate.matrix.records import EngineRank, Paired
from loop.evaluate.matrix.runs import (
    EngineRun,
    MatrixRequest,
    ask_requests,
    check_before,
    read_matrix,
)
from loop.evaluate.protocol import Protocol
from loop.evaluate.results import Exclusions
from loop.run.asking import EngineOptions
from loop.run.task import Task
from loop.stats.confusion import Confusion
from loop.stats.paired import mcnemar_exact
from tests.evaluate.matrix_scenes import answering, matrix_of, run_of
from tests.evaluate.scenes import TAXONOMY

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "ran_score_tables.json").read_text("utf-8")
)
BEST_OR_TIED = {"table2": (6, 8, 0, 7, 8), "table3": (13, 8, 0, 7, 4)}
MEANS = {
    "table2": (0.9692, 0.9765, 0.7830, 0.9583, 0.9638),
    "table3": (0.9695, 0.957, 0.5502, 0.9426, 0.9473),
}


def published(table):
    """Return the matrix of Table 2 or 3: made-up cases with the printed counts."""
    rows = GOLDEN[table]
    assert list(rows) == [TAXONOMY.find(label).name for label in TAXONOMY.ids]
    models = list(next(iter(rows.values())))
    cases = next(iter(rows.values()))[models[0]]["n"]
    return matrix_of(
        *(
            run_of([row[model]["k"] for row in rows.values()], cases, engine=model)
            for model in models
        )
    )


def standings(matrix, label="edema"):
    """Return the standing of every engine on one label."""
    row = next(row for row in matrix.rows if row.label == label)
    return [cell and cell.standing.value for cell in row.cells]


def first_cells(*correct, **options):
    """Return the cells of the first label for runs with so many right answers."""
    runs = [
        run_of([right], engine=f"e{number}", **options)
        for number, right in enumerate(correct)
    ]
    return matrix_of(*runs).rows[0].cells


@pytest.mark.parametrize("table", ["table2", "table3"])
def test_the_published_tables_give_their_counts_at_the_threshold(table):
    """How many of 21 labels reach 0.95: five models, two tables."""
    matrix = published(table)
    found = {c.engine: matrix.at_threshold(c) for c in matrix.columns}
    assert found == GOLDEN["counts_ge_0.95"][table]


@pytest.mark.parametrize("table", ["table2", "table3"])
def test_the_published_tables_give_who_is_best_and_the_exact_intervals(table):
    """Best or tied labels, means, and each interval with the table's own cases."""
    matrix = published(table)
    best = tuple(matrix.count(column, EngineRank.BEST) for column in matrix.columns)
    assert best == BEST_OR_TIED[table]
    for column, mean in zip(matrix.columns, MEANS[table], strict=True):
        assert column.evaluation.views[0].accuracy == pytest.approx(mean, abs=2e-4)
        for row, cell in zip(GOLDEN[table].values(), matrix.cells(column), strict=True):
            printed = row[column.engine]
            assert cell.result.confusion.correct == printed["k"]
            assert list(cell.result.accuracy) == pytest.approx(
                printed["ci_correct"], abs=5.1e-7
            )


def test_ties_are_all_the_best():
    """Two engines with the same share are both marked, and neither is tested."""
    cells = first_cells(290, 290, 289)
    assert [cell.standing for cell in cells] == ["best", "best", "level"]
    assert cells[0].paired is None and cells[1].paired is None


def test_a_mark_is_no_claim_of_significance():
    """5 discordant cases cannot be significant at 0.05, 6 can: 2 x 0.5^6."""
    level, worse = first_cells(300, 295)[1], first_cells(300, 294)[1]
    assert (level.standing, level.paired.lost) == (EngineRank.LEVEL, 5)
    assert (worse.standing, worse.paired.p) == (EngineRank.WORSE, 0.03125)


def test_the_tests_of_a_label_are_corrected_for_each_other():
    """Two others with p = 0.03125 each: Holm makes both 0.0625."""
    cells = first_cells(300, 294, 294)
    assert [cell.paired.p_holm for cell in cells[1:]] == [0.0625, 0.0625]
    assert {cell.standing for cell in cells[1:]} == {EngineRank.LEVEL}


def test_with_several_best_the_nearest_one_counts():
    """Equal shares, other errors: worse than one of two is not yet worse."""
    first = run_of([292], engine="a")
    wrong_elsewhere = {row: 1 - int(row < 30) for row in range(8)}
    right = {row: 0 for row in range(292, 300)}
    second = answering(run_of([292], engine="b"), TAXONOMY.ids[0], {
        **wrong_elsewhere, **right
    })  # fmt: skip
    third = run_of([284], engine="c")
    cells = matrix_of(first, second, third).rows[0].cells
    assert [cell.standing for cell in cells[:2]] == ["best", "best"]
    # Against a: 8 lost, none gained. Against b: 16 lost, 8 gained.
    assert (cells[2].paired.lost, cells[2].paired.gained) == (16, 8)
    assert cells[2].paired.p == mcnemar_exact(16, 8)
    assert cells[2].standing is EngineRank.LEVEL


def test_a_label_with_too_few_positives_has_no_best():
    """9 positives of at least 10: the highest number is not a result."""
    cells = first_cells(300, 250, positives=9)
    assert {cell.standing for cell in cells} == {EngineRank.UNRANKED}
    assert not any(cell.enough for cell in cells)


@pytest.mark.parametrize("draws", [1, 2])
@pytest.mark.parametrize(
    ("counts", "unanswered", "hedged", "enough"),
    [
        ((40, 0, 0, 60), 0, 0, True),
        ((39, 0, 0, 61), 0, 0, False),
        ((40, 0, 0, 59), 0, 0, False),
        ((50, 0, 0, 50), 0, 0, True),
        ((51, 0, 0, 49), 0, 0, False),
        ((45, 0, 0, 55), 25, 0, True),
        ((45, 0, 0, 55), 26, 0, False),
        ((45, 0, 0, 55), 20, 50, True),
    ],
)
def test_evidence_is_enough_exactly_at_the_least(
    counts, unanswered, hedged, enough, draws
):
    """Cases, positives, negatives of each draw; 25 of 125 answers are 20 %."""
    rules = Protocol(
        min_cases=100, min_positives=40, min_negatives=50, max_unanswered=0.2
    )
    result = first_cells(290, 289)[0].result
    result = replace(
        result,
        confusion=Confusion(*(draws * count for count in counts)),
        excluded=Exclusions(
            unparsed=draws * unanswered, uncertain_predicted=draws * hedged
        ),
        draws=draws,
    )
    assert has_enough(result, rules) is enough


def test_an_engine_that_leaves_cases_unanswered_is_not_ranked():
    """Perfect on what it answers, silent on 4 of 300: nothing to boast of."""
    silent = dict.fromkeys(range(100, 104), ValueCode.UNPARSED)
    quiet = answering(run_of([300], engine="quiet"), "edema", silent)
    low, high = (run_of([290] * 21, engine=name) for name in ("low", "high"))
    low = answering(low, "edema", {50: 1})
    matrix = matrix_of(quiet, low, high)
    assert standings(matrix) == ["unranked", "level", "best"]


def test_one_engine_alone_is_best_of_nothing():
    """A mark needs someone to be better than."""
    assert first_cells(300)[0].standing is EngineRank.UNRANKED


def test_a_best_that_rests_on_uncertain_answers_is_said_to():
    """An engine that says uncertain where others err is best only by not deciding."""
    hedged = dict.fromkeys(range(290, 300), ValueCode.UNCERTAIN)
    cautious = answering(run_of([300], engine="cautious"), TAXONOMY.ids[0], hedged)
    bold = run_of([295], engine="bold")
    first, second = matrix_of(cautious, bold).rows[0].cells
    assert first.standing is EngineRank.BEST and first.rests_on_uncertain
    assert first.result.confusion.n == 290
    assert not second.rests_on_uncertain


def test_who_wins_the_shared_cases_is_never_called_worse():
    """0.980 of 100 decided cases against 0.990 of 1,000, but 10 to 2 on the shared."""
    best = run_of([990], 1000, engine="best")
    decides_few = dict.fromkeys(range(20, 920), ValueCode.UNCERTAIN) | {0: 0, 1: 0}
    other = answering(run_of([1000], 1000, engine="o"), TAXONOMY.ids[0], decides_few)
    cells = matrix_of(best, other).rows[0].cells
    assert cells[0].standing is EngineRank.BEST
    paired = cells[1].paired
    assert (paired.lost, paired.gained) == (2, 10)
    assert paired.p_holm < 0.05
    assert cells[1].standing is EngineRank.LEVEL


def test_an_engine_that_failed_keeps_its_column():
    """The others are not lost, and the reason stands where its numbers would."""
    matrix = matrix_of(
        run_of([300], engine="a"),
        run_of([250], engine="b"),
        failed={"vllm:big": "no server\nanswered"},
    )
    assert [column.key for column in matrix.columns] == ["A", "B", "C"]
    assert matrix.columns[2].failure == "no server answered"
    assert [row.cells[2] for row in matrix.rows] == [None] * 21
    assert matrix.failed == (matrix.columns[2],)
    assert standings(matrix, TAXONOMY.ids[0])[:2] == ["best", "worse"]


def test_without_any_run_there_is_no_matrix():
    """Every reason is told."""
    with pytest.raises(EngineError, match=r"a: broken; b: gone"):
        matrix_of(failed={"a": "broken", "b": "gone"})


def test_all_columns_count_the_same_cases():
    """Runs of other cases are cut to those that all hold, and it is said."""
    long, short = run_of([300], 300, engine="long"), run_of([100], 120, engine="short")
    matrix = matrix_of(long, short)
    assert matrix.cases == 120
    assert [column.left_out for column in matrix.columns] == [180, 0]
    assert [cell.result.confusion.n for cell in matrix.rows[0].cells] == [120, 120]
    assert matrix.columns[0].evaluation.statuses[Status.ANSWERED] == 120
    assert matrix.columns[0].evaluation.not_run == 180
    assert any("Left out: A 180, B 0" in text for text in matrix.notes)


def test_cut_runs_keep_their_unanswered_cases_apart():
    """Unparsed and failed are counted again over the cases that are left."""
    run = run_of([300], engine="long")
    predicted = run.pairs.predicted.copy()
    predicted[0], predicted[1], predicted[200] = (
        ValueCode.UNPARSED,
        ValueCode.FAILED,
        ValueCode.FAILED,
    )
    run = replace(run, pairs=replace(run.pairs, predicted=predicted))
    evaluation = matrix_of(run, run_of([120], 120, engine="b")).columns[0].evaluation
    assert dict(evaluation.statuses) == {
        Status.ANSWERED: 118,
        Status.UNPARSED: 1,
        Status.ENGINE_FAILED: 1,
    }


def test_cases_are_joined_by_id_not_by_position():
    """A run that holds the cases in another order says the same."""
    run = run_of([280] * 21, engine="a")
    turned = np.arange(300)[::-1]
    pairs = replace(
        run.pairs,
        case_ids=tuple(run.pairs.case_ids[row] for row in turned),
        reference=run.pairs.reference[turned],
        predicted=run.pairs.predicted[turned],
    )
    other = replace(run, pairs=pairs, run=replace(run.run, run_id="b"))
    cells = matrix_of(run, other).rows[3].cells
    assert cells[0].result.confusion == cells[1].result.confusion
    assert [cell.standing for cell in cells] == ["best", "best"]


def test_runs_without_a_case_in_common_are_refused():
    """There is nothing to put side by side."""
    run = run_of([300], engine="a")
    ids = tuple(f"other-{case}" for case in run.pairs.case_ids)
    other = replace(
        run,
        pairs=replace(run.pairs, case_ids=ids),
        run=replace(run.run, run_id="b"),
    )
    with pytest.raises(DataError, match="no case in common"):
        matrix_of(run, other)


@pytest.mark.parametrize(
    ("part", "field", "says"),
    [
        ("run", "prompt_digest", "same prompt version"),
        ("cohort", "digest", "same cohort"),
        ("cohort", "reference_digest", "same reference"),
    ],
)
def test_runs_of_something_else_are_refused(part, field, says):
    """One prompt version, one cohort, one reference: else the columns differ twice."""
    run, other = run_of([300], engine="a"), run_of([300], engine="b")
    changed = replace(getattr(other, part), **{field: "f" * 64})
    with pytest.raises(DataError, match=says):
        matrix_of(run, replace(other, **{part: changed}))


def test_a_run_named_twice_is_refused():
    """It would tie with itself."""
    run = run_of([300])
    with pytest.raises(DataError, match="named twice"):
        matrix_of(run, run)


def test_the_mean_is_shown_beside_what_finding_nothing_reaches():
    """30 positives of 300: absent everywhere is right in 0.9, no finding in 0.1."""
    matrix = matrix_of(run_of([300]))
    floors = {row.label: row.floor for row in matrix.rows}
    assert floors.pop("no_finding") == 0.1
    assert set(floors.values()) == {0.9}
    assert matrix.floor.accuracy == pytest.approx((20 * 0.9 + 0.1) / 21)
    assert matrix.floor.at_threshold == 0


def test_labels_at_the_threshold_on_too_little_evidence_are_told_apart():
    """They count as the published tables count, and are not hidden among the rest."""
    matrix = matrix_of(run_of([290, 285, 284], positives=5))
    (column,) = matrix.columns
    assert (matrix.at_threshold(column), matrix.thin(column)) == (20, 20)
    assert matrix.unranked == 21


def test_notes_name_the_engines_they_are_about():
    """A caveat of one engine is not spread over all."""
    loose = run_of([300], engine="b")
    manifest = {
        "engine_identity": {"constrained": False},
        "spec": {"parameters": {"temperature": 0.7}},
    }
    loose = replace(loose, run=replace(loose.run, manifest=manifest))
    matrix = matrix_of(run_of([300], engine="a"), loose)
    assert any(text.startswith("B: The server did not") for text in matrix.notes)
    asked = "The engines were asked differently: temperature none (A), 0.7 (B)."
    assert any(text.startswith(asked) for text in matrix.notes)
    assert any(text.startswith("Point rule") for text in matrix.notes)


def test_averages_of_other_labels_are_told_and_given_on_common_ones():
    """One engine knows all labels but edema, where the other is often wrong."""
    whole = run_of({"edema": 285}, engine="a")
    place = TAXONOMY.ids.index("edema")
    predicted = run_of([300], engine="b").pairs.predicted.copy()
    predicted[:, place] = ValueCode.NOT_ASKED
    part = run_of([300], engine="b")
    part = replace(part, pairs=replace(part.pairs, predicted=predicted))
    (told,) = [
        text for text in matrix_of(whole, part).notes if text.startswith("Averages")
    ]
    assert "do not compare: A 21, B 20. On the 20 that all were asked for" in told
    found = {
        row.label: row.cells[0].result.confusion.f1
        for row in matrix_of(whole, part).rows
        if row.label != "edema"
    }
    mean = sum(found.values()) / len(found)
    assert told.endswith(f"is A {mean:.3f} of 20, B 1.000 of 20.")
    alike = matrix_of(whole, run_of([300], engine="b"))
    assert not any(text.startswith("Averages") for text in alike.notes)


def test_another_threshold_is_the_protocols():
    """Counts and tints follow labels/protocol.yaml."""
    run = replace(run_of([270] * 21), protocol=Protocol(accuracy=0.9))
    matrix = matrix_of(run)
    assert matrix.at_threshold(matrix.columns[0]) == 21


def test_more_engines_than_letters_have_keys_of_their_own():
    """No two columns share a key."""
    runs = [run_of([60], 60, engine=f"e{number}") for number in range(2)]
    many = {f"f{number}": "gone" for number in range(40)}
    keys = [column.key for column in matrix_of(*runs, failed=many).columns]
    assert len(set(keys)) == 42


def test_keys_go_through_the_alphabet_again_with_a_number():
    """A to Z, then A2 to Z2, then A3."""
    gone = {f"f{number}": "gone" for number in range(53)}
    matrix = matrix_of(run_of([60], 60, engine="e"), failed=gone)
    keys = [column.key for column in matrix.columns]
    assert keys[:2] + keys[24:28] == ["A", "B", "Y", "Z", "A2", "B2"]
    assert keys[51:] == ["Z2", "A3", "B3"]


def test_rows_count_what_the_reference_decides():
    """Open marks are in no floor; a label that is open everywhere has none."""
    run = run_of([300], engine="a")
    reference = run.pairs.reference.copy()
    at = {label: TAXONOMY.ids.index(label) for label in ("edema", "fracture")}
    reference[:10, at["edema"]] = ValueCode.UNCERTAIN
    reference[100:150, at["edema"]] = ValueCode.NO_MAJORITY
    reference[150:160, at["edema"]] = ValueCode.NOT_CODED
    reference[:, at["fracture"]] = ValueCode.MISSING
    run = replace(run, pairs=replace(run.pairs, reference=reference))
    matrix = matrix_of(run)
    rows = {row.label: row for row in matrix.rows}
    edema, fracture = rows["edema"], rows["fracture"]
    assert (edema.name, edema.positives, edema.usable) == ("Edema", 20, 240)
    assert edema.floor == pytest.approx(220 / 240)
    assert (fracture.positives, fracture.usable, fracture.floor) == (0, 0, None)
    floors = [*[0.9] * 18, 220 / 240, 0.1]
    assert matrix.floor.accuracy == pytest.approx(sum(floors) / 20)
    assert matrix.floor.at_threshold == 0
    loose = replace(run, protocol=Protocol(accuracy=0.9))
    assert matrix_of(loose).floor.at_threshold == 19


def test_cut_runs_keep_patients_and_every_draw():
    """The cases that are left, in the order of the first run, draw by draw."""
    short = run_of([100], 120, engine="short")
    long = run_of([300], engine="long", run="long")
    first, second = long.pairs.predicted.copy(), long.pairs.predicted.copy()
    first[0, 0], second[1, 0], second[200, 0] = 0, 0, 1
    long = replace(
        long,
        pairs=replace(long.pairs, predicted=first),
        further=(replace(long.pairs, predicted=second),),
        runs=("long", "long-2"),
        patients=tuple(f"p{row // 2}" for row in range(300)),
    )
    column = matrix_of(short, long).columns[1]
    found = column.evaluation
    assert (found.cases, found.draws, column.left_out) == (120, 2, 180)
    assert (found.method.unit, found.method.units, found.method.known) == (
        "patient",
        60,
        120,
    )
    # 30 positives and 90 negatives in either draw; a miss in each.
    assert found.labels[0].confusion == (58, 0, 2, 180)
    assert found.not_run == 180
    assert sum(found.statuses.values()) == 240


def test_every_engine_of_every_request_is_asked_as_its_request_says(
    workspace, monkeypatch
):
    """All are prepared before the first is asked; what each said is kept with how."""
    told, started = [], []

    def prepare(place, prompt, cohort, **how):
        told.append((place, prompt, cohort, how))
        if "me:word" in how["engine"]:
            raise EngineError("refused")
        task = object.__new__(Task)
        object.__setattr__(task, "unread", how["engine"])
        return task

    def run(place, task, *, watch, actor):
        started.append((place, task.unread, watch, actor))
        if task.unread == "same":
            raise NoEffectError("changes nothing")
        if task.unread == "dead":
            raise EngineError("died")
        return SimpleNamespace(run_id=f"run of {task.unread}")

    monkeypatch.setattr(runs_module, "prepare_run", prepare)
    monkeypatch.setattr(runs_module, "run_task", run)
    secret = "openai:m@https://me:word@127.0.0.1/v1"
    low, high = EngineOptions(thinking="low"), EngineOptions(thinking="high")
    requests = (
        MatrixRequest("a@v1", "dev", ("rules", "same", secret), 5, low, "Ann"),
        MatrixRequest("b@v1", "dev", ("dead",), None, high),
    )
    ready, done = [], []
    found = ask_requests(
        workspace,
        requests,
        ready=lambda task: ready.append((task.unread, len(started))),
        watch=lambda task: f"watch {task.unread}",
        done=lambda engine, summary: done.append((engine, summary.run_id)),
    )
    assert found == [
        EngineRun("rules", "run of rules", "", "low"),
        EngineRun("same", None, "changes nothing", "low", True),
        EngineRun("openai:m@https://***", None, "refused", "low"),
        EngineRun("dead", None, "died", "high"),
    ]
    assert told == [
        (workspace, one.prompt, "dev", how | {"engine": engine})
        for one, how in zip(
            requests,
            ({"limit": 5, "asking": low}, {"limit": None, "asking": high}),
            strict=True,
        )
        for engine in one.engines
    ]
    assert ready == [("rules", 0), ("same", 0), ("dead", 0)]
    assert started == [
        (workspace, "rules", "watch rules", "Ann"),
        (workspace, "same", "watch same", "Ann"),
        (workspace, "dead", "watch dead", None),
    ]
    assert done == [("rules", "run of rules")]


@pytest.mark.parametrize("known", [True, False])
def test_runs_are_read_on_one_reference_under_the_protocol_of_the_first(
    workspace, monkeypatch, known
):
    """An engine without a run is kept with why; the protocol may not be registered."""
    read, made = [], []

    def draws(place, run, *, reference):
        read.append((place, run, reference))
        return SimpleNamespace(protocol_digest=f"protocol of {run}")

    def registration(place, digest):
        assert (place, digest) == (workspace, "protocol of one")
        return SimpleNamespace(time="2026-01-05T09:00:00Z") if known else None

    monkeypatch.setattr(runs_module, "read_draws", draws)
    monkeypatch.setattr(runs_module, "find_registration", registration)
    monkeypatch.setattr(
        runs_module, "build_matrix", lambda *told, **how: made.append((told, how))
    )
    asked = [
        EngineRun("dead", None, "died"),
        EngineRun("a", "one"),
        EngineRun("b", "two"),
    ]
    read_matrix(workspace, asked, reference=2, resamples=30, seed=4)
    assert read == [(workspace, "one", 2), (workspace, "two", 2)]
    (((entries,), how),) = made
    assert [(one.engine, bool(one.inputs), one.failure) for one in entries] == [
        ("dead", False, "died"),
        ("a", True, ""),
        ("b", True, ""),
    ]
    when = "2026-01-05T09:00:00Z" if known else ""
    assert how == {"registered": when, "resamples": 30, "seed": 4}


def test_a_reference_that_no_matrix_can_show_is_refused_before_anything_is_asked(
    workspace, monkeypatch
):
    """Of a cohort, that is, whose cases were read by worth and not by chance."""
    asked = []

    def refuse(reference):
        asked.append(reference)
        raise DataError("read by worth")

    monkeypatch.setattr(runs_module, "read_reference", lambda *told: told)
    monkeypatch.setattr(runs_module, "require_random", refuse)
    task = SimpleNamespace(spec=SimpleNamespace(cohort="dev"))
    with pytest.raises(DataError, match="read by worth"):
        check_before(workspace, task, [], 3)
    assert asked == [(workspace, "dev", 3)]


def test_two_draws_are_tested_by_how_often_each_case_is_right():
    """Differences of 4, 2 and -2: three of the eight ways to flip them go as far."""
    truth = np.ones(4, dtype=np.int8)
    best = np.array([[1, 1, 1, 1], [1, 1, 0, 1]], dtype=np.int8)
    other = np.array([[0, 1, 1, 1], [0, 0, 1, 1]], dtype=np.int8)
    assert _differ(truth, best, other) == Paired(2, 1, 0.75, 0.75)
    assert _differ(truth, best, best) == Paired(0, 0, 1.0, 1.0)
    assert _differ(truth, best, None) == Paired(0, 0, 1.0, 1.0)
    assert _differ(truth, None, best) == Paired(0, 0, 1.0, 1.0)


def test_cases_that_were_not_run_are_counted_with_those_left_out():
    """A run that lacks some cannot pass, however many another one lacks."""
    pairs = replace(run_of([3], 4).pairs, not_run=2)
    assert _take(pairs, np.array([0, 3])).not_run == 4
    assert _take(pairs, np.array([0, 3])).case_ids == (
        pairs.case_ids[0],
        pairs.case_ids[3],
    )
