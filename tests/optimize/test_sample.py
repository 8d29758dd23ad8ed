"""Cases are drawn by what reading them is probably worth, with known chances."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LedgerError
from loop.core.ledger import Event, append_event, read_ledger
from loop.core.records import Mark, Value
from loop.evaluate.compare import compare_runs
from loop.evaluate.evaluation import evaluate_run
from loop.evaluate.inputs import read_inputs
from loop.evaluate.plan import plan_cohort
from loop.evaluate.sampled import (
    evaluate_sample,
    is_sampled,
    render_sampled_csv,
    render_sampled_html,
    sampled_data,
)
from loop.evaluate.tried import correct_optimism
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.labels.reference import correct_reference, read_reference
from loop.labels.value_sample import keep_sample, newest_sample, sample_path
from loop.optimize.sample import (
    _learn,
    draw_cases,
    draw_weighed,
    keep_reading_sample,
    weigh_cases,
)
from loop.optimize.sample_documents import (
    render_sample_csv,
    render_sample_html,
    render_sample_list,
    sample_data,
)
from loop.optimize.unread import PARTS
from loop.release.audit.cohorts import check_cohorts
from loop.review.reading.answers import answer_many, complete_case
from loop.review.reading.assignment import (
    PlanRequest,
    assign_cases,
    cases_to_read,
    read_assignment,
    read_plans,
)
from loop.review.reading.publication import Publication, publish_readings
from loop.review.revise.check_record import read_basis as read_check_basis
from loop.run.manifest import find_run
from loop.run.store import open_store
from tests.optimize.sampling import (
    EDITOR,
    WORDS,
    add_cohort,
    add_patients,
    run,
    write_tiny,
)
from tests.review.revise.conftest import wavering as wavering

BETWEEN = ("tiny@v1", "tiny@v2")


def drawn_ids(found):
    """Return the ids of a sample, in its order."""
    return [one.case_id for one in found.drawn]


def read_some(workspace, right, cases, reader="Dr. A"):
    """Let a reader label `cases` as is right, and publish; return the version."""
    assignment = read_assignment(workspace, "pool")
    answers = {
        case: {
            label: Value.PRESENT if found else Value.ABSENT
            for label, found in right[case].items()
        }
        for case in cases
    }
    with open_store(workspace) as store:
        answer_many(store, assignment, reader, answers)
        for case in cases:
            complete_case(store, assignment, reader, case)
        wanted = Publication(reason="read")
        return publish_readings(workspace, store, assignment, wanted, EDITOR).votes


@pytest.fixture
def read_sample(pool, right):
    """Draw 80 cases, let two readers share them, and publish what both say."""
    found = draw_cases(pool, "pool", size=80, between=BETWEEN, seed=3)
    keep_reading_sample(pool, found, actor=EDITOR, readers=("Dr. A", "Dr. B"))
    read_some(pool, right, drawn_ids(found))
    return found


def test_the_same_seed_draws_the_same_cases_and_another_does_not(pool):
    """Exactly so many, none twice, each with the chance that the cohort gives it."""
    one = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=3)
    again = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=3)
    other = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=4)
    assert drawn_ids(one) == drawn_ids(again)
    assert set(drawn_ids(one)) != set(drawn_ids(other))
    assert len(set(drawn_ids(one))) == 40
    weighed = one.weighed
    assert weighed.chances.sum() == pytest.approx(40)
    assert weighed.chances.min() >= 0.25 * 40 / 240 * (1 - 1e-9)
    chances = dict(zip(weighed.cohort.case_ids, weighed.chances, strict=True))
    assert all(chances[one.case_id] == one.chance for one in one.drawn)
    assert weighed.run == find_run(pool, "latest:tiny@v2:pool").id
    assert weighed.fitted_on == "dev"


def test_more_failing_cases_than_at_random(pool, right):
    """By its chances, which no reference of the cohort has made."""
    weighed = weigh_cases(pool, "pool", size=60, between=BETWEEN)
    failing = [
        any((WORDS[label] in text) != found for label, found in right[case_id].items())
        for case_id, text in _texts(pool).items()
    ]
    lift = weighed.chances[failing].sum() / (60 * np.mean(failing))
    assert lift > 1.5
    assert weighed.lift > 1.5
    assert weighed.dev_failing >= 15


def _texts(workspace):
    path = workspace.private / "cases" / "pool.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return {row["case_id"]: row["text"] for row in rows}


def test_what_each_part_was_worth_is_shown(pool):
    """Findings tell here; what nothing is known of is named with the reason."""
    weighed = weigh_cases(pool, "pool", size=60, between=BETWEEN)
    worth = {one.name: one for one in weighed.parts}
    assert list(worth) == list(PARTS)
    findings = worth["findings"]
    assert findings.failing > findings.others
    assert findings.alone > 1.3
    assert worth["versions"].note == ""
    assert worth["repeats"].note == "nothing to compare with"
    assert worth["hedged"].note == "the same in every development case"
    alone = weigh_cases(pool, "pool", size=60)
    assert {p.name: p for p in alone.parts}["versions"].note


def learned(parts, failing, *, wanted=None, units=None, share=0.2):
    """Return what is learned of cases with these parts."""
    known = {name: np.array(column, dtype=float) for name, column in parts.items()}
    return _learn(
        known,
        known if wanted is None else wanted,
        np.array(failing),
        np.arange(len(failing)) if units is None else units,
        share=share,
    )


def test_the_model_is_a_ridge_regression_of_the_parts_that_are_known():
    """The penalty holds what the errors pull, nearly, and the mean is right."""
    rng = np.random.default_rng(5)
    findings = rng.integers(0, 4, 150)
    length = rng.integers(20, 60, 150)
    failing = rng.random(150) < 0.1 + 0.2 * findings
    found = learned(
        {"findings": findings, "length": length, "hedged": [2] * 150}, failing
    )
    assert found.fails.mean() == pytest.approx(failing.mean(), abs=1e-4)
    worth = {one.name: one for one in found.parts}
    for name, column in (("findings", findings), ("length", length)):
        logs = np.log1p(column)
        standard = (logs - logs.mean()) / logs.std()
        pull = float((standard * (failing - found.fails)).sum())
        one = worth[name]
        assert np.log(one.odds_ratio) == pytest.approx(pull, abs=0.02)
        assert one.failing == pytest.approx(column[failing].mean())
        assert one.others == pytest.approx(column[~failing].mean())
        assert one.note == ""
    assert worth["findings"].alone == worth["length"].without
    assert worth["length"].alone == worth["findings"].without
    assert worth["findings"].alone > 1.2 > worth["length"].alone
    assert worth["hedged"] == (
        "hedged", None, None, None, None, None, "the same in every development case",
    )  # fmt: skip
    assert list(worth) == list(PARTS)


def test_a_part_that_tells_all_failing_cases_finds_most_of_them():
    """A tenth fails and a tenth is drawn, a quarter of it evenly: 7.75 times as many.

    That is the most, give or take the draw. Where all are drawn, nothing is gained.
    """
    failing = np.arange(200) % 10 == 0
    parts = {"findings": 20 * failing}
    found = learned(parts, failing, share=0.1)
    (one,) = (part for part in found.parts if not part.note)
    assert found.lift == one.alone
    assert 7 < found.lift < 10 * (0.75 + 0.25 * 0.1) + 0.1
    assert one.without is None
    assert learned(parts, failing, share=1.0).lift == pytest.approx(1.0)
    nothing = {"findings": np.arange(200) // 2 % 2}
    assert learned(nothing, failing, share=0.1).lift == pytest.approx(1.0, abs=0.3)
    assert found.fails[failing].min() > 0.9 > 0.1 > found.fails[~failing].max()


def test_what_is_drawn_from_is_measured_by_the_development_cohort():
    """Center and scale are those of what is learned from; a note names the side."""
    failing = np.arange(100) % 4 == 0
    findings = 1 + 3 * failing + np.arange(100) % 3
    wanted = {"findings": findings[:7].astype(float), "hedged": np.ones(7)}
    parts = {"findings": findings, "length": np.arange(100)}
    found = learned(parts, failing, wanted=wanted)
    alone = learned({"findings": findings}, failing)
    assert found.fails == pytest.approx(alone.fails[:7])
    notes = {one.name: one.note for one in found.parts if one.note}
    assert notes == {
        "length": "not known of the cohort",
        "hedged": "not known of the development cohort",
        **dict.fromkeys(
            set(PARTS) - {"findings", "length", "hedged"}, "nothing to compare with"
        ),
    }
    with pytest.raises(DataError, match="no part of the value differs"):
        learned({"findings": [1] * 100}, failing)


def test_models_rules_and_repeats_are_parts_where_both_cohorts_have_them(
    pool, wavering
):
    """One side alone says so; with both, each is weighed."""
    for draw in (0, 1):
        for cohort in ("dev", "pool"):
            run(pool, "tiny@v2", cohort, engine="wavering", draw=draw)
    weighed = weigh_cases(pool, "pool", size=60)
    assert weighed.engine == "wavering"
    worth = {one.name: one for one in weighed.parts}
    assert [worth[n].note for n in ("rules", "repeats")] == ["", ""]
    assert worth["engines"].note == "nothing to compare with"
    assert worth["rules"].alone > 1.2, (
        "rules and a model that errs differ where it errs"
    )


def test_the_reference_of_the_cohort_is_not_looked_at(pool, right, read_sample):
    """The chances are the same before and after readers have said what is right."""
    after = weigh_cases(pool, "pool", size=80, between=BETWEEN)
    assert np.array_equal(after.chances, read_sample.weighed.chances)


def test_every_case_may_be_drawn(pool):
    """As many as there are: each for certain, with a weight of one."""
    found = draw_cases(pool, "pool", size=240, between=BETWEEN)
    assert len(found.drawn) == 240
    assert {one.chance for one in found.drawn} == {1.0}
    assert len(draw_cases(pool, "pool", size=1, between=BETWEEN).drawn) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 0}, "0 cases cannot be drawn: cohort pool has 240"),
        ({"size": -5}, "Ask for 1 to 240"),
        ({"size": 241}, "241 cases cannot be drawn"),
        ({"between": ("tiny@v2", "tiny@v2")}, "named twice"),
        ({"between": ("tiny@v7",)}, "v7"),
        ({"fit_on": "pool"}, "cannot tell how much its own cases are worth"),
        ({"fit_on": "nowhere"}, "nowhere"),
        ({"between": ("extractor@v1",)}, "no finished run of extractor@v1 on all"),
    ],
)
def test_what_cannot_be_drawn_is_refused(pool, options, words):
    """With the way out."""
    with pytest.raises(DataError, match=words):
        draw_cases(pool, "pool", **{"size": 10, **options})


def test_a_holdout_is_never_sampled(pool, tmp_path):
    """For either purpose: it is read whole, or at random; nothing is opened."""
    add_cohort(pool, tmp_path, "held", 30, 5, labels=False, role="holdout")
    before = len(read_ledger(pool.ledger))
    with pytest.raises(DataError, match="held is a holdout: its labels decide"):
        draw_cases(pool, "held", size=10)
    with pytest.raises(DataError, match=r"has not the role dev|held is a holdout"):
        draw_cases(pool, "pool", size=10, between=BETWEEN, fit_on="held")
    assert len(read_ledger(pool.ledger)) == before


def test_a_cohort_of_pairs_is_refused(pool, tmp_path):
    """Readers label single reports."""
    path = tmp_path / "pairs.csv"
    path.write_text("id,reference,candidate\na,Clear.,Clear lungs.\n")
    import_cohort(pool, path, ImportOptions(name="pairs", role="dev"), actor=EDITOR)
    with pytest.raises(DataError, match="holds pairs"):
        draw_cases(pool, "pairs", size=1)


def test_a_cohort_that_nothing_is_known_of_is_refused(pool, tmp_path):
    """No run: nothing to draw by; and no development cohort, nothing to learn from."""
    add_cohort(pool, tmp_path, "fresh", 30, 6, labels=False)
    with pytest.raises(DataError, match="no finished run asked all cases of cohort"):
        draw_cases(pool, "fresh", size=10)
    run(pool, "tiny@v2", "fresh", limit=5)
    with pytest.raises(DataError, match="no finished run asked all cases of cohort"):
        draw_cases(pool, "fresh", size=10)
    write_tiny(pool, 3, {"edema": "edema"})
    run(pool, "tiny@v3", "pool")
    with pytest.raises(DataError, match="besides pool, 0 cohorts with role dev"):
        draw_cases(pool, "pool", size=10, between=("tiny@v3",))
    with pytest.raises(DataError, match=r"ranloop run tiny@v3 --cohort dev"):
        draw_cases(pool, "pool", size=10, between=("tiny@v3",), fit_on="dev")


def test_two_development_cohorts_must_be_told_apart(pool, tmp_path):
    """Which one was learned from is nobody's guess; nor can ten cases teach."""
    add_cohort(pool, tmp_path, "small", 10, 7)
    run(pool, "tiny@v2", "small")
    with pytest.raises(DataError, match=r"2 cohorts .*\(dev, small\)"):
        draw_cases(pool, "pool", size=10, between=("tiny@v2",))
    with pytest.raises(DataError, match="at least 5 of each are needed"):
        draw_cases(pool, "pool", size=10, between=("tiny@v2",), fit_on="small")
    found = draw_cases(pool, "pool", size=10, between=("tiny@v2",), fit_on="dev")
    assert found.weighed.fitted_on == "dev"


@pytest.mark.parametrize(
    ("patients", "words"),
    [
        (
            [(0, 6), *[(4, 0)] * 10],
            "cases of 1 patient fail with tiny@v2 and cases of 10",
        ),
        ([(10, 10)] * 3, "cases of 3 patients fail with tiny@v2 and cases of 3 do not"),
        ([(0, 4)] * 4 + [(4, 0)] * 9, "cases of 4 patients fail .* and cases of 9"),
        ([(0, 4)] * 9 + [(4, 0)] * 4, "cases of 9 patients fail .* and cases of 4"),
    ],
)
def test_cases_of_few_patients_teach_nothing(pool, tmp_path, patients, words):
    """No patient is in two folds: six cases of one tell no more than one case does."""
    add_patients(pool, tmp_path, "few", patients)
    with pytest.raises(DataError, match=f"of cohort few, {words}.* at least 5 of each"):
        draw_cases(pool, "pool", size=10, between=("tiny@v2",), fit_on="few")


def test_cases_of_five_patients_of_each_kind_are_enough(pool, tmp_path):
    """As many as there are folds: one fewer is refused, see above."""
    add_patients(pool, tmp_path, "few", [(0, 4)] * 5 + [(4, 0)] * 5)
    found = draw_cases(pool, "pool", size=10, between=("tiny@v2",), fit_on="few")
    assert (found.weighed.dev_failing, found.weighed.dev_cases) == (20, 40)


def test_a_lift_that_cannot_be_cross_validated_is_not_estimable(pool, tmp_path):
    """All failing cases are in one fold, to balance the folds by their other cases."""
    add_patients(pool, tmp_path, "uneven", [(0, 60), *[(40, 0)] * 4, *[(8, 1)] * 4])
    found = draw_cases(pool, "pool", size=10, between=("tiny@v2",), fit_on="uneven")
    assert found.weighed.lift is None
    parts = {one.name: one for one in found.weighed.parts}
    assert (parts["findings"].alone, parts["findings"].note) == (None, "")
    assert sample_data(found)["lift"] is None
    page = render_sample_html(found, purpose="review")
    assert "<b>–</b>times as many failing cases" in page


def test_a_cohort_without_a_whole_run_is_not_offered(pool, tmp_path):
    """A part of its cases, or a later draw alone, is nothing to learn from."""
    add_cohort(pool, tmp_path, "part", 30, 10)
    run(pool, "tiny@v2", "part", limit=5)
    add_cohort(pool, tmp_path, "later", 30, 11)
    run(pool, "tiny@v2", "later", draw=1)
    found = draw_cases(pool, "pool", size=10, between=("tiny@v2",))
    assert found.weighed.fitted_on == "dev"


def test_what_only_was_measured_is_not_learned_from(pool, tmp_path):
    """An external cohort stays what it is for."""
    add_cohort(pool, tmp_path, "outside", 60, 8, role="external")
    run(pool, "tiny@v2", "outside")
    with pytest.raises(DataError, match="outside has not the role dev"):
        draw_cases(pool, "pool", size=10, between=("tiny@v2",), fit_on="outside")


def test_the_draw_for_readers_is_recorded_and_keeps_its_chances(pool):
    """File, ledger and assignment; the same once more changes nothing."""
    found = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=3)
    number, plans = keep_reading_sample(
        pool, found, actor=EDITOR, readers=("Dr. A", "Dr. B"), overlap=10
    )
    assert number == 1
    assert [len(plan.case_ids) for plan in plans] == [25, 25]
    chances = {one.case_id: one.chance for one in found.drawn}
    for plan in plans:
        given = dict(zip(plan.case_ids, plan.chances, strict=True))
        assert given == {case: chances[case] for case in plan.case_ids}
    assert {case for plan in plans for case in plan.case_ids} == set(chances)
    with open_store(pool) as store:
        kept = read_plans(store, read_assignment(pool, "pool"))
        assert tuple(kept.values()) == plans
    entry = read_ledger(pool.ledger)[-1]
    assert (entry.action, entry.subject) == ("sample_drawn", "pool:sample1")
    assert (entry.payload["size"], entry.payload["seed"]) == (40, 3)
    assert newest_sample(pool, "pool").sample.chances == {
        case: chances[case]
        for case in read_cohort(pool, "pool").case_ids
        if case in chances
    }
    before = pool.ledger.read_bytes()
    assert keep_reading_sample(pool, found, actor=EDITOR)[0] == 1
    assert pool.ledger.read_bytes() == before


@pytest.mark.parametrize(
    ("overlap", "each", "shared"), [(0, 20, 0), (9, 25, 10), (10, 25, 10), (40, 40, 40)]
)
def test_what_cannot_be_dealt_out_evenly_is_shared_as_well(pool, overlap, each, shared):
    """Of 40 cases 9 are shared: of the other 31 both get 15, and one is left."""
    found = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=3)
    readers = ("Dr. A", "Dr. B")
    _, plans = keep_reading_sample(
        pool, found, actor=EDITOR, readers=readers, overlap=overlap
    )
    one, other = (set(plan.case_ids) for plan in plans)
    assert (len(one), len(other), len(one & other)) == (each, each, shared)
    assert one | other == set(drawn_ids(found))


def test_another_sample_does_not_silently_take_the_place_of_one(pool):
    """What readers say of the first would be of no use."""
    first = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=3)
    second = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=4)
    keep_reading_sample(pool, first, actor=EDITOR)
    with pytest.raises(DataError, match="value sample 1 of cohort pool was drawn"):
        keep_reading_sample(pool, second, actor=EDITOR, readers=("Dr. A",))
    with open_store(pool) as store:
        assert not read_plans(store, read_assignment(pool, "pool"))
    assert keep_reading_sample(pool, second, actor=EDITOR, replace=True)[0] == 2


def test_cases_read_for_a_sample_that_was_replaced_are_spoken_of(pool, right):
    """What both drew was read by both chances; read whole, only the second counts."""
    drawn = []
    for seed in (3, 4):
        found = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=seed)
        keep_reading_sample(pool, found, actor=EDITOR, replace=True)
        drawn.append(drawn_ids(found))
    for cases, said in ((drawn[0], True), ({*drawn[0], *drawn[1]}, False)):
        read_some(pool, right, cases)
        notes = evaluate_sample(pool, found.weighed.run, resamples=50).notes
        assert any("read all that this one drew" in one for one in notes) is said


def test_cases_that_cannot_be_dealt_out_leave_nothing_behind(pool):
    """No file, no entry, no plan."""
    found = draw_cases(pool, "pool", size=40, between=BETWEEN)
    with pytest.raises(DataError):
        keep_reading_sample(
            pool, found, actor=EDITOR, readers=("Dr. A", "Dr. A"), overlap=5
        )
    assert newest_sample(pool, "pool") is None
    assert not sample_path(pool, "pool", 1).exists()


def test_a_sample_of_other_cases_is_not_kept(pool):
    """The cohort was imported again since."""
    found = draw_cases(pool, "pool", size=10, between=BETWEEN)
    other = dataclasses.replace(found.weighed.cohort, digest="f" * 64)
    weighed = dataclasses.replace(found.weighed, cohort=other)
    with pytest.raises(DataError, match="other cases than were drawn from"):
        keep_reading_sample(
            pool, dataclasses.replace(found, weighed=weighed), actor=EDITOR
        )


def test_a_reference_of_the_sample_is_never_read_as_a_random_one(pool, read_sample):
    """Every way to a rate over its cases is closed, and names the weighted one."""
    run_id = read_sample.weighed.run
    reference = read_reference(pool, "pool")
    assert reference.sample.number == 1
    assert is_sampled(pool, run_id)
    with open_store(pool) as store:
        for closed in (
            lambda: evaluate_run(pool, run_id),
            lambda: read_inputs(pool, run_id),
            lambda: compare_runs(pool, run_id, run_id),
            lambda: plan_cohort(pool, "pool"),
            lambda: correct_optimism(pool, store, run_id),
        ):
            with pytest.raises(DataError, match="drawn for what reading them is worth"):
                closed()


def test_its_weighted_shares_are_those_of_the_cohort(pool, right, read_sample):
    """The true shares lie within the limits; the unweighted one is far off."""
    found = evaluate_sample(pool, read_sample.weighed.run, resamples=200)
    truth = np.mean(
        [
            any((WORDS[label] in text) != one for label, one in right[case_id].items())
            for case_id, text in _texts(pool).items()
        ]
    )
    assert found.fails.low <= truth <= found.fails.high
    assert found.unweighted > 1.3 * truth
    assert (found.read, found.outside, found.unanswered) == (80, 0, 0)
    chances = np.array([one.chance for one in read_sample.drawn])
    kish = (1 / chances).sum() ** 2 / (1 / chances**2).sum()
    assert found.effective == pytest.approx(kish)
    assert found.effective < 80
    pneumonia = next(one for one in found.labels if one.label == "pneumonia")
    share = np.mean([marks["pneumonia"] for marks in right.values()])
    assert pneumonia.prevalence.low <= share <= pneumonia.prevalence.high
    effusion = next(one for one in found.labels if one.label == "pleural_effusion")
    assert effusion.accuracy.value == 1.0
    assert effusion.accuracy.low < 1.0
    assert found.macro.low < found.macro.estimate <= found.macro.high
    assert (effusion.f1.value, effusion.f1.high) == (1.0, 1.0)
    rest = [one for one in found.labels if one.positives < 10]
    assert rest and {one.f1.value for one in rest} == {None}
    assert found.supported == len([one for one in found.labels if one.f1.value])


def test_its_page_says_so(pool, read_sample):
    """Page, table and JSON: not random, weighted, effective size, no gate."""
    found = evaluate_sample(pool, read_sample.weighed.run, resamples=50)
    page = render_sampled_html(found)
    for words in (
        "Not a random sample.",
        "Every share and F1 weights each case with one over its chance",
        "effective sample size (Kish) of 80 cases read, 80 drawn",
        "No gate is decided and nothing is certified",
    ):
        assert words in page
    assert "Report no." not in page
    data = sampled_data(found)
    json.dumps(data, allow_nan=False)
    assert data["sample"]["effective"] == pytest.approx(found.effective, abs=0.001)
    assert data["verdict"] == "INSUFFICIENT"
    rows = list(csv.DictReader(render_sampled_csv(found).splitlines()))
    assert len(rows) == len(found.labels)
    assert f"sample1:hajek|{found.protocol.policy.sign}" in rows[0]["signature"]


def test_cases_read_for_other_reasons_count_nowhere(pool, right, read_sample):
    """Nobody knows their chances; without them the shares are the same."""
    before = evaluate_sample(pool, read_sample.weighed.run, resamples=50)
    drawn = set(drawn_ids(read_sample))
    more = [case for case in right if case not in drawn][:20]
    read_some(pool, right, [*drawn, *more])
    after = evaluate_sample(pool, read_sample.weighed.run, resamples=50)
    assert after.outside == 20
    assert after.fails == before.fails
    assert any("not drawn in this sample: 20 cases" in n for n in after.notes)


def test_a_part_that_is_read_is_said_to_be_one(pool, right):
    """Thirty of forty: the others are counted, and the share is of those read."""
    found = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=3)
    keep_reading_sample(pool, found, actor=EDITOR)
    read_some(pool, right, drawn_ids(found)[:30])
    result = evaluate_sample(pool, found.weighed.run, resamples=50)
    assert result.read == 30
    assert any("not run: 10 of 40 cases" in n for n in result.notes)


def test_a_cohort_that_is_read_whole_is_an_ordinary_one(pool, right, read_sample):
    """Every case is decided: no weights, and nothing is refused."""
    read_some(pool, right, list(right))
    assert read_reference(pool, "pool").sample is None
    result = evaluate_run(pool, read_sample.weighed.run, resamples=50)
    assert result.labels[0].confusion.n <= 240
    with pytest.raises(DataError, match="is of no value sample"):
        evaluate_sample(pool, read_sample.weighed.run)


def test_a_reference_from_before_the_draw_is_as_it_was(pool, right):
    """Also where it is corrected afterwards: its cases are not of the sample."""
    some = list(right)[:60]
    read_some(pool, right, some)
    found = draw_cases(pool, "pool", size=40, between=BETWEEN, seed=3)
    keep_reading_sample(pool, found, actor=EDITOR)
    assert read_reference(pool, "pool").sample is None
    cohort = read_cohort(pool, "pool")
    wrong = Mark.ABSENT if right[some[0]]["edema"] else Mark.PRESENT
    correct_reference(
        pool, cohort, {(some[0], "edema"): wrong}, actor=EDITOR, reason="a slip"
    )
    assert read_reference(pool, "pool").sample is None
    read_some(pool, right, [*some, *drawn_ids(found)])
    assert read_reference(pool, "pool").sample.number == 1
    assert read_reference(pool, "pool", 1).sample is None


def test_a_correction_of_the_samples_reference_is_of_the_sample(
    pool, right, read_sample
):
    """A later version by a verdict stays weighted."""
    case = drawn_ids(read_sample)[0]
    wrong = Mark.ABSENT if right[case]["edema"] else Mark.PRESENT
    made = correct_reference(
        pool,
        read_cohort(pool, "pool"),
        {(case, "edema"): wrong},
        actor=EDITOR,
        reason="a slip",
    )
    assert made == 2
    assert read_reference(pool, "pool").sample.number == 1


@pytest.mark.parametrize("change", ["gone", "edited", "other"])
def test_without_its_chances_nothing_is_said(pool, read_sample, change):
    """A sample that was removed or edited is no reason to read it as a random one."""
    path = sample_path(pool, "pool", 1)
    if change == "gone":
        path.unlink()
    elif change == "edited":
        path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))
    else:
        path.write_text("{}")
    with pytest.raises(DataError, match=r"cannot be read|was edited"):
        evaluate_run(pool, read_sample.weighed.run)
    with pytest.raises(DataError, match="Restore it"):
        evaluate_sample(pool, read_sample.weighed.run)


def test_a_sample_in_a_form_that_nobody_knows_is_refused(pool, monkeypatch):
    """Its digest holds, and still it is no sample."""
    keep_reading_sample(pool, draw_cases(pool, "pool", size=12), actor=EDITOR)
    path = sample_path(pool, "pool", 1)
    digest = digest_bytes(path.read_bytes())
    path.write_text("{}")
    monkeypatch.setattr("loop.labels.value_sample.digest_bytes", lambda raw: digest)
    with pytest.raises(DataError, match=r"is no value sample. Restore it"):
        newest_sample(pool, "pool")


def test_the_documents_hold_ids_and_numbers(pool):
    """One row a case; no word of a text."""
    found = draw_cases(pool, "pool", size=12, between=BETWEEN)
    page = render_sample_html(found, purpose="review")
    assert "not drawn at random" in page and "Value sample for review" in page
    assert "Report no." not in page
    rows = list(csv.DictReader(render_sample_csv(found).splitlines()))
    assert [row["case_id"] for row in rows] == drawn_ids(found)
    assert float(rows[0]["weight"]) == pytest.approx(1 / found.drawn[0].chance, 1e-4)
    assert render_sample_list(found).splitlines() == drawn_ids(found)
    data = sample_data(found)
    json.dumps(data, allow_nan=False)
    assert data["size"] == len(data["drawn"]) == 12
    assert [one["name"] for one in data["parts"]] == list(PARTS)


def test_drawing_again_from_what_was_weighed_costs_nothing(pool):
    """The chances are the same for every seed: only the draw is another."""
    weighed = weigh_cases(pool, "pool", size=30, between=BETWEEN)
    one = draw_weighed(weighed, seed=5)
    assert one.drawn == draw_cases(pool, "pool", size=30, between=BETWEEN, seed=5).drawn


def test_a_reader_gets_the_cases_of_the_sample_alone(pool):
    """In a random order of their own; a list of one's own is no sample."""
    found = draw_cases(pool, "pool", size=20, between=BETWEEN)
    keep_reading_sample(pool, found, actor=EDITOR, readers=("Dr. A",))
    assignment = read_assignment(pool, "pool")
    with open_store(pool) as store:
        given = cases_to_read(store, assignment, "Dr. A")
        assert set(given) == set(drawn_ids(found))
        assert len(cases_to_read(store, assignment, "Dr. B")) == 240
        assign_cases(store, assignment, PlanRequest(readers=("Dr. A",)), EDITOR)
        assert read_plans(store, assignment)["Dr. A"].chances == ()


def test_an_audit_finds_a_sample_that_was_changed(pool):
    """Its chances are what every weighted number rests on."""
    found = draw_cases(pool, "pool", size=20, between=BETWEEN)
    keep_reading_sample(pool, found, actor=EDITOR)
    path = sample_path(pool, "pool", 1)
    for change, words in (
        (None, "pool:sample1: as recorded"),
        (path.read_bytes() + b" ", "pool:sample1: edited after it was recorded"),
        (b"", "pool:sample1: edited after it was recorded"),
    ):
        if change is not None:
            path.write_bytes(change)
        said = check_cohorts(pool, read_ledger(pool.ledger))
        assert words in {one.what for one in said}
    path.unlink()
    said = check_cohorts(pool, read_ledger(pool.ledger))
    assert "pool:sample1: recorded, and gone" in {one.what for one in said}


def test_a_cohort_that_was_imported_again_has_no_sample(pool, tmp_path):
    """Its cases are others: nothing of them was drawn."""
    found = draw_cases(pool, "pool", size=20, between=BETWEEN)
    keep_reading_sample(pool, found, actor=EDITOR)
    path = tmp_path / "again.csv"
    path.write_text("case_id,text\na,Clear.\n")
    options = ImportOptions(name="pool", role="external", replace=True)
    import_cohort(pool, path, options, actor=EDITOR)
    assert newest_sample(pool, "pool") is None


def test_a_check_of_a_draft_asks_nothing_on_a_value_sample(pool, read_sample):
    """It would count cases as drawn at random, and be paid for before it says so."""
    with pytest.raises(DataError, match="not at random"):
        read_check_basis(pool, read_cohort(pool, "pool"))


def test_a_sample_of_a_holdout_is_not_recorded_either(pool, tmp_path):
    """Whoever made it, and whatever the cohort was when it was drawn."""
    add_cohort(pool, tmp_path, "held", 30, 5, labels=False, role="holdout")
    found = draw_cases(pool, "pool", size=2, between=BETWEEN)
    keep_reading_sample(pool, found, actor=EDITOR)
    sample = newest_sample(pool, "pool").sample
    with pytest.raises(DataError, match="held is a holdout"):
        keep_sample(pool, read_cohort(pool, "held"), sample, actor=EDITOR)
    assert not sample_path(pool, "held", 1).exists()


def test_an_entry_that_does_not_say_when_it_was_drawn_is_none_of_ours(pool, right):
    """A ledger that was written by hand is not believed."""
    payload = {"cohort": "pool", "number": 1, "digest": "0" * 64}
    made = Event(
        action="sample_drawn", subject="pool:sample1", reason="by hand", payload=payload
    )
    append_event(pool.ledger, made, EDITOR)
    read_some(pool, right, list(right)[:5])
    with pytest.raises(LedgerError, match="does not say after which reference"):
        read_reference(pool, "pool")
