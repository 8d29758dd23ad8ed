"""What a judge says of a pair, and the verdicts that a clinician's words amount to."""

from types import SimpleNamespace

import pytest

from loop.core.errors import DataError
from loop.core.records import (
    Clarification,
    Entry,
    ErrorWeight,
    Field,
    Item,
    Outcome,
    Status,
)
from loop.prompts.catalog import read_version
from loop.prompts.outputs.judged import listed_field
from loop.review.pair_verdicts import (
    JudgedAnswer,
    ListedError,
    MissedError,
    PairVerdict,
    name_verdicts,
    read_judged,
)
from loop.review.verdict import Edits, ErrorVerdict, Judgement, Verdict
from loop.run.manifest import find_run
from loop.run.store import open_store
from tests.judge.scenes import call, rate, tell

SERIOUS, MINOR, NONE = (
    ErrorWeight.SIGNIFICANT,
    ErrorWeight.INSIGNIFICANT,
    ErrorWeight.NO_ERROR,
)
ANSWER = JudgedAnswer(
    case_id="p1",
    status=Status.ANSWERED,
    problem="",
    errors=(
        ListedError("location", SERIOUS, "left for right"),
        ListedError("severity", SERIOUS, "large for small"),
        ListedError("severity", MINOR, "mild for minimal"),
    ),
)


def say(said, answer=ANSWER, **more):
    """Return label to verdict."""
    verdicts = name_verdicts(answer, said, "Ann", **more)
    return {one.label: one for one in verdicts}


def test_what_a_judge_lists_is_read_with_its_places(workspace, tmp_path, monkeypatch):
    """Words, category, weight and where in the two texts."""
    rate(workspace, tmp_path)
    assert call(workspace, "run", "mine", "--cohort", "rp").exit_code == 0
    run = find_run(workspace, "latest")
    with open_store(workspace) as store:
        version = read_version(workspace, run.spec.prompt)
        found = read_judged(store, run, version, "p1")
        (error,) = found.errors
        assert (error.category, error.weight) == ("location", SERIOUS)
        assert {one.input for one in error.spans} == {"reference", "candidate"}
        assert found.matches == 0 and 0 < found.own < 1
        assert read_judged(store, run, version, "p0").errors == ()
        with pytest.raises(DataError, match="did not ask pair"):
            read_judged(store, run, version, "p99")


def test_words_that_stand_twice_mark_nothing(workspace, tmp_path, monkeypatch):
    """Nothing says which of the two is meant."""
    text = "No left pleural effusion. Large right pleural effusion."
    item = Item(id="a", variables={"reference": text, "candidate": "Clear lungs."})
    found = listed_field(["pleural effusion", "Large"], item)
    assert [len(one.spans) for one in found.entries] == [0, 1]


def test_an_unreadable_answer_lists_nothing(workspace, tmp_path, monkeypatch):
    """And says why; its status is no answer without errors."""
    rate(workspace, tmp_path)
    tell(monkeypatch, {"Small right pleural effusion.": "no JSON"})
    made = call(workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    assert made.exit_code == 0, made.output
    call(workspace, "run", "listed", "--cohort", "rp", "--engine", "told")
    run = find_run(workspace, "latest")
    with open_store(workspace) as store:
        version = read_version(workspace, run.spec.prompt)
        found = read_judged(store, run, version, "p1")
    assert found.status is Status.UNPARSED
    assert (found.errors, found.matches, bool(found.problem)) == ((), None, True)


def test_an_error_that_is_none_makes_its_category_wrong():
    """The others of the pair are recorded as right."""
    found = say(PairVerdict(right={0: NONE}, anchor=True, comment="why"))
    wrong, right = found["location"], found["severity"]
    assert (wrong.judgement, wrong.correct_counts) == (Judgement.MODEL_WRONG, (0, 0))
    assert wrong.anchor and wrong.comment == "why"
    assert (right.judgement, right.errors) == (Judgement.ANSWER_RIGHT, ())
    assert not right.anchor


def test_another_weight_counts_all_errors_of_the_category():
    """Those that are right are counted as they are."""
    found = say(PairVerdict(right={1: MINOR}))
    assert found["severity"].correct_counts == (0, 2)
    assert [one.words for one in found["severity"].errors] == [
        "large for small",
        "mild for minimal",
    ]


def test_an_error_of_another_category_is_two_verdicts():
    """It is none where the judge puts it, and one where it belongs."""
    moved = MissedError("omission", SERIOUS, "left for right")
    found = say(PairVerdict(right={0: NONE}, missed=(moved,)))
    assert found["location"].correct_counts == (0, 0)
    assert found["omission"].correct_counts == (1, 0)
    assert found["omission"].errors[0].said is NONE


def test_a_rule_without_a_wrong_count_is_a_verdict_too():
    """On the guide, with the counts as the judge has them."""
    rule = Edits(clarifications=(Clarification(phrase="mild", value=MINOR),))
    said = PairVerdict(
        edits={"severity": rule}, judgement=Judgement.GUIDELINE_AMBIGUOUS
    )
    verdict = say(said)["severity"]
    assert (verdict.judgement, verdict.edits) == (Judgement.GUIDELINE_AMBIGUOUS, rule)
    assert verdict.correct_counts == (1, 1)


def test_a_category_called_wrong_before_is_right_now():
    """Else the earlier verdict would stand beside what was said last."""
    found = say(PairVerdict(), earlier=("omission",))
    assert {one.judgement for one in found.values()} == {Judgement.ANSWER_RIGHT}
    assert set(found) == {"location", "severity", "omission"}


def test_nothing_said_of_nothing_is_no_verdict():
    """And a place beyond the list is no error of this answer."""
    empty = JudgedAnswer(case_id="p0", status=Status.ANSWERED, problem="")
    assert say(PairVerdict(), empty) == {}
    with pytest.raises(DataError, match="fewer errors than were judged"):
        say(PairVerdict(right={3: NONE}))


def test_a_count_without_words_is_listed_so():
    """A judge may count more errors than it lists, and each can be judged."""
    entry = Entry("left for right", "location", "significant")
    fields = {
        "significant.location": Field(2, (), (entry,)),
        "insignificant.location": Field(0),
        "matched": Field(3),
    }
    outcome = Outcome(item_id="p1", status=Status.ANSWERED, fields=fields)
    store = SimpleNamespace(find_outcome=lambda *_: SimpleNamespace(outcome=outcome))
    version = SimpleNamespace(labels=("location",), contract="green_sections")
    found = read_judged(store, None, version, "p1")
    assert [one.words for one in found.errors] == ["left for right", ""]
    assert (found.matches, found.matched, found.own) == (3, (), None)


def test_all_that_is_said_of_a_pair_is_in_its_verdicts():
    """By category, in the order of the answer, of what was missed, and of the rest."""
    rule = Edits(clarifications=(Clarification(phrase="mild", value=MINOR),))
    said = PairVerdict(
        right={2: SERIOUS, 0: SERIOUS},
        missed=(MissedError("omission", MINOR, "a line"),),
        judgement=Judgement.GUIDELINE_AMBIGUOUS,
        edits={"comparison": rule},
        comment="why",
        anchor=True,
    )
    common = {"case_ids": ("p1",), "reviewer": "Ann", "comment": "why"}
    wrong = common | {"judgement": Judgement.GUIDELINE_AMBIGUOUS, "anchor": True}
    assert name_verdicts(ANSWER, said, "Ann", earlier=("severity", "views")) == (
        Verdict(label="location", judgement=Judgement.ANSWER_RIGHT, **common),
        Verdict(
            label="severity",
            errors=(
                ErrorVerdict(words="large for small", said=SERIOUS, right=SERIOUS),
                ErrorVerdict(words="mild for minimal", said=MINOR, right=SERIOUS),
            ),
            **wrong,
        ),
        Verdict(
            label="omission",
            errors=(ErrorVerdict(words="a line", said=NONE, right=MINOR),),
            **wrong,
        ),
        Verdict(label="comparison", edits=rule, **wrong),
        Verdict(label="views", judgement=Judgement.ANSWER_RIGHT, **common),
    )


@pytest.mark.parametrize("place", [-1, 3])
def test_a_place_is_one_of_the_answer_s(place):
    """The last one is; neither the one after it nor one before the first."""
    assert say(PairVerdict(right={0: NONE, 2: NONE}))
    with pytest.raises(DataError, match="fewer errors than were judged"):
        say(PairVerdict(right={0: NONE, place: NONE}))


def test_errors_come_by_category_and_the_significant_first():
    """As the prompt has its categories; of another category none is listed."""

    def read(fields, contract="green_sections"):
        outcome = Outcome(item_id="p1", status=Status.ANSWERED, fields=fields)
        store = SimpleNamespace(
            find_outcome=lambda *_: SimpleNamespace(outcome=outcome)
        )
        version = SimpleNamespace(labels=("severity", "location"), contract=contract)
        return read_judged(store, None, version, "p1")

    found = read(
        {
            "insignificant.location": Field(1, (), (Entry("a", "location", ""),)),
            "significant.location": Field(2, (), (Entry("b", "location", ""),)),
            "insignificant.severity": Field(1, (), (Entry("c", "severity", ""),)),
            "significant.omission": Field(1, (), (Entry("d", "omission", ""),)),
        }
    )
    assert [(one.category, one.weight, one.words) for one in found.errors] == [
        ("severity", MINOR, "c"),
        ("location", SERIOUS, "b"),
        ("location", SERIOUS, ""),
        ("location", MINOR, "a"),
    ]
    assert (found.matches, found.matched, found.own) == (None, (), None)
