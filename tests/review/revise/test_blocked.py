"""A verdict that no draft can be made from is refused when handed in, else named."""

from dataclasses import replace
from datetime import timedelta

import pytest

from loop.core.errors import DataError, OverlapError, UnknownLabelError
from loop.core.records import Clarification, Value
from loop.labels.cohort import read_cohort
from loop.prompts.catalog import list_drafts
from loop.review.revise.blocked import (
    Blocked,
    find_blocked,
    name_blocked,
    refuse_blocked,
)
from loop.review.submit import VerdictContext, save_verdicts
from loop.review.verdict import Edits
from loop.review.verdict_files import ImportDefaults, dry_run_file, take_file
from tests.review.revise.stepping import FLUID, WHEN, begin, now, overtake
from tests.review.revise.test_begin import judge

HIDDEN = "There is a meniscus of fluid along the left wall today."
HEAD = "prompt: tiny@v1\ncohort: dev\njudgement: model_wrong\nverdicts:\n"
GOOD = "- {case: f0, label: pleural effusion, terms: fluid ... base}\n"


def hand_in(setting, store, rows, *, head=HEAD):
    """Take a verdict file with these rows."""
    path = setting.verdicts(head + rows)
    return take_file(
        setting.workspace, store, path, ImportDefaults("Ann", cohort="dev"), now
    )


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (
            f"- {{case: f0, label: cardiomegaly, terms: '{HIDDEN}'}}\n",
            OverlapError,
            "verdict 2, .*6 or more consecutive words .*h1 of cohort held.* own words",
        ),
        (
            "- {case: f0, label: edema, terms: wet lungs}\n",
            DataError,
            "verdict 2: tiny@v1 has no guide for edema. Judge one of",
        ),
        (
            "- {case: f0, label: cardiomegaly, remove_terms: big heart}\n",
            DataError,
            "verdict 2: cardiomegaly has no such entry in terms to remove",
        ),
        (
            "- {case: f0, label: cardiomegaly, terms: big, exclusions: Big}\n",
            DataError,
            "verdict 2: 'big' is to be a term and an exclusion of cardiomegaly. Keep",
        ),
        (
            "- {case: f1, label: pleural effusion, exclusions: Fluid ... base}\n",
            DataError,
            "verdicts 1 and 2 disagree on pleural_effusion.*Agree on one",
        ),
        (
            "- {case: f0, label: edma, terms: wet lungs}\n",
            UnknownLabelError,
            "verdict 2: .*Did you mean",
        ),
        (
            "- {case: f0, label: cardiomegaly, exclusions: cardiomegaly}\n",
            DataError,
            "cardiomegaly.*Correct the verdict",
        ),
    ],
)
def test_what_would_block_a_draft_is_refused_when_it_is_handed_in(
    setting, store, rows, error, message
):
    """Nothing of the file is kept, in a dry run neither; the others are not blamed."""
    setting.add_cohort("held", "holdout", [("h1", HIDDEN, 1, 0)])
    with pytest.raises(error, match=message) as caught:
        hand_in(setting, store, GOOD + rows)
    assert "meniscus" not in str(caught.value)
    path, occasion = setting.folder / "verdicts.yaml", ImportDefaults("Ann")
    with pytest.raises(error, match=message):
        dry_run_file(setting.workspace, store, path, occasion, now)
    assert store.list_verdicts() == []


def test_without_a_version_only_what_holds_for_any_is_refused(setting, store):
    """A copy and a contradiction; a label may have a guide in another prompt."""
    setting.add_cohort("held", "holdout", [("h1", HIDDEN, 1, 0)])
    head = HEAD.replace("prompt: tiny@v1\n", "")
    for rows, message in (
        (f"- {{case: f0, label: edema, terms: '{HIDDEN}'}}\n", "h1 of cohort held"),
        ("- {case: f0, label: edema, terms: wet, exclusions: wet}\n", "Keep one"),
    ):
        with pytest.raises(DataError, match=message):
            hand_in(setting, store, rows, head=head)
    rows = "- {case: f0, label: edema, remove_terms: wet lungs}\n"
    assert len(hand_in(setting, store, rows, head=head).ids) == 1


def test_verdicts_that_were_answered_may_be_handed_in_again(setting, store):
    """Handing a file in twice changes nothing, also after their version came."""
    rows = "- {case: f0, label: cardiomegaly, remove_terms: cardiomegaly}\n"
    first = hand_in(setting, store, rows)
    (one, two) = setting.tiny.guides
    overtake(setting, guides=(one, two.__class__(**{**_fields(two), "terms": ()})))
    assert hand_in(setting, store, rows).ids == first.ids
    path, occasion = setting.folder / "verdicts.yaml", ImportDefaults("Ann")
    found = dry_run_file(setting.workspace, store, path, occasion, now)
    assert (found.verdicts, found.known) == (1, 1)


def _fields(guide):
    return {name: getattr(guide, name) for name in guide.__slots__}


def test_what_came_to_block_it_later_is_named_by_id_with_the_way_on(setting, store):
    """The version took the entry out meanwhile; the other verdict is not held up."""
    gone = judge("cardiomegaly", remove_terms=("big heart",))
    save(store, gone, FLUID)
    before = list_drafts(setting.workspace, "tiny")
    with pytest.raises(DataError) as caught:
        begin(setting, store, gone.id, FLUID.id)
    said = str(caught.value)
    assert f"1 verdict cannot be applied: {gone.id} on cardiomegaly: " in said
    assert FLUID.id not in said
    assert "verdict withdraw ID" in said
    assert "--skip-blocked" in said
    assert list_drafts(setting.workspace, "tiny") == before
    made = begin(setting, store, gone.id, FLUID.id, skip_blocked=True)
    assert made.draft.verdicts == (FLUID.id,)
    (note,) = [one for one in made.notes if one.startswith("not applied")]
    assert gone.id in note
    assert "no such entry in terms" in note


def test_every_blocked_verdict_is_named_and_the_first_of_two_stands(setting, store):
    """A contradiction, a copy of a holdout, and an error that lint finds."""
    setting.add_cohort("held", "holdout", [("h1", HIDDEN, 1, 0)])
    against = judge(exclusions=("fluid ... base",))
    copied = judge("cardiomegaly", terms=(HIDDEN,))
    both = judge("cardiomegaly", exclusions=("cardiomegaly",))
    for minutes, one in enumerate((FLUID, against, copied, both)):
        save(store, one, after=minutes)
    ids = [one.id for one in (FLUID, against, copied, both)]
    with pytest.raises(DataError, match="3 verdicts cannot be applied") as caught:
        begin(setting, store, *ids)
    for one in (against, copied, both):
        assert f"{one.id} on {one.label}" in str(caught.value)
    assert "meniscus" not in str(caught.value)
    made = begin(setting, store, *ids, skip_blocked=True)
    assert made.draft.verdicts == (FLUID.id,)
    assert made.sound


def test_two_verdicts_may_take_out_the_same_entry(setting, store):
    """Both asked for it, and it goes once."""
    one = judge("cardiomegaly", remove_terms=("cardiomegaly",), terms=("big heart",))
    two = judge("cardiomegaly", remove_terms=("Cardiomegaly",))
    made = begin(setting, store, one, two)
    assert made.draft.guide("cardiomegaly").terms == ("big heart",)
    assert any("is gone already" in note for note in made.notes)


def test_a_verdict_without_wording_is_never_looked_at(setting):
    """Most verdicts have none, and cohorts may be large."""
    plain = judge()
    assert plain.edits == Edits()
    refuse_blocked(None, (plain,), prompt="tiny@v1", cohort=None)


def save(store, *verdicts, after=0):
    """Keep verdicts as an earlier release did, without a look at what they ask for."""
    made_on = VerdictContext("dev", "tiny@v1", "")
    save_verdicts(store, verdicts, made_on, WHEN + timedelta(minutes=after))


def test_what_is_blocked_is_named_with_the_way_on():
    """One or several, each with its label and reason."""
    one = Blocked("v1", "edema", "no such entry.")
    two = Blocked("v2", "mass", "a copy")
    assert one.words == "v1 on edema: no such entry."
    way = (
        "Withdraw a kept one with `ranloop verdict withdraw ID --why REASON`, take one "
        "of a file out of it, or apply all others with --skip-blocked."
    )
    assert name_blocked([one]) == (
        f"1 verdict cannot be applied: v1 on edema: no such entry. {way}"
    )
    assert name_blocked([one, two]) == (
        "2 verdicts cannot be applied: v1 on edema: no such entry; v2 on mass: a copy. "
        + way
    )


def test_each_blocked_verdict_has_its_reason_and_the_others_none(setting):
    """In their order, whichever comes first; without the numbers of a file."""
    cohort = read_cohort(setting.workspace, "dev")
    gone = judge("cardiomegaly", remove_terms=("big heart",))
    rule = {"phrase": "fluid", "value": Value.PRESENT}
    yes = judge(clarifications=(Clarification(**rule),))
    no = judge(clarifications=(Clarification(**(rule | {"value": Value.ABSENT})),))
    fine = judge("cardiomegaly", terms=("large heart",))
    right = replace(FLUID, edits=Edits(), correct_value=Value.PRESENT)
    wrong = replace(right, correct_value=Value.ABSENT, reviewer="Dr Z")
    given = (gone, yes, no, fine, right, wrong)
    found = find_blocked(setting.workspace, setting.tiny, given, cohort)
    assert [(one.id, one.label) for one in found] == [
        (gone.id, "cardiomegaly"),
        (no.id, "pleural_effusion"),
        (wrong.id, "pleural_effusion"),
    ]
    entry, disagree, values = (one.reason for one in found)
    assert entry.startswith("cardiomegaly has no such entry in terms to remove")
    assert disagree.startswith("two verdicts disagree on pleural_effusion, 'fluid'")
    assert values.startswith("two verdicts disagree on pleural_effusion of case")
