"""A draft brought to a newer version: three-way, row by row, nothing decided unseen."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import ConflictError
from loop.core.ledger import read_ledger
from loop.core.records import Clarification, Exemplar, Lexicon, Value
from loop.prompts.catalog import list_drafts, read_version
from loop.prompts.shot_records import ShotKind, ShotPin, Shots, ShotScore
from loop.prompts.version import CallPlan
from loop.review.revise.commit import CommitDecision, commit_checked
from loop.review.revise.draft import DraftCheckStatus, list_open_drafts
from loop.review.revise.draft_files import read_about
from loop.review.revise.merge import ConflictChoice, merge_versions, rebase_draft
from tests.review.revise.conftest import TINY
from tests.review.revise.stepping import FLUID, OTHER, begin, check, now, overtake

EFFUSION, HEART = TINY.guides


def as_guide(**changes):
    """Return the guides of ``tiny`` with changes in the first one."""
    return (replace(EFFUSION, **changes), HEART)


def merged(ours, theirs, choices=()):
    """Merge two changes of the first guide."""
    return merge_versions(
        TINY,
        replace(TINY, guides=as_guide(**ours)),
        replace(TINY, guides=as_guide(**theirs)),
        dict(choices),
    )


def test_rows_that_only_one_side_changed_are_taken():
    """Two people add to one guide: both additions stand."""
    done = merged(
        {"terms": ("pleural effusion", "fluid"), "definition": "Any fluid."},
        {"terms": ("hydrothorax", "pleural effusion"), "exclusions": ("pericardial",)},
    )
    guide = done.version.guides[0]
    assert done.conflicts == ()
    assert guide.terms == ("hydrothorax", "pleural effusion", "fluid")
    assert (guide.exclusions, guide.definition) == (("pericardial",), "Any fluid.")


@pytest.mark.parametrize(
    ("ours", "theirs", "terms"),
    [
        ("bao", "abt", "bato"),
        ("abo", "bat", "bato"),
        ("oab", "tab", "tabo"),
    ],
)
def test_new_rows_stand_after_those_of_both_sides(ours, theirs, terms):
    """In the order of whoever moved a row; where nobody did, theirs stay in place."""
    base = replace(TINY, guides=as_guide(terms=("a", "b")))
    done = merge_versions(
        base,
        replace(base, guides=as_guide(terms=tuple(ours))),
        replace(base, guides=as_guide(terms=tuple(theirs))),
        {},
    )
    assert done.conflicts == ()
    assert "".join(done.version.guides[0].terms) == terms


def test_lexicons_and_guidance_merge_row_by_row():
    """Two people add wordings for rules, each in a language, and what counts."""
    old = Lexicon(language="en", terms=("fluid",), exclusions=("ascites",))
    base = replace(TINY, guides=as_guide(lexicon=(old,), counts=("trace",)))
    ours = as_guide(
        lexicon=(replace(old, terms=("fluid", "meniscus")),), counts=("trace", "large")
    )
    theirs = as_guide(
        lexicon=(
            replace(old, exclusions=()),
            Lexicon(language="zh", terms=("\u80f8\u6c34",)),
        ),
        counts=("tiny", "trace"),
    )
    done = merge_versions(
        base, replace(base, guides=ours), replace(base, guides=theirs), {}
    )
    guide = done.version.guides[0]
    assert done.conflicts == ()
    assert guide.counts == ("tiny", "trace", "large")
    assert guide.lexicon == (
        Lexicon(language="en", terms=("fluid", "meniscus")),
        Lexicon(language="zh", terms=("\u80f8\u6c34",)),
    )


def test_a_language_that_one_side_adds_is_there_and_its_conflicts_say_so():
    """Whichever side it is."""
    rules = [
        Clarification(phrase="spur", value=value)
        for value in (Value.PRESENT, Value.ABSENT)
    ]
    german = Lexicon(language="de", terms=("Erguss",))
    ours, theirs = (Lexicon(language="en", clarifications=(rule,)) for rule in rules)
    done = merged({"lexicon": (ours, german)}, {"lexicon": (theirs,)})
    assert [one.language for one in done.version.guides[0].lexicon] == ["en", "de"]
    (conflict,) = done.conflicts
    assert (conflict.kind, conflict.what) == ("lexicon en clarification", "spur")
    assert conflict.id.startswith("pleural_effusion/lexicon-en-clarification/")
    assert merged({"lexicon": (german,)}, {}).version.guides[0].lexicon == (german,)
    assert merged({}, {"lexicon": (german,)}).version.guides[0].lexicon == (german,)


def test_a_guide_that_one_side_takes_out_and_the_other_changes_is_a_conflict():
    """It is shown by its definition and by how many rows it has."""
    lexicon = Lexicon(language="en", terms=("fluid", "meniscus"))
    changed = as_guide(counts=("trace",), lexicon=(lexicon,))
    done = merge_versions(
        TINY, replace(TINY, guides=(HEART,)), replace(TINY, guides=changed), {}
    )
    (conflict,) = done.conflicts
    rows = len(EFFUSION.terms) + 1 + 2
    assert (conflict.kind, conflict.ours) == ("guide", "")
    assert conflict.theirs == f"{EFFUSION.definition} ({rows} rows)"


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": CallPlan.PER_LABEL},
        {"contract": "findings"},
        {"inputs": ("text", "history")},
        {"user": "Look.\n{{ text }}\n"},
    ],
)
def test_what_only_one_side_changed_is_taken_from_either(changes):
    """Plan, contract, inputs and templates like the rows of a guide."""
    changed, other = replace(TINY, **changes), replace(TINY, system="Other.\n")
    both = replace(changed, system="Other.\n")
    for ours, theirs in ((changed, other), (other, changed)):
        done = merge_versions(TINY, ours, theirs, {})
        assert (done.version, done.conflicts) == (both, ())


def test_a_name_changed_on_both_sides_is_a_conflict():
    """It is shown to the model, and on every page."""
    done = merged({"name": "Effusion"}, {"name": "Fluid"})
    (conflict,) = done.conflicts
    assert conflict[1:] == ("pleural_effusion", "name", "", "Effusion", "Fluid")


def test_a_lexicon_without_a_row_left_is_gone():
    """No empty part stays behind."""
    old = Lexicon(language="en", terms=("fluid",))
    base = replace(TINY, guides=as_guide(lexicon=(old,)))
    ours = replace(base, guides=as_guide(lexicon=()))
    done = merge_versions(base, ours, base, {})
    assert done.version.guides[0].lexicon == ()


def test_a_row_that_one_side_took_out_is_out():
    """Removing is a change like another."""
    done = merged({"terms": ()}, {"terms": ("pleural effusion", "fluid")})
    assert done.version.guides[0].terms == ("fluid",)


def test_a_change_made_alike_is_no_conflict():
    """Two people had the same thought."""
    rule = Clarification(phrase="blunted angle", value=Value.UNCERTAIN)
    done = merged({"clarifications": (rule,)}, {"clarifications": (rule,)})
    assert (done.conflicts, done.version.guides[0].clarifications) == ((), (rule,))


def test_a_row_changed_differently_is_a_conflict_with_both_wordings():
    """A person decides, and each decision is taken as given."""
    ours = Clarification(phrase="Blunted angle", value=Value.PRESENT)
    theirs = Clarification(phrase="blunted angle", value=Value.UNCERTAIN)
    sides = {"clarifications": (ours,)}, {"clarifications": (theirs,)}
    (conflict,) = merged(*sides).conflicts
    assert conflict[1:] == (
        "pleural_effusion",
        "clarification",
        "blunted angle",
        "Blunted angle -> present",
        "blunted angle -> uncertain",
    )
    # Another wording on either side is another conflict: nobody has decided it.
    other = replace(ours, value=Value.ABSENT)
    ids = {
        merged({"clarifications": (one,)}, {"clarifications": (two,)}).conflicts[0].id
        for one, two in (
            (ours, theirs),
            (other, theirs),
            (theirs, other),
            (theirs, ours),
        )
    }
    assert len(ids) == 4
    for choice, row in ((ConflictChoice.OURS, ours), (ConflictChoice.THEIRS, theirs)):
        done = merged(*sides, {conflict.id: choice})
        assert (done.conflicts, done.unknown) == ((), ())
        assert done.version.guides[0].clarifications == (row,)


def test_taking_out_what_the_other_changed_is_a_conflict():
    """An empty side says that the row was taken out."""
    old = Exemplar(text="Fluid is seen.", value=Value.PRESENT, evidence="Fluid")
    base = replace(TINY, guides=as_guide(exemplars=(old,)))
    new = replace(old, why="Fluid is enough.")
    done = merge_versions(
        base, TINY, replace(TINY, guides=as_guide(exemplars=(new,))), {}
    )
    (conflict,) = done.conflicts
    assert (conflict.kind, conflict.ours) == ("exemplar", "")


def test_templates_changed_on_both_sides_are_a_conflict_of_lines():
    """Their text is shown as what each changed."""
    ours, theirs = "Read it well.\n", "Read it fast.\n"
    done = merge_versions(
        TINY, replace(TINY, system=ours), replace(TINY, system=theirs), {}
    )
    (conflict,) = done.conflicts
    assert (conflict.label, conflict.kind) == ("", "system.jinja")
    assert "+Read it well." in conflict.ours
    assert "+Read it fast." in conflict.theirs


def test_labels_moved_by_one_and_added_by_the_other_are_both_there():
    """The order asked is part of the prompt too."""
    extra = replace(HEART, label="edema", name="Edema")
    done = merge_versions(
        TINY,
        replace(TINY, guides=(HEART, EFFUSION)),
        replace(TINY, guides=(*TINY.guides, extra)),
        {},
    )
    assert done.version.labels == ("cardiomegaly", "pleural_effusion", "edema")


TERMS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6).map(tuple)


@given(TERMS, TERMS)
def test_merging_with_an_unchanged_side_gives_the_other(base, changed):
    """Whoever changed nothing gets everything, in the other's order."""
    old = replace(TINY, guides=as_guide(terms=base))
    new = replace(TINY, guides=as_guide(terms=changed))
    assert merge_versions(old, new, old, {}).version == new
    assert merge_versions(old, old, new, {}).version == new
    assert merge_versions(old, new, new, {}).version == new


@given(TERMS, TERMS, TERMS)
def test_no_row_is_lost_or_invented(base, ours, theirs):
    """A term stands if both kept it or one added it, and not otherwise."""
    sides = [replace(TINY, guides=as_guide(terms=one)) for one in (base, ours, theirs)]
    found = set(merge_versions(*sides, {}).version.guides[0].terms)
    kept = set(base) & set(ours) & set(theirs)
    assert found == kept | (set(ours) - set(base)) | (set(theirs) - set(base))


@pytest.fixture
def draft(setting, store):
    """Begin a draft and check it."""
    made = begin(setting, store, FLUID).draft
    check(setting, store, made)
    return made


def test_a_rebased_draft_can_be_checked_and_committed(setting, store, draft):
    """The whole way out of a conflict."""
    overtake(setting)
    done = rebase_draft(setting.workspace, draft.ref, OTHER, now=now)
    assert (done.newest, done.conflicts) == ("tiny@v2", ())
    assert list_drafts(setting.workspace, "tiny") == (done.draft.draft,)
    assert done.drafted.diff.counts() == {"+term": 1}
    assert done.draft.system == "Read quickly.\n"
    assert (done.draft.verdicts, done.draft.why) == (draft.verdicts, draft.why)
    assert draft.why
    assert read_about(setting.workspace, done.draft).cohort == "dev"
    (info,) = list_open_drafts(setting.workspace, store, "tiny")
    assert (info.behind, info.checked) == (False, DraftCheckStatus.NEVER)
    check(setting, store, done.draft)
    version, _ = commit_checked(
        setting.workspace, store, done.draft.ref, OTHER, CommitDecision("both"), now=now
    )
    assert version.ref == "tiny@v3"


def test_what_was_measured_before_a_rebase_stays_in_the_ledger(setting, draft):
    """It was tried on the cohort."""
    overtake(setting)
    rebase_draft(setting.workspace, draft.ref, OTHER, now=now)
    entry = read_ledger(setting.workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("draft_rejected", draft.ref)
    assert entry.payload["parent_ref"] == "tiny@v1"


def test_with_open_conflicts_nothing_is_written(setting, store):
    """Until each is decided by its id; another wording has another id."""
    ours = replace(EFFUSION, definition="Any fluid.")
    draft = begin(setting, store, guides={ours.label: ours}).draft
    overtake(setting, guides=as_guide(definition="Fluid around the lung."))
    before = setting.state()
    done = rebase_draft(setting.workspace, draft.ref, OTHER, now=now)
    (conflict,) = done.conflicts
    assert done.draft is None
    assert (conflict.ours, conflict.theirs) == ("Any fluid.", "Fluid around the lung.")
    with pytest.raises(ConflictError, match="have no conflict other/thing"):
        rebase_draft(
            setting.workspace, draft.ref, OTHER, {"other/thing": ConflictChoice.OURS}
        )
    assert setting.state() == before
    done = rebase_draft(
        setting.workspace, draft.ref, OTHER, {conflict.id: ConflictChoice.OURS}, now=now
    )
    assert done.draft.guides[0].definition == "Any fluid."


def test_a_draft_that_is_not_behind_stays_as_it_is(setting, draft):
    """Doing it twice is harmless."""
    done = rebase_draft(setting.workspace, draft.ref, OTHER, now=now)
    assert done.draft == draft
    assert read_version(setting.workspace, draft.ref) == draft


def shots_of(pool):
    """Return shots that name a pool."""
    return Shots(
        pool=pool,
        kind=ShotKind.RANDOM,
        n=1,
        seed=0,
        score=ShotScore.LINEAR,
        pins=(ShotPin("a", "0" * 64),),
    )


def test_shots_are_one_setting():
    """Taken where one side chose them; a conflict in words where both did."""
    ours, theirs = (replace(TINY, shots=shots_of(pool)) for pool in ("one", "two"))
    assert merge_versions(TINY, ours, TINY, {}).version.shots == ours.shots
    assert merge_versions(ours, TINY, ours, {}).version.shots is None
    both = merge_versions(TINY, ours, theirs, {})
    (conflict,) = both.conflicts
    assert (conflict.kind, conflict.ours) == ("shots", shots_of("one").words)
    chosen = merge_versions(TINY, ours, theirs, {conflict.id: ConflictChoice.OURS})
    assert chosen.version.shots == ours.shots


def test_what_is_in_conflict_is_told_whole_and_theirs_stands():
    """Settings, order and texts; each with both sides, none decided unseen."""
    ours = replace(TINY, plan=CallPlan.PER_LABEL, inputs=("text", "a"))
    theirs = replace(TINY, contract="findings", inputs=("text", "b"))
    done = merge_versions(TINY, ours, theirs, {})
    (conflict,) = done.conflicts
    assert conflict[1:4] == ("", "inputs", "")
    assert (conflict.ours, conflict.theirs) == (str(ours.inputs), str(theirs.inputs))
    assert conflict.id.startswith("prompt/inputs/")
    assert done.version == replace(theirs, plan=CallPlan.PER_LABEL)
    choices = {conflict.id: ConflictChoice.OURS, "x": ConflictChoice.OURS}
    chosen = merge_versions(TINY, ours, theirs, choices)
    assert (chosen.conflicts, chosen.unknown) == ((), ("x",))
    assert chosen.version == replace(
        theirs, plan=CallPlan.PER_LABEL, inputs=("text", "a")
    )


def test_rows_moved_by_both_sides_are_a_conflict_of_their_order():
    """It is shown as the lists that both have."""
    base = replace(TINY, guides=as_guide(terms=("a", "b", "c")))
    ours = replace(base, guides=as_guide(terms=("b", "a", "c", "o")))
    theirs = replace(base, guides=as_guide(terms=("c", "t", "a", "b")))
    done = merge_versions(base, ours, theirs, {})
    (conflict,) = done.conflicts
    assert conflict[1:] == (
        *("pleural_effusion", "term order", ""),
        *("b, a, c", "c, a, b"),
    )
    assert conflict.id.startswith("pleural_effusion/term-order/")
    assert done.version.guides[0].terms == ("c", "t", "a", "b", "o")
    chosen = merge_versions(base, ours, theirs, {conflict.id: ConflictChoice.OURS})
    assert chosen.version.guides[0].terms == ("b", "a", "c", "t", "o")


def test_a_template_in_conflict_is_shown_by_its_changed_lines_alone():
    """Without the names of files that there are not."""
    base = replace(TINY, system="one\ntwo\nthree\nfour\n")
    ours = replace(base, system="one\nTWO\nthree\nfour\n")
    theirs = replace(base, system="one\ntwo\nthree\nFOUR\n")
    (conflict,) = merge_versions(base, ours, theirs, {}).conflicts
    assert conflict.ours == "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three"
    assert conflict.theirs == "@@ -3,2 +3,2 @@\n three\n-four\n+FOUR"
