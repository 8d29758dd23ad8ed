"""The list of open drafts, what became of one, and a version as a model receives it."""

import errno
from dataclasses import replace
from types import SimpleNamespace

import pytest

from loop.core.errors import WriteError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.prompts.catalog import write_version
from loop.prompts.version import CallPlan
from loop.review.revise.commit import (
    CommitDecision,
    commit_checked,
    discard_draft,
    keep_draft,
)
from loop.review.revise.draft import (
    MODELS,
    RULES,
    DraftCheckStatus,
    count_change,
    find_engine_counter,
    find_fate,
    lint_draft,
    list_open_drafts,
    name_unread,
    render_shown,
    show_draft,
)
from loop.review.revise.draft_files import (
    Acceptance,
    DraftMetadata,
    DraftOrigin,
    beside,
    keep_accepted,
    read_about,
    write_draft,
)
from loop.review.revise.edit import GuideEdit, edit_draft, guide_text
from tests.review.revise.conftest import TINY
from tests.review.revise.stepping import (
    FLUID,
    OTHER,
    USELESS,
    begin,
    check,
    now,
    overtake,
)


def listed(setting, store):
    """Return the open drafts of ``tiny``, by reference."""
    return {one.ref: one for one in list_open_drafts(setting.workspace, store, "tiny")}


def test_a_draft_tells_where_it_stands(setting, store):
    """Whose, from what, checked or not, and behind or not."""
    passed = begin(setting, store, FLUID).draft
    failed = begin(setting, store, USELESS).draft
    by_hand = begin(setting, store).draft
    check(setting, store, passed)
    check(setting, store, failed)
    found = listed(setting, store)
    assert [found[one.ref].checked for one in (passed, failed, by_hand)] == [
        DraftCheckStatus.PASSED,
        DraftCheckStatus.OBJECTIONS,
        DraftCheckStatus.NEVER,
    ]
    assert [one.origin for one in found.values()] == [
        DraftOrigin.VERDICTS,
        DraftOrigin.VERDICTS,
        DraftOrigin.HAND,
    ]
    info = found[passed.ref]
    assert (info.parent_ref, info.behind, info.cohort) == ("tiny@v1", False, "dev")
    assert (info.author, info.verdicts) == (setting.editor.name, (FLUID.id,))
    overtake(setting)
    info = listed(setting, store)[passed.ref]
    assert (info.parent_ref, info.behind, info.checked) == (
        "tiny@v1",
        True,
        DraftCheckStatus.STALE,
    )


def test_an_optimizer_may_lay_down_its_drafts(setting, store):
    """Its proposals arrive where the others do."""
    draft = replace(
        TINY, number=0, draft="proposal", parent=TINY.digest, system="Read on.\n"
    )
    about = DraftMetadata(
        cohort="dev", origin=DraftOrigin.OPTIMIZER, begun_by="gepa", begun=""
    )
    write_draft(setting.workspace, draft, about)
    assert listed(setting, store)[draft.ref].origin is DraftOrigin.OPTIMIZER


def test_a_damaged_draft_hides_no_other(setting, store):
    """It is named with its problem."""
    good, bad = begin(setting, store, FLUID).draft, begin(setting, store).draft
    folder = setting.workspace.private / "drafts" / "tiny" / bad.draft
    (folder / "guides.yaml").write_text("- no guides")
    found = listed(setting, store)
    assert "guides.yaml" in found[bad.ref].problem
    assert found[good.ref].problem == ""


def test_a_kill_after_the_first_file_leaves_no_draft(setting, store):
    """What a draft is about comes first and means nothing without it."""
    draft = begin(setting, store, FLUID).draft
    path = beside(setting.workspace, draft).about
    path.with_name("d20260101-000000-abcdef.about.json").write_bytes(path.read_bytes())
    assert list(listed(setting, store)) == [draft.ref]


def test_a_shown_draft_names_its_copies_instead_of_failing(setting, store):
    """A holdout imported later must not hide the draft that copies it."""
    text = "There is a meniscus of fluid along the left wall today."
    guide = replace(TINY.guides[0], definition=text)
    draft = begin(setting, store, guides={guide.label: guide}).draft
    (unread,) = show_draft(setting.workspace, draft.ref).notes
    assert "`rules` reads nothing of what is changed" in unread
    setting.add_cohort("held", "holdout", [("h1", text, 1, 0)])
    shown = show_draft(setting.workspace, draft.ref)
    assert "h1 of cohort held" in shown.notes[1]
    assert shown.diff.counts() == {"+definition": 1, "-definition": 1}


def test_a_read_only_workspace_is_said_and_nothing_changes(setting, store, monkeypatch):
    """Neither a new draft nor an edited one; what was there stays readable."""
    draft = begin(setting, store, FLUID).draft
    guide = replace(TINY.guides[0], definition="Any fluid.")
    edit = GuideEdit(label=guide.label, text=guide_text(guide))
    before = setting.state()

    def refuse(*_args, **_options):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(WriteError, match="read-only"):
        edit_draft(setting.workspace, draft.ref, (edit,), OTHER)
    with pytest.raises(WriteError, match="read-only"):
        begin(setting, store)
    assert list(listed(setting, store)) == [draft.ref]
    assert setting.state() == before


def test_a_shown_prompt_has_a_placeholder_for_the_case():
    """What a model receives, without any case."""
    shown = render_shown(TINY)
    (call,) = shown.calls
    assert [message.role for message in call.messages] == ["system", "user"]
    assert call.messages[1].content.endswith("[text of the case]\n")
    assert shown.tokens == call.tokens > 0


def test_a_version_with_a_call_a_label_shows_every_call():
    """Their tokens add up."""
    shown = render_shown(replace(TINY, plan=CallPlan.PER_LABEL))
    assert [call.name for call in shown.calls] == ["pleural_effusion", "cardiomegaly"]
    assert shown.tokens == sum(call.tokens for call in shown.calls)


def test_a_draft_without_its_notes_tells_its_origin_by_its_verdicts(setting, store):
    """Drafts of an earlier release are listed too."""
    foreign = replace(
        TINY, number=0, draft="old", parent=TINY.digest, verdicts=("0123456789ab",)
    )
    write_version(setting.workspace, foreign)
    info = listed(setting, store)[foreign.ref]
    assert (info.origin, info.cohort) == (DraftOrigin.VERDICTS, "")


def test_a_committed_draft_names_its_version(setting, store):
    """Whoever had it open elsewhere is told where it went."""
    draft = begin(setting, store, FLUID).draft
    check(setting, store, draft)
    commit_checked(
        setting.workspace, store, draft.ref, OTHER, CommitDecision("needed"), now=now
    )
    fate = find_fate(setting.workspace, draft.ref)
    recorded = read_ledger(setting.workspace.ledger)[-1].time
    assert fate == ("tiny@v2", OTHER.name, recorded, "needed")


def test_a_discarded_draft_names_who_gave_it_up(setting, store):
    """It was measured, so it stands in the ledger."""
    draft = begin(setting, store, FLUID).draft
    check(setting, store, draft)
    discard_draft(setting.workspace, draft.ref, OTHER, "not worth it", now=now)
    fate = find_fate(setting.workspace, draft.ref)
    assert fate is not None
    assert (fate.version, fate.actor, fate.reason) == ("", OTHER.name, "not worth it")


def test_private_work_leaves_no_trace(setting, store):
    """Nothing was measured, so nothing was recorded."""
    draft = begin(setting, store, FLUID).draft
    discard_draft(setting.workspace, draft.ref, OTHER, "a slip", now=now)
    assert find_fate(setting.workspace, draft.ref) is None


def test_tokens_are_counted_for_the_model_of_the_engine(tmp_path):
    """The remark names it where its tokenizer is not there; rules have none."""
    workspace = WorkspacePaths(tmp_path)
    named = [
        find_engine_counter(workspace, engine).remark
        for engine in ("openai:made-up@http://x/v1", "vllm:made-up", "rules")
    ]
    assert [("made-up" in remark) for remark in named] == [True, True, False]


def test_a_draft_that_cannot_be_rendered_has_no_tokens():
    """The change is not told; a 0 would read as a shorter prompt."""
    longer = replace(TINY, system=TINY.system + "Read with care.\n")
    found = count_change(TINY, longer)
    assert found.after > found.before > 0 and not found.exact
    assert count_change(TINY, replace(TINY, user="{{ nothing }}{{ text }}")) is None
    assert count_change(replace(TINY, user="{{ nothing }}{{ text }}"), TINY) is None


def test_a_draft_is_told_what_it_contradicts_and_its_parent_did_not(setting):
    """The taxonomy's word counts from the first draft on; old warnings are no news."""
    added = replace(setting.tiny.guides[0], terms=("pleural effusion", "thicken*"))
    draft = replace(
        setting.tiny,
        number=0,
        draft="d1",
        guides=(added, *setting.tiny.guides[1:]),
    )
    same = lint_draft(
        setting.workspace, setting.tiny, replace(draft, guides=setting.tiny.guides)
    )
    found = [one.what for one in lint_draft(setting.workspace, setting.tiny, draft)]
    assert same == ()
    assert any("'thicken*' makes 'pleural thickening' present" in one for one in found)
    assert not any("no exemplar" in one for one in found)


def test_the_last_decision_on_a_draft_is_its_fate(setting, store):
    """Of this draft and of no other; kept back, then committed."""
    draft, other = begin(setting, store, FLUID).draft, begin(setting, store).draft
    check(setting, store, draft)
    keep_draft(setting.workspace, draft.ref, OTHER, "later", now=now)
    keep_draft(setting.workspace, other.ref, OTHER, "another", now=now)
    fate = find_fate(setting.workspace, draft.ref)
    assert (fate.version, fate.reason) == ("", "later")
    commit_checked(
        setting.workspace, store, draft.ref, OTHER, CommitDecision("now"), now=now
    )
    assert find_fate(setting.workspace, draft.ref).version == "tiny@v2"
    assert find_fate(setting.workspace, other.ref).reason == "another"
    assert find_fate(setting.workspace, "tiny@draft:none") is None


def test_a_draft_without_a_cohort_or_a_current_parent_is_shown_with_that(
    setting, store
):
    """Nothing says what it is to be checked on; another version came since."""
    draft = begin(setting, store, FLUID).draft
    about = beside(setting.workspace, draft).about
    before = show_draft(setting.workspace, draft.ref).notes
    about.unlink()
    shown = show_draft(setting.workspace, draft.ref)
    unknown = "nothing says which cohort this draft is to be checked on"
    assert shown.notes == (*before, unknown)
    assert not shown.behind
    overtake(setting)
    assert show_draft(setting.workspace, draft.ref).behind


def test_a_version_is_shown_as_it_is_sent():
    """Each call with its messages, and how its tokens were counted."""
    shown = render_shown(replace(TINY, plan=CallPlan.PER_LABEL))
    lines = []
    for call in shown.calls:
        lines.append(f"# call {call.name}: {call.tokens} tokens ({shown.remark})")
        for message in call.messages:
            lines += [f"## {message.role}", message.content]
    assert shown.text == "\n".join(lines)
    assert shown.ref == "tiny@v1" and not shown.exact
    assert "shots" not in shown.remark


SOME = {"x": (MODELS, RULES), "y": (RULES,), "z": (MODELS,)}


@pytest.mark.parametrize(
    ("kinds", "who"),
    [
        ((), ""),
        (("x",), ""),
        (("y",), "language models read nothing"),
        (("z",), "`rules` reads nothing"),
        (("y", "z"), ""),
        (("y", "x"), ""),
        (("y", "unknown"), ""),
        (("lexicon en y",), "language models read nothing"),
    ],
)
def test_who_reads_nothing_of_a_change_is_told(kinds, who):
    """So that nobody takes a check with that engine for one of the change."""
    guide = SimpleNamespace(changes=[("+", kind, "row") for kind in kinds])
    diff = SimpleNamespace(settings=(), guides=(guide,), templates=())
    reading = SOME | {"lexicon": (RULES,)}
    said = name_unread(diff, reading)
    assert said.startswith(who) and bool(said) is bool(who)
    settings = [("+", f"{kind} row", "") for kind in kinds if " " not in kind]
    if len(settings) == len(kinds):
        diff = SimpleNamespace(settings=settings, guides=(), templates=())
        assert name_unread(diff, reading) == said
    templates = SimpleNamespace(settings=(), guides=(), templates=("x",))
    only = name_unread(templates, {"instructions": (MODELS,)})
    assert only.startswith("`rules` reads nothing")


def test_who_accepted_what_a_search_proposed_is_kept_with_a_draft(setting, store):
    """Beside all else that is known of it; it can be forgotten again."""
    draft = begin(setting, store, FLUID).draft
    about = read_about(setting.workspace, draft)
    assert about == DraftMetadata(
        cohort="dev",
        origin=DraftOrigin.VERDICTS,
        begun_by=setting.editor.name,
        begun="2026-01-07T10:00:00Z",
    )
    first, second = Acceptance("Ann", "t1"), Acceptance("Ben", "t2")
    for name, accepted in (("p1", first), ("p2", second), ("p1", second)):
        keep_accepted(setting.workspace, draft.ref, name, accepted)
    both = {"p1": second, "p2": second}
    assert read_about(setting.workspace, draft) == replace(about, accepted=both)
    keep_accepted(setting.workspace, draft.ref, "p2", None)
    keep_accepted(setting.workspace, draft.ref, "p9", None)
    left = replace(about, accepted={"p1": second})
    assert read_about(setting.workspace, draft) == left
    beside(setting.workspace, draft).about.write_text("{")
    assert read_about(setting.workspace, draft) == replace(about, cohort="")
    hand = replace(draft, verdicts=())
    assert read_about(setting.workspace, hand).origin is DraftOrigin.HAND
