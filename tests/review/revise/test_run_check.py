"""Checking a draft: what it shows, what it rests on, and how long that holds."""

from dataclasses import replace

import pytest

from loop.core.errors import ConflictError, DataError, EngineError
from loop.prompts.catalog import write_version
from loop.review.revise.check import TargetOutcome
from loop.review.revise.check_record import evidence, recall_check
from loop.review.revise.corrections import correct_reference_from
from loop.review.revise.draft_files import beside
from loop.review.revise.draws import Surplus
from loop.review.revise.edit import GuideEdit, edit_draft, guide_text
from loop.review.revise.run_check import CheckSide, CheckStep, Examination
from loop.review.verdict import Edits
from loop.run import store as run_store
from loop.stats.paired import spend_alpha
from tests.review.revise.conftest import CASES
from tests.review.revise.stepping import FLUID, USELESS, WRONG, begin, check, overtake


@pytest.fixture
def draft(setting, store):
    """Begin a draft that fixes four cases."""
    return begin(setting, store, FLUID).draft


def stale(setting, store, draft, engine=""):
    """Return why the check of `draft` does not hold."""
    return recall_check(setting.workspace, store, draft.ref, engine).stale


def holds(setting, store, draft):
    """Return the check of `draft` if there is one that is not stale."""
    found = recall_check(setting.workspace, store, draft.ref)
    return found.checked if found and not found.stale else None


def test_a_check_lists_what_was_fixed_and_leaves_the_ledger_alone(
    setting, store, draft
):
    """Case ids and answers, never texts."""
    before = setting.workspace.ledger.read_bytes()
    checked = check(setting, store, draft)
    assert checked.passed
    assert checked.check.count(TargetOutcome.FIXED) == 2
    fixed = [one for one in checked.changes.fixed if one.label == "pleural_effusion"]
    assert [tuple(one) for one in fixed] == [
        (f"f{n}", "pleural_effusion", "present", "absent", "present") for n in range(4)
    ]
    assert checked.changes.broken == ()
    assert [one.case_id for one in checked.changes.unchanged] == ["s1"]
    assert setting.workspace.ledger.read_bytes() == before


def test_a_reload_finds_the_check_as_it_was(setting, store, draft):
    """It is kept beside the draft, whose digest does not change."""
    assert not holds(setting, store, draft)
    checked = check(setting, store, draft)
    assert holds(setting, store, draft) == checked


def test_another_engine_makes_a_check_stale(setting, store, draft):
    """What one engine answers says nothing of another."""
    check(setting, store, draft)
    assert stale(setting, store, draft, "rules") == ()
    assert stale(setting, store, draft, "vllm:m") == ("it asked rules, not vllm:m",)


def test_another_reference_makes_a_check_stale(setting, store, draft):
    """What is right has changed."""
    begin(setting, store, WRONG)
    check(setting, store, draft)
    correct_reference_from(setting.workspace, store, "dev", (WRONG.id,), setting.editor)
    assert "dev:ref2 is the newest" in stale(setting, store, draft)[0]
    assert not holds(setting, store, draft)


def test_another_protocol_makes_a_check_stale(setting, store, draft):
    """Its margins decided."""
    check(setting, store, draft)
    path = setting.workspace.protocol
    path.write_text(path.read_text() + "# agreed anew\n")
    assert stale(setting, store, draft) == ("the protocol was changed since",)


def test_another_pinned_case_makes_a_check_stale(setting, store, draft):
    """A pinned case was not looked at as one."""
    check(setting, store, draft)
    begin(setting, store, replace(FLUID, case_ids=("e0",), anchor=True))
    assert stale(setting, store, draft) == ("other cases are pinned now",)


def test_an_edit_makes_a_check_stale(setting, store, draft):
    """The wording that was measured is another one."""
    check(setting, store, draft)
    guide = replace(draft.guides[0], definition="Any fluid.")
    edit = GuideEdit(label=guide.label, text=guide_text(guide))
    edit_draft(setting.workspace, draft.ref, (edit,), setting.editor)
    assert stale(setting, store, draft) == ("the draft was edited since",)


def test_a_newer_version_makes_a_check_stale_and_a_new_one_impossible(
    setting, store, draft
):
    """The message names who and when, and the way out."""
    check(setting, store, draft)
    overtake(setting)
    assert "tiny@v2 was committed by Dr C. Example" in stale(setting, store, draft)[0]
    with pytest.raises(
        ConflictError, match=r"Dr C. Example at 2026-01-07T09:30.*draft rebase"
    ):
        check(setting, store, draft)


def test_a_damaged_check_counts_as_none(setting, store, draft):
    """Checking again makes it anew; nothing else is lost."""
    check(setting, store, draft)
    beside(setting.workspace, draft).check.write_text('{"draft": ')
    assert recall_check(setting.workspace, store, draft.ref) is None
    assert check(setting, store, draft).passed


def test_progress_says_which_run_it_is(setting, store, draft):
    """Two bars, not one that starts again."""
    seen = []

    def watch(step):
        def track(items):
            for item in items:
                seen.append(step)
                yield item

        return track

    check(setting, store, draft, Examination(watch=watch))
    first, second = CheckStep(CheckSide.PARENT, 1, 2), CheckStep(CheckSide.DRAFT, 2, 2)
    assert seen == [first] * 25 + [second] * 25


def test_a_check_that_was_interrupted_goes_on_with_its_runs(setting, store, draft):
    """The run that was begun is taken up, not begun anew."""

    def watch(step):
        def track(items):
            for number, item in enumerate(items):
                if step.side is CheckSide.DRAFT and number == 10:
                    raise KeyboardInterrupt
                yield item

        return track

    with pytest.raises(KeyboardInterrupt):
        check(setting, store, draft, Examination(watch=watch))
    (begun,) = [run.id for run in store.find_runs(finished=False)]
    assert not holds(setting, store, draft)
    assert check(setting, store, draft).runs[1] == begun


def test_a_draft_edited_while_it_is_checked_is_not_taken_for_the_other(
    setting, store, draft
):
    """The check must be of the wording that is there."""
    guide = replace(draft.guides[0], definition="Any fluid.")
    edit = GuideEdit(label=guide.label, text=guide_text(guide))

    def watch(step):
        if step.side is CheckSide.PARENT:
            edit_draft(setting.workspace, draft.ref, (edit,), setting.editor)
        return iter

    with pytest.raises(ConflictError, match="edited while it was checked"):
        check(setting, store, draft, Examination(watch=watch))
    assert not holds(setting, store, draft)


def test_lint_errors_stop_before_anything_is_run(setting, store):
    """The check says so and is kept too."""
    guide = replace(setting.tiny.guides[0], exclusions=("pleural effusion",))
    draft = begin(setting, store, guides={guide.label: guide}).draft
    checked = check(setting, store, draft)
    assert (checked.check, checked.runs) == (None, ())
    assert checked.objections == ("lint found errors",)
    assert store.find_runs() == []
    assert holds(setting, store, draft) == checked


def test_an_unchanged_draft_is_not_checked(setting, store):
    """Nothing can come of it."""
    with pytest.raises(DataError, match="nothing to check"):
        check(setting, store, begin(setting, store).draft)


def test_a_draft_that_names_no_cohort_needs_one(setting, store):
    """Drafts made elsewhere are checked all the same."""
    foreign = replace(
        setting.tiny,
        number=0,
        draft="foreign",
        parent=setting.tiny.digest,
        system="Read well.\n",
    )
    write_version(setting.workspace, foreign)
    with pytest.raises(DataError, match="which cohort"):
        check(setting, store, foreign)
    assert check(setting, store, foreign, Examination(cohort="dev")).runs


def test_what_cannot_be_measured_is_refused_before_anything_is_asked(
    setting, store, draft
):
    """An engine may cost hours and money."""
    setting.workspace.protocol.write_text("accuracy: high\n")
    watched = []
    with pytest.raises(DataError, match="protocol"):
        check(setting, store, draft, Examination(watch=watched.append))
    assert (watched, store.find_runs()) == ([], [])


def test_an_engine_with_chance_is_asked_in_turns(setting, store, draft, wavering):
    """Each draw of both before the next, the first of them taking turns."""
    seen = []

    def watch(step):
        seen.append((step.side.value, step.number, step.of))
        return iter

    checked = check(setting, store, draft, Examination(engine="wavering", watch=watch))
    assert [side for side, _, _ in seen] == [
        *("parent", "draft"),
        *("draft", "parent"),
        *("parent", "draft"),
    ]
    assert [(number, of) for _, number, of in seen] == [(n, 6) for n in range(1, 7)]
    # Never draw 0, on which the targeted cases were chosen.
    assert [seed for seed, _ in wavering.asked] == [1, 1, 2, 2, 3, 3]
    runs = [store.find_runs(ids=[run])[0].spec for run in checked.runs]
    assert [spec.draw for spec in runs] == [1, 2, 3, 1, 2, 3]
    assert [spec.parameters["blank_lines"] for spec in runs] == [1, 2, 3, 1, 2, 3]
    assert {spec.prompt for spec in runs[:3]} == {"tiny@v1"}
    assert {spec.prompt for spec in runs[3:]} == {draft.ref}
    evidence = checked.check.over_draws
    assert evidence.draws == 3
    assert 0 < evidence.churn < 0.5
    assert evidence.surplus.shown
    assert checked.passed


def test_the_check_over_draws_is_kept_as_it_was(setting, store, draft, wavering):
    """Read again, it says the same, and the ledger's form of it, too."""
    checked = check(setting, store, draft, Examination(engine="wavering", draws=2))
    assert len(checked.runs) == 4
    kept = recall_check(setting.workspace, store, draft.ref).checked
    assert kept == checked
    assert evidence(kept)["form"] == 2
    assert evidence(kept)["draws"] == 2


def test_a_check_over_draws_goes_on_where_it_was_stopped(
    setting, store, draft, wavering, monkeypatch
):
    """Nothing that was answered is asked again."""
    # Each answer is read as it comes, not many at a time.
    monkeypatch.setattr(run_store, "MAX_AGE_S", 0)

    def watch(step):
        def track(items):
            for number, item in enumerate(items):
                if step.number == 4 and number == 10:
                    raise KeyboardInterrupt
                yield item

        return track

    with pytest.raises(KeyboardInterrupt):
        check(setting, store, draft, Examination(engine="wavering", watch=watch))
    before = len(wavering.asked)
    checked = check(setting, store, draft, Examination(engine="wavering"))
    # Twice the canary of the parent's finished draw, then what was missing.
    assert [seed for seed, _ in wavering.asked[before:]] == [1, 1, 2, 3, 3]
    assert checked.check.over_draws.draws == 3


def test_the_protocol_says_how_many_draws_and_what_stops(
    setting, store, draft, wavering
):
    """Both are the protocol's, and what stops is said."""
    path = setting.workspace.protocol
    path.write_text(path.read_text() + "\ndraws: 1\nmax_draws: 1\nevery_target: true\n")
    checked = check(setting, store, draft, Examination(engine="wavering"))
    assert len(checked.runs) == 2
    assert checked.check.every_target
    open_ones = checked.check.count(TargetOutcome.UNCHANGED)
    said = any("targeted cases did not change" in one for one in checked.objections)
    assert said is bool(open_ones)


@pytest.fixture
def middling(monkeypatch):
    """Show nothing of targeted cases that one draw or two put right."""
    monkeypatch.setattr(Surplus, "shown", property(lambda self: self.readings > 2 * 2))


def test_an_undecided_check_asks_more_and_spends_less_level_each_time(
    setting, store, draft, wavering, middling
):
    """Until it is decided; what was asked before is kept, in turns as before."""
    seen = []

    def watch(step):
        seen.append((step.side.value, step.number, step.of))
        return iter

    how = Examination(engine="wavering", draws=1, max_draws=5, watch=watch)
    checked = check(setting, store, draft, how)
    assert [seed for seed, _ in wavering.asked] == [1, 1, 2, 2, 3, 3]
    sides = ["parent", "draft", "draft", "parent", "parent", "draft"]
    assert seen == [
        (side, number, 2 * ((number + 1) // 2)) for number, side in enumerate(sides, 1)
    ]
    assert checked.passed
    assert checked.looks == (1, 2, 3)
    evidence = checked.check.over_draws
    assert (evidence.draws, evidence.look) == (3, 3)
    assert evidence.alpha == pytest.approx(spend_alpha(0.05, 3))
    assert evidence.confidence == pytest.approx(1 - spend_alpha(0.05, 3))


def test_a_further_look_by_hand_is_counted(setting, store, draft, wavering, middling):
    """Who asks until it holds spends the level as well; an edited draft is another."""
    one = Examination(engine="wavering", draws=1, max_draws=1)
    assert not check(setting, store, draft, one).passed
    more = Examination(engine="wavering", draws=3, max_draws=3)
    second = check(setting, store, draft, more)
    assert second.looks == (1, 3)
    assert second.check.over_draws.look == 2
    # The same look again is no further one.
    again = check(setting, store, draft, one)
    assert (again.looks, again.check.over_draws.look) == ((1, 3), 1)
    # What another engine says of it, or other cases, nobody has looked at.
    other = replace(more, engine="wavering:other")
    assert check(setting, store, draft, other).looks == (3,)
    setting.add_cohort("more", "dev", CASES)
    elsewhere = replace(other, cohort="more", draws=1, max_draws=1)
    assert check(setting, store, draft, elsewhere).looks == (1,)
    guide = replace(draft.guides[0], definition="Fluid, of any amount.")
    edit = GuideEdit(label=guide.label, text=guide_text(guide))
    edit_draft(setting.workspace, draft.ref, (edit,), setting.editor)
    assert check(setting, store, draft, more).looks == (3,)


def test_draws_that_cannot_help_are_not_asked(setting, store, wavering):
    """As for a draft that puts nothing right."""
    useless = begin(setting, store, USELESS).draft
    how = Examination(engine="wavering", draws=1, max_draws=9)
    checked = check(setting, store, useless, how)
    evidence = checked.check.over_draws
    assert (evidence.surplus.value <= 0) or len(checked.objections) > 1
    assert checked.looks == (1,)


def test_an_engine_that_repeats_itself_has_one_draw(setting, store, draft):
    """More of the same shows nothing."""
    with pytest.raises(EngineError, match="more draws show nothing"):
        check(setting, store, draft, Examination(draws=3))
    checked = check(setting, store, draft, Examination(draws=1))
    assert [one.spec.draw for one in store.find_runs()] == [0, 0]
    assert checked.check.over_draws is None
    assert "form" not in evidence(checked)


def test_stored_answers_of_the_parent_are_used_after_a_look(
    setting, store, draft, wavering
):
    """A second draft asks the parent only the canary."""
    check(setting, store, draft, Examination(engine="wavering"))
    other = begin(setting, store, replace(FLUID, edits=Edits(terms=("layers",)))).draft
    before = len(wavering.asked)
    check(setting, store, other, Examination(engine="wavering"))
    streams = wavering.asked[before:]
    parent = setting.tiny.guides[0].terms[0]
    assert [seed for seed, terms in streams if terms == parent] == [3, 3]
    assert [seed for seed, terms in streams if terms != parent] == [1, 2, 3]


def test_a_model_that_was_replaced_stops_the_check(
    setting, store, draft, wavering, monkeypatch
):
    """Else nonsense would pass for what the new model is better at."""
    check(setting, store, draft, Examination(engine="wavering"))
    other = begin(setting, store, replace(FLUID, edits=Edits(terms=("layers",)))).draft
    # So different that no 20 prompts are answered alike by chance.
    monkeypatch.setattr(wavering, "weights", "others")
    monkeypatch.setattr(wavering, "errors", 200)
    with pytest.raises(EngineError, match="has changed"):
        check(setting, store, other, Examination(engine="wavering"))
    assert recall_check(setting.workspace, store, other.ref) is None
