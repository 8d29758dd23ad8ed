"""Beginning a draft writes a draft and nothing else, with the edits asked for."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from loop.core.errors import ConflictError, DataError, OverlapError, StoreError
from loop.core.ledger import read_ledger
from loop.core.records import Clarification, Exemplar, Guide, Lexicon, Mark, Value
from loop.labels.cohort import read_cohort
from loop.labels.reference import read_reference
from loop.prompts.catalog import list_drafts, read_version
from loop.prompts.lint import MOST_WORDINGS
from loop.review.revise.begin import (
    DraftRequest,
    begin_draft,
    explain,
    find_start,
    name_forgotten,
    outline_draft,
    read_earlier,
    with_guides,
)
from loop.review.revise.corrections import correct_reference_from
from loop.review.revise.wording import Authorship, build_draft
from loop.review.status import find_open, group_by_label
from loop.review.verdict import Edits, Judgement, Verdict
from tests.review.revise.stepping import FLUID, WRONG, begin, overtake


def test_a_begun_draft_is_private(setting, store):
    """It is on disk, nothing is run, and the ledger does not know of it."""
    before = setting.workspace.ledger.read_bytes()
    made = begin(setting, store, FLUID)
    assert read_version(setting.workspace, made.draft.ref) == made.draft
    assert made.diff.counts() == {"+term": 1}
    (warned,) = made.lint
    assert "wordings with * or ..." in warned.what
    assert made.draft.verdicts == (FLUID.id,)
    assert store.find_runs() == []
    assert setting.workspace.ledger.read_bytes() == before


def test_kept_verdicts_are_named_by_id(setting, store):
    """What was given in the workbench need not be typed again."""
    first = begin(setting, store, FLUID)
    again = begin(setting, store, FLUID.id)
    prefixed = begin(setting, store, f"dev:{FLUID.id}")
    assert again.draft.digest == prefixed.draft.digest == first.draft.digest
    assert again.draft.verdicts == (FLUID.id,)


def test_an_unknown_verdict_is_refused_by_name(setting, store):
    """A draft must not silently lack what was selected."""
    with pytest.raises(DataError, match="no verdict 0123456789ab is kept"):
        begin(setting, store, "0123456789ab")
    assert list_drafts(setting.workspace, "tiny") == ()


def test_a_wrong_reference_changes_no_wording(setting, store):
    """It is kept and named, and corrected in a step of its own."""
    made = begin(setting, store, FLUID, WRONG)
    assert made.draft.verdicts == (FLUID.id,)
    assert WRONG.id in made.notes[0]
    done = correct_reference_from(
        setting.workspace, store, "dev", (FLUID.id, WRONG.id), setting.editor
    )
    assert done == (2, 1)
    reference = read_reference(setting.workspace, "dev")
    assert reference.mark("n1", "pleural_effusion") is Mark.PRESENT
    again = correct_reference_from(
        setting.workspace, store, "dev", (WRONG.id,), setting.editor
    )
    assert again == (None, 1)


def test_a_guide_by_hand_takes_the_place_of_the_old_one(setting, store):
    """Editors need not go through a verdict."""
    guide = replace(setting.tiny.guides[0], definition="Any fluid.")
    made = begin(setting, store, guides={guide.label: guide})
    assert made.draft.guides == (guide, setting.tiny.guides[1])
    assert made.draft.why == "edited by hand"


def test_a_guide_of_a_label_nobody_knows_is_a_lint_error(setting, store):
    """It is written, so that it can be corrected, and it cannot be checked."""
    guide = Guide(label="nonsense", name="N", definition="d")
    made = begin(setting, store, guides={"nonsense": guide})
    assert not made.sound


def test_an_empty_selection_gives_a_draft_to_edit(setting, store):
    """Beginning by hand starts from what the parent says."""
    made = begin(setting, store)
    assert made.diff.empty
    assert made.tokens.before == made.tokens.after


def test_tokens_before_and_after_are_estimated_without_a_model(setting, store):
    """The rules engine has no tokenizer, and that is said."""
    made = begin(
        setting,
        store,
        guides={
            "cardiomegaly": replace(
                setting.tiny.guides[1], definition="The heart is enlarged for sure."
            )
        },
    )
    assert made.tokens.after > made.tokens.before
    assert not made.tokens.exact
    assert "estimated" in made.tokens.remark


def test_copied_text_of_a_holdout_is_refused_before_anything_is_written(setting, store):
    """Neither verdict nor draft is kept."""
    text = "There is a meniscus of fluid along the left wall today."
    setting.add_cohort("held", "holdout", [("h1", text, 1, 0)])
    before = setting.state()
    guide = replace(setting.tiny.guides[0], definition=text)
    with pytest.raises(OverlapError, match="h1 of cohort held"):
        begin(setting, store, FLUID, guides={guide.label: guide})
    assert setting.state() == before


def test_an_old_version_is_refused(setting, store):
    """The history is a line: whoever came first is named."""
    overtake(setting)
    request = DraftRequest(prompt="tiny@v1", cohort="dev")
    with pytest.raises(ConflictError, match=r"tiny@v2 by Dr C. Example"):
        begin_draft(setting.workspace, store, request, setting.editor)


def test_a_replaced_store_leaves_no_draft(setting, store):
    """Verdicts come first: a draft never names a verdict that was lost."""
    setting.workspace.store.unlink()
    with pytest.raises(StoreError, match="removed or replaced"):
        begin(setting, store, FLUID)
    assert list_drafts(setting.workspace, "tiny") == ()


def test_open_verdicts_are_found_and_grouped(setting, store):
    """What a committed version answers is not offered again."""
    other = replace(FLUID, case_ids=("f2",), reviewer="Dr D. Example")
    heart = replace(FLUID, label="cardiomegaly", case_ids=("s1",), edits=WRONG.edits)
    begin(setting, store, FLUID, other, heart)
    found = find_open(setting.workspace, store, "tiny", "dev")
    groups = group_by_label(found)
    assert {label: len(group) for label, group in groups.items()} == {
        "pleural_effusion": 2,
        "cardiomegaly": 1,
    }
    assert find_open(setting.workspace, store, "extractor", "dev") == ()
    assert "without the word" not in str(read_ledger(setting.workspace.ledger))


BY = Authorship("Dr A. Example", datetime(2026, 1, 6, tzinfo=UTC), "because")


def judge(label="pleural_effusion", **edits):
    """Return a verdict with these edits."""
    return Verdict(
        label=label,
        judgement=Judgement.MODEL_WRONG,
        edits=Edits(**edits),
        comment="general",
    )


def build(setting, *verdicts):
    """Return the effusion guide of the draft."""
    return build_draft(setting.tiny, verdicts, BY).draft.guide("pleural_effusion")


def test_every_kind_of_edit_lands_in_its_list(setting):
    """One verdict may carry several edits of several kinds."""
    rule = Clarification(phrase="blunted angle", value=Value.UNCERTAIN)
    example = Exemplar(text="Fluid is seen.", value=Value.PRESENT, evidence="Fluid")
    guide = build(
        setting,
        judge(
            terms=("layering fluid", "hydrothorax"),
            exclusions=("pericardial effusion",),
            clarifications=(rule,),
            exemplars=(example,),
            implies=("cardiomegaly",),
        ),
    )
    assert guide.terms == ("pleural effusion", "layering fluid", "hydrothorax")
    assert guide.exclusions == ("pericardial effusion",)
    assert guide.clarifications == (rule,)
    assert guide.exemplars == (example,)
    assert guide.implies == ("cardiomegaly",)


def with_lexicon(setting, *lexicons, **changes):
    """Return a setting whose effusion guide has lexicons, and changes."""
    guide = replace(setting.tiny.guides[0], lexicon=lexicons, **changes)
    tiny = replace(setting.tiny, guides=(guide, *setting.tiny.guides[1:]))
    return replace(setting, tiny=tiny)


ENGLISH = Lexicon(language="en", terms=("fluid ... base",), exclusions=("ascit*",))


def test_what_a_model_has_no_use_for_goes_to_the_lexicon(setting):
    """Patterns and words of another script are for `rules`; words are for both."""
    rule = Clarification(phrase="blunt* ... angle", value=Value.UNCERTAIN)
    guide = build(
        with_lexicon(setting, ENGLISH),
        judge(
            terms=("layering fluid", "menisc*", "\u80f8\u6c34"), clarifications=(rule,)
        ),
    )
    english, chinese = guide.lexicon
    assert guide.terms == ("pleural effusion", "layering fluid")
    assert english.terms == ("fluid ... base", "menisc*")
    assert (english.clarifications, guide.clarifications) == ((rule,), ())
    assert chinese == Lexicon(language="zh", terms=("\u80f8\u6c34",))


def test_a_guide_without_a_lexicon_keeps_everything_itself(setting):
    """Versions written before there were lexicons go on as they were."""
    guide = build(setting, judge(terms=("menisc*",)))
    assert guide.terms == ("pleural effusion", "menisc*")
    assert guide.lexicon == ()


def test_a_term_too_many_for_a_model_goes_to_the_lexicon(setting):
    """A dozen wordings are shown; `rules` reads them all."""
    terms = tuple(f"fluid {chr(97 + number)}" for number in range(MOST_WORDINGS - 1))
    full = with_lexicon(setting, ENGLISH, terms=terms)
    guide = build(full, judge(terms=("layering fluid", "hydrothorax")))
    assert guide.terms == (*terms, "layering fluid")
    assert guide.lexicon[0].terms == ("fluid ... base", "hydrothorax")


def test_a_wording_is_taken_out_of_the_lexicon(setting):
    """Whoever removes a wording need not know where it is kept."""
    guide = build(
        with_lexicon(setting, ENGLISH),
        judge(remove_terms=("Fluid ... base",), remove_exclusions=("ascit*",)),
    )
    assert guide.lexicon == (Lexicon(language="en"),)
    with pytest.raises(DataError, match="no such entry in terms"):
        build(with_lexicon(setting, ENGLISH), judge(remove_terms=("menisc*",)))


def test_a_wording_of_the_lexicon_is_there_already(setting):
    """Adding it again changes nothing, and says so."""
    known = with_lexicon(setting, ENGLISH)
    built = build_draft(known.tiny, [judge(terms=("Fluid ... base",))], BY)
    assert "is there already" in built.notes[0]
    assert built.draft.guide("pleural_effusion").terms == ("pleural effusion",)


def test_a_word_of_the_lexicon_can_be_shown_to_a_model(setting):
    """It moves, and is in one place only."""
    words = Lexicon(language="en", terms=("hydrothorax",))
    guide = build(
        with_lexicon(setting, words),
        judge(remove_terms=("hydrothorax",), terms=("hydrothorax",)),
    )
    assert guide.terms == ("pleural effusion", "hydrothorax")
    assert guide.lexicon == (Lexicon(language="en"),)


def test_templates_and_other_labels_stay_as_they_are(setting):
    """A revision touches the judged label only."""
    draft = build_draft(setting.tiny, [judge(terms=("fluid",))], BY).draft
    assert (draft.system, draft.user) == (setting.tiny.system, setting.tiny.user)
    assert draft.guide("cardiomegaly") == setting.tiny.guide("cardiomegaly")
    assert draft.parent == setting.tiny.digest


def test_a_term_already_there_is_noted_not_repeated(setting):
    """Spelling variants of case and hyphen are the same term."""
    built = build_draft(setting.tiny, [judge(terms=("Pleural-Effusion",))], BY)
    assert built.draft.digest == setting.tiny.digest
    assert "is there already" in built.notes[0]


def test_a_new_rule_for_the_same_phrase_replaces_the_old_one(setting):
    """The later round decides."""
    old = judge(clarifications=(Clarification(phrase="fluid", value=Value.UNCERTAIN),))
    base = build_draft(setting.tiny, [old], BY).draft
    new = Clarification(phrase="Fluid", value=Value.PRESENT)
    draft = build_draft(base, [judge(clarifications=(new,))], BY).draft
    assert draft.guide("pleural_effusion").clarifications == (new,)


def test_a_wording_can_move_from_terms_to_exclusions(setting):
    """Removals come first, so one verdict can do both."""
    verdict = judge(
        remove_terms=("pleural effusion",), exclusions=("pleural effusion",)
    )
    guide = build(setting, verdict)
    assert (guide.terms, guide.exclusions) == ((), ("pleural effusion",))


def test_removing_what_is_not_there_names_the_verdict(setting):
    """A typing error must not pass silently."""
    with pytest.raises(DataError, match=r"verdict 1: .* 'effusoin'"):
        build(setting, judge(remove_terms=("effusoin",)))


def test_two_verdicts_that_contradict_each_other_are_refused(setting):
    """Neither reviewer silently wins."""
    yes = judge(clarifications=(Clarification(phrase="blunt", value=Value.PRESENT),))
    no = judge(clarifications=(Clarification(phrase="Blunt", value=Value.ABSENT),))
    with pytest.raises(DataError, match=r"verdicts 1 and 2 disagree.*Agree on one"):
        build(setting, yes, no)


def test_a_label_without_a_guide_is_refused(setting):
    """The prompt does not ask for it, so there is nothing to edit."""
    with pytest.raises(DataError, match="no guide for edema"):
        build(setting, judge("edema", terms=("oedema",)))


def test_two_drafts_never_share_an_id(setting):
    """Two people may revise in the same second."""
    ids = {build_draft(setting.tiny, [], BY).draft.draft for _ in range(50)}
    assert len(ids) == 50


def test_a_version_names_no_verdicts_that_a_draft_of_it_still_rests_on():
    """They were answered when it was committed; only a draft's cases count still."""
    version = SimpleNamespace(draft="", verdicts=("a1",))
    draft = SimpleNamespace(draft="d1", verdicts=())
    assert read_earlier(None, version, None) == read_earlier(None, draft, None) == ()


@pytest.mark.parametrize(
    ("labels", "rules", "words"),
    [
        ("", 0, "edited by hand"),
        ("a", 0, "1 verdict on a"),
        ("aa", 0, "2 verdicts on a"),
        ("abcd", 0, "4 verdicts on a, b, c, d"),
        ("abcde", 0, "5 verdicts on 5 labels"),
        ("", 1, "general rule asked for by verdict {0}"),
        ("ab", 2, "2 verdicts on a, b; general rule asked for by verdict {0}, {1}"),
    ],
)
def test_a_reason_from_counts_names_up_to_four_labels(labels, rules, words):
    """And whose general rules come with it; a comment is never quoted."""
    given = [
        replace(FLUID, label=label, case_ids=(f"c{at}",), comment="zebra")
        for at, label in enumerate(labels)
    ]
    asking = [
        replace(FLUID, case_ids=(f"r{at}",), edits=Edits(general_rules=("Count it.",)))
        for at in range(rules)
    ]
    found = explain([*given, *asking], "")
    assert found == words.format(*(one.id for one in asking))


def test_two_verdicts_of_one_draft_are_told_apart_in_what_they_ask_in_vain(setting):
    """Each note names the verdict, the list and the wording."""
    rule = Clarification(phrase="Blunt", value=Value.PRESENT, note="n")
    first = judge(
        terms=("Pleural effusion", "fluid"),
        clarifications=(rule,),
        remove_exclusions=(),
    )
    second = judge(terms=("Fluid",), clarifications=(rule,))
    built = build_draft(setting.tiny, [judge("cardiomegaly"), first, second], BY)
    assert built.notes == (
        "verdict 2: terms 'pleural effusion' is there already",
        "verdict 3: terms 'fluid' is there already",
        "verdict 3: clarifications 'blunt' is there already",
    )
    guide = built.draft.guide("pleural_effusion")
    assert guide.terms == ("pleural effusion", "fluid")
    assert guide.clarifications == (rule,)


def test_a_draft_of_a_draft_takes_over_its_parent_and_its_verdicts(setting):
    """Each verdict once, the earlier ones first; a version's own are answered."""
    version = replace(setting.tiny, verdicts=("old",))
    one, two = judge(terms=("fluid",)), judge("cardiomegaly", terms=("big heart",))
    first = build_draft(version, [one], BY).draft
    assert (first.parent, first.verdicts) == (version.digest, (one.id,))
    again = build_draft(first, [two, one], BY._replace(why="more")).draft
    assert (again.parent, again.verdicts) == (version.digest, (one.id, two.id))
    assert (again.number, again.author, again.why) == (0, "Dr A. Example", "more")
    assert again.time == "2026-01-06T00:00:00Z"
    assert again.draft.startswith("d20260106-000000-")


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (
            {"terms": ("Fluid",)},
            {"exclusions": ("fluid",)},
            "'fluid': a term and an exclusion",
        ),
        (
            {"clarifications": (Clarification(phrase="x", value=Value.ABSENT),)},
            {"clarifications": (Clarification(phrase="X", value=Value.UNCERTAIN),)},
            "'x': absent and uncertain",
        ),
        (
            {"exemplars": (Exemplar(text="x", value=Value.ABSENT, evidence="x"),)},
            {"exemplars": (Exemplar(text="x", value=Value.PRESENT, evidence="x"),)},
            "'x': absent and present",
        ),
    ],
)
def test_verdicts_that_contradict_each_other_are_both_named(setting, one, other, said):
    """By number and id, though others stand between; of two labels none does."""
    first, second = judge(**one), judge(**other)
    between = judge("cardiomegaly", **other)
    with pytest.raises(DataError) as caught:
        build(setting, between, first, judge(terms=("y",)), second)
    assert str(caught.value) == (
        f"verdicts 2 and 4 disagree on pleural_effusion, {said} (ids {first.id} and "
        f"{second.id}). Agree on one and remove the other."
    )
    assert build_draft(setting.tiny, [between, first], BY).draft


def test_the_start_is_the_newest_version_or_a_draft_of_it(setting, store):
    """Anything else is refused with what to revise."""
    draft = begin(setting, store, FLUID).draft
    assert find_start(setting.workspace, "tiny") == (setting.tiny, setting.tiny)
    assert find_start(setting.workspace, draft.ref) == (draft, setting.tiny)
    rival = overtake(setting)
    assert find_start(setting.workspace, "tiny") == (rival, rival)
    with pytest.raises(ConflictError, match=f"rebase {draft.ref}"):
        find_start(setting.workspace, draft.ref)
    with pytest.raises(
        ConflictError, match=r"tiny@v1 is not the newest .* revise tiny"
    ):
        find_start(setting.workspace, "tiny@v1")


def test_guides_by_hand_stand_under_their_own_labels(setting):
    """Those of new labels come last, in their order."""
    first, second = setting.tiny.guides
    other = replace(second, definition="Big.")
    new = [replace(first, label=label) for label in ("edema", "mass")]
    given = {one.label: one for one in (*new, other)}
    assert with_guides(setting.tiny, given).guides == (first, other, *new)
    with pytest.raises(ValueError, match="guide of edema is listed under mass"):
        with_guides(setting.tiny, {"mass": new[0]})


@pytest.mark.parametrize("half", ["\ud800", "\udfff"])
def test_half_of_a_character_is_refused_in_any_guide(setting, store, half):
    """By its label and its number; its whole neighbours are words."""
    first, second = setting.tiny.guides
    whole = replace(first, definition="Fluid \ud7ff\ue000.")
    broken = replace(second, terms=("heart", f"big {half}"))
    given = {one.label: one for one in (whole, broken)}
    with pytest.raises(DataError, match=f"guide cardiomegaly: holds U.{ord(half):04X}"):
        begin(setting, store, guides=given)
    assert begin(setting, store, guides={whole.label: whole}).draft


def test_a_draft_names_what_it_rests_on_and_cannot_find(setting, store):
    """Verdicts of a draft that came from elsewhere; a version has none to find."""
    draft = begin(setting, store, FLUID).draft
    foreign = replace(draft, verdicts=(FLUID.id, "gone1", "gone2"))
    earlier = read_earlier(store, foreign, read_cohort(setting.workspace, "dev"))
    assert earlier == (FLUID,)
    assert name_forgotten(foreign, earlier) == (
        f"{draft.ref} names verdicts that are not kept here for this cohort: gone1, "
        "gone2. Their cases are not checked.",
    )
    assert name_forgotten(draft, earlier) == ()
    version = replace(foreign, number=2, draft="")
    assert name_forgotten(version, ()) == ()


def test_a_draft_from_a_draft_checks_the_cases_of_both_rounds(setting, store):
    """And keeps the reason of the first, unless there is a new one."""
    first = begin(setting, store, FLUID, why="bases").draft
    heart = replace(FLUID, label="cardiomegaly", edits=Edits(terms=("big heart",)))

    def outlined(why):
        request = DraftRequest(prompt=first.ref, cohort="dev")
        by = Authorship("Ann", datetime(2026, 1, 8, tzinfo=UTC), why)
        return outline_draft(setting.workspace, store, request, [heart], by)

    made = outlined("")
    assert (made.verdicts, made.earlier) == ((heart,), (FLUID,))
    assert made.start == (first, setting.tiny)
    assert (made.draft.why, outlined("hearts").draft.why) == ("bases", "hearts")
    assert made.changed
    assert not made._replace(draft=setting.tiny).changed
