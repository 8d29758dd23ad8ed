"""The corrected score of a run is made from all runs it was chosen among."""

import json
from dataclasses import replace

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.core.records import Field, Status, ValueCode
from loop.evaluate.align import (
    CodeTable,
    align,
    decided_reference,
    in_order,
    read_answers,
    read_codes,
)
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.tried import correct_optimism
from loop.labels.reference import read_reference
from loop.labels.taxonomy import read_taxonomy
from loop.run.store import open_store
from loop.stats.optimism import expected_excess
from tests.evaluate.scenes import TAXONOMY, outcome, random_run, reference, silent
from tests.evaluate.tried_scenes import tried_check


def correct(trials, run, **options):
    """Return the corrected score of a run."""
    with open_store(trials.workspace) as store:
        return correct_optimism(trials.workspace, store, run, **options)


@pytest.fixture
def three(trials):
    """Return three runs of three wordings."""
    first = trials.version(1, "effusion")
    trials.version(2, "effusion", "fluid", parent=first)
    trials.version(0, "fluid", parent=first, draft="d1")
    return [trials.run(f"tiny@{tag}") for tag in ("v1", "v2", "draft:d1")]


def test_apparent_is_what_evaluate_says(trials, three):
    """One number, wherever it is read."""
    chosen = correct(trials, three[0])
    plain = evaluate_run(trials.workspace, three[0], resamples=20).macro.score
    assert chosen.score.apparent == pytest.approx(plain.estimate)
    assert (chosen.k, chosen.rescored, chosen.unscored) == (3, 3, ())
    assert chosen.score.units == 20
    assert chosen.expected_drop == expected_excess(20, 3, chosen.accuracy)


def test_one_version_keeps_its_score(trials):
    """Nothing was chosen."""
    trials.version(1, "effusion")
    chosen = correct(trials, trials.run("tiny@v1"))
    assert chosen.score.corrected == chosen.score.apparent
    assert chosen.expected_drop == 0


def test_attempts_without_a_run_count_for_the_expected_drop(trials, three):
    """They cannot be scored again, and are not forgotten."""
    first = trials.version(9, "effusion", "x")
    gone = trials.version(0, "base", parent=first, draft="d2")
    trials.reject(gone, "no", check=tried_check("a", "b"))
    chosen = correct(trials, three[1])
    assert (chosen.k, chosen.rescored) == (4, 3)
    assert chosen.unscored == ("tiny@draft:d2",)
    assert chosen.expected_drop == expected_excess(20, 4, chosen.accuracy)


def test_a_damaged_old_run_does_not_hide_a_sound_one(trials, three):
    """It is named and left out."""
    with open_store(trials.workspace) as store:
        number = store.find_runs(ids=[three[0]])[0].number
        with store.writing() as connection:
            connection.execute(
                "UPDATE outcomes SET fields = 'x' WHERE run = ?", [number]
            )
    chosen = correct(trials, three[1])
    assert (chosen.k, chosen.rescored, chosen.unscored) == (3, 2, ("tiny@v1",))


def test_an_unknown_run_and_a_changed_cohort_are_refused(trials, three):
    """The message says what to do."""
    with pytest.raises(DataError, match="Make one with `ranloop run`"):
        correct(trials, "nothing")
    trials.cohort(replace=True, cases=24)
    with pytest.raises(DataError, match="Run the prompt again"):
        correct(trials, three[0])


def test_codes_are_those_of_an_evaluation(trials, three):
    """The fast reader and the careful one say the same of every case."""
    taxonomy = read_taxonomy(trials.workspace.labels)
    standard = read_reference(trials.workspace, "dev")
    with open_store(trials.workspace) as store:
        run = store.find_runs(ids=[three[1]])[0]
        pairs = align(store.read_outcomes(run.id), standard, taxonomy)
        table = read_codes(store, run, taxonomy)
        assert read_codes(store, run, taxonomy) is table
    assert table.case_ids == pairs.case_ids
    assert np.array_equal(table.codes, pairs.predicted)
    turned = table.case_ids[::-1]
    assert np.array_equal(in_order(table, turned), pairs.predicted[::-1])


def test_no_finding_follows_from_a_whole_answer(trials, three):
    """In the fast reader too; where a label was not answered nothing follows."""
    taxonomy = read_taxonomy(trials.workspace.labels)
    whole = dict.fromkeys(taxonomy.extracted, "absent")
    part = {"edema": "present"}
    answers = (whole, whole | part, whole | {"edema": "uncertain"}, part)
    with open_store(trials.workspace) as store:
        run = store.find_runs(ids=[three[2]])[0]
        with store.writing() as connection:
            connection.executemany(
                "UPDATE outcomes SET fields = ? WHERE run = ? AND seq = ?",
                [(json.dumps(one), run.number, at) for at, one in enumerate(answers)],
            )
        table = read_codes(store, run, taxonomy)
        careful = read_answers(store.read_outcomes(run.id), taxonomy)
    at = taxonomy.ids.index("no_finding")
    assert table.codes[: len(answers), at].tolist() == [1, 0, 0, ValueCode.NOT_ASKED]
    assert dict(zip(table.case_ids, table.codes.tolist(), strict=True)) == careful


def test_the_reference_is_joined_by_case_not_by_place():
    """Cases it does not know stay open, and so do marks that decide nothing."""
    outcomes, standard = random_run(40)
    pairs = align(outcomes, standard, TAXONOMY)
    found = decided_reference(standard, pairs.case_ids, TAXONOMY)
    assert np.array_equal(found, pairs.binary_reference)
    small = reference({"b": {"edema": 1}}, ["edema"])
    table = decided_reference(small, ("a", "b"), TAXONOMY)
    places = [TAXONOMY.ids.index(label) for label in ("fracture", "edema")]
    assert table[:, places].tolist() == [[-1, -1], [-1, 1]]


def test_unanswered_cases_keep_their_reason(trials, three):
    """A case without an answer is never read as absent."""
    with open_store(trials.workspace) as store:
        number = store.find_runs(ids=[three[2]])[0].number
        with store.writing() as connection:
            connection.execute(
                "UPDATE outcomes SET status = ?, fields = '{}' "
                "WHERE run = ? AND seq = 0",
                [Status.UNPARSED.value, number],
            )
        taxonomy = read_taxonomy(trials.workspace.labels)
        table = read_codes(store, store.find_runs(ids=[three[2]])[0], taxonomy)
    assert set(table.codes[0]) == {-4}


def test_answers_of_a_run_are_read_by_case_with_what_follows_from_them():
    """One code per label in published order; a case without an answer says why."""
    answers = [outcome("b", {"edema": -1}), outcome("a", {}), silent("c")]
    failed = replace(silent("d"), status=Status.ENGINE_FAILED)
    part = replace(answers[1], item_id="e", fields={"edema": Field("present")})
    found = read_answers([*answers, failed, part], TAXONOMY)
    assert list(found) == ["b", "a", "c", "d", "e"]
    places = {label: at for at, label in enumerate(TAXONOMY.ids)}
    edema, nothing, fracture = (
        places[label] for label in ("edema", "no_finding", "fracture")
    )
    picked = {
        case: tuple(codes[at] for at in (edema, fracture, nothing))
        for case, codes in found.items()
    }
    not_asked = ValueCode.NOT_ASKED
    assert picked["a"] == (ValueCode.ABSENT, ValueCode.ABSENT, ValueCode.PRESENT)
    assert picked["b"][:2] == (ValueCode.UNCERTAIN, ValueCode.ABSENT)
    assert set(found["c"]) == {ValueCode.UNPARSED}
    assert set(found["d"]) == {ValueCode.FAILED}
    assert picked["e"] == (ValueCode.PRESENT, not_asked, not_asked)
    assert {len(codes) for codes in found.values()} == {len(TAXONOMY.ids)}


def test_a_reference_is_open_decided_or_unknown():
    """Not coded is absent and stays visible; what one cannot judge is left open."""
    codes = (1, 0, *(ValueCode[name] for name in ("NOT_CODED", "UNCERTAIN", "MISSING")))
    rows = {f"c{at}": {"edema": code} for at, code in enumerate(codes)}
    standard = reference(rows, ["edema", "fracture"])
    pairs = align([outcome(case, {}) for case in rows], standard, TAXONOMY)
    at = TAXONOMY.ids.index("edema")
    assert pairs.usable[:, at].tolist() == [True, True, True, False, False]
    assert pairs.binary_reference[:, at].tolist() == [1, 0, 0, -1, -1]
    known = {"edema", "fracture"}
    assert set(pairs.unknown) == set(TAXONOMY.ids) - known
    assert pairs.not_coded
    opened = pairs.leave_open(["edema"])
    assert set(opened.reference[:, at]) == {ValueCode.MISSING}
    assert not opened.not_coded
    assert np.array_equal(
        np.delete(opened.reference, at, axis=1), np.delete(pairs.reference, at, axis=1)
    )
    assert pairs.leave_open(["elsewhere"]) is pairs


def test_a_run_without_label_values_is_named_by_its_case(trials, three):
    """Its answers mean something else; nothing is guessed of them."""
    with open_store(trials.workspace) as store:
        run = store.find_runs(ids=[three[2]])[0]
        first = next(store.read_outcomes(run.id)).item_id
        fields = store.read(
            "SELECT fields FROM outcomes WHERE run = ? AND seq = 0", [run.number]
        )[0][0]
        with store.writing() as connection:
            connection.execute(
                "UPDATE outcomes SET fields = ? WHERE run = ? AND seq = 0",
                [
                    fields.replace("absent", "seven").replace("present", "seven"),
                    run.number,
                ],
            )
        with pytest.raises(DataError) as told:
            read_codes(store, run, read_taxonomy(trials.workspace.labels))
    assert str(told.value) == (
        f"case {first}: an answer is not present, absent or uncertain. Only runs "
        "with label values can be compared."
    )


def test_cases_that_a_run_does_not_hold_are_no_empty_rows():
    """Whoever asks for one gets an error; the order is that of the question."""
    table = CodeTable(("a", "b", "c"), np.array([[1], [0], [-1]], dtype=np.int8))
    assert in_order(table, ("a", "b", "c")) is table.codes
    assert in_order(table, ("c", "a")).tolist() == [[-1], [1]]
    with pytest.raises(KeyError):
        in_order(table, ("a", "z"))
