"""A phrase that was marked: what it could become, and which cases that would change."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.records import Clarification, Exemplar, Lexicon, Value
from loop.engines.rules.vocabulary import MAX_GAP_WORDS
from loop.labels.cohort import iter_items, read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.prompts.catalog import write_version
from loop.prompts.version import CallPlan
from loop.review.revise import phrases
from loop.review.revise.draft_files import beside
from loop.review.revise.phrases import (
    GuidePart,
    PhraseBase,
    PhraseRequest,
    PhraseTryout,
    TriedChange,
    TriedPart,
    holds,
    phrase_data,
    try_phrase,
)
from loop.review.revise.tries import count_tries, list_tries
from loop.review.revise.wording import Authorship, build_draft
from loop.review.verdict import Edits
from loop.run.aside import ask_version
from loop.run.asking import hold_engine
from loop.run.manifest import find_run
from loop.run.task import run_prompt
from tests.review.revise.stepping import FLUID, WHEN, begin, check

ROWS = (
    ("h1", "Small pleural effusion or cardiomegaly.", 1, 1),
    ("h2", "No fluid at the base. Heart large.", 0, 1),
    ("h3", "Possible fluid, fluid at the left base, and cardiomegaly.", 1, 1),
    ("h4", "Efusion or fluid. FLUID; no pleural-effusion", 1, 0),
    ("h5", "胸腔积液，fluid", 0, 0),
    ("h6", "INDICATION: fluid.\nFINDINGS: Clear.", 0, 0),
)


def suggest(setting, store, phrase, label="pleural_effusion", prompt="tiny@v1", **how):
    """Try a phrase in the guide of a label."""
    request = PhraseRequest(prompt, label, phrase, **{"cohort": "dev", **how})
    return try_phrase(setting.workspace, store, request, setting.editor)


def of(found, part, value=None):
    """Return what the phrase would change as one part."""
    (one,) = (one for one in found.parts if (one.part, one.value) == (part, value))
    return one


def answers(setting, store, version, cohort="dev"):
    """Return what `rules` answers to every case, in a separate pass."""
    items = tuple(iter_items(setting.workspace, read_cohort(setting.workspace, cohort)))
    with hold_engine(setting.workspace, "rules") as held:
        (outcomes,) = ask_version(setting.workspace, store, version, items, held).draws
    return {
        (one.item_id, label): str(field.value)
        for one in outcomes
        for label, field in one.fields.items()
    }


def drafted(version, part, value, phrase, label):
    """Return the draft that a verdict on the phrase would make."""
    if part is GuidePart.TERM:
        edits = Edits(terms=(phrase,))
    elif part is GuidePart.EXCLUSION:
        edits = Edits(exclusions=(phrase,))
    elif part is GuidePart.CLARIFICATION:
        edits = Edits(clarifications=(Clarification(phrase=phrase, value=value),))
    else:
        text = f"Saying {phrase} here."
        edits = Edits(exemplars=(Exemplar(text=text, value=value, evidence=phrase),))
    verdict = replace(FLUID, label=label, edits=edits)
    return build_draft(version, (verdict,), Authorship("-", WHEN, "")).draft


def require_same_as_a_pass(setting, store, version, phrases, cohort="dev"):
    """Compare parts of every phrase with a pass over the whole cohort for each."""
    before = answers(setting, store, version, cohort)
    changed = 0
    for number, (label, phrase) in enumerate(phrases):
        found = suggest(setting, store, phrase, label, version.ref, cohort=cohort)
        for one in found.parts[number % 2 :: 2]:
            draft = drafted(version, one.part, one.value, phrase, label)
            after = answers(setting, store, draft, cohort)
            pairs = {key for key in before if before[key] != after[key]}
            told = (*one.changes, *one.others)
            assert {(each.case_id, each.label) for each in told} == pairs
            assert len(told) == len(pairs)
            assert all(
                (each.before, each.after) == (before[each[:2]], after[each[:2]])
                for each in told
            )
            assert {each.label for each in one.changes} <= {label}
            assert label not in {each.label for each in one.others}
            changed += len(pairs)
    return changed


PHRASES = (
    ("pleural_effusion", "fluid"),
    ("pleural_effusion", "small pleural effusion"),
    ("cardiomegaly", "Clear"),
)


def test_the_counts_are_those_of_a_whole_pass_with_the_changed_guide(setting, store):
    """Of every part and every label; also where findings share a sentence."""
    setting.add_cohort("more", "dev", ROWS)
    first, second = setting.tiny.guides
    rules = (Clarification(phrase="small pleural effusion", value=Value.UNCERTAIN),)
    rich = replace(
        setting.tiny,
        number=2,
        parent=setting.tiny.digest,
        guides=(
            replace(first, clarifications=rules, lexicon=(Lexicon(language="en"),)),
            replace(second, implies=("pleural_effusion",)),
        ),
    )
    write_version(setting.workspace, rich)
    assert require_same_as_a_pass(setting, store, rich, PHRASES, "more") > 6


def test_a_plan_of_a_call_per_label_is_counted_as_well(setting, store):
    """Only the calls that see the guide are read again."""
    setting.add_cohort("more", "dev", ROWS)
    single = replace(setting.tiny, number=2, plan=CallPlan.PER_LABEL, contract="binary")
    write_version(setting.workspace, single)
    assert require_same_as_a_pass(setting, store, single, PHRASES[1:2], "more")


def test_each_way_and_each_right_answer_is_counted(setting, store):
    """Words are shown with the cases they would help, and those they would harm."""
    found = suggest(setting, store, "Fluid  layers\n", "Pleural Effusion")
    assert (found.prompt, found.cohort) == ("tiny@v1", "dev")
    assert (found.cases, found.holding) == (25, 4)
    assert (found.engine, found.label, found.phrase, found.estimated) == (
        *("rules", "pleural_effusion", "Fluid layers", False),
    )
    term = of(found, GuidePart.TERM)
    assert [one.case_id for one in term.changes] == ["f0", "f1", "f2", "f3"]
    assert (term.gained, term.lost, term.others) == (4, 0, ())
    assert term.ways == (("absent", "present", 4),)
    assert of(found, GuidePart.EXCLUSION).changes == ()
    unsure = of(found, GuidePart.CLARIFICATION, Value.UNCERTAIN)
    assert unsure.ways == (("absent", "uncertain", 4),)
    assert (unsure.gained, unsure.lost) == (0, 0)
    harm = suggest(setting, store, "small pleural effusion")
    exclusion = of(harm, GuidePart.EXCLUSION)
    assert exclusion.ways == (("present", "absent", 6),)
    assert (exclusion.gained, exclusion.lost) == (0, 6)


def test_what_the_guide_has_already_is_said(setting, store):
    """Nothing would change, and one knows why."""
    term = of(suggest(setting, store, "Pleural effusion"), GuidePart.TERM)
    assert (term.problem, term.changes) == ("is there already", ())


def test_a_draft_is_suggested_for_as_it_stands(setting, store):
    """The next phrase comes on top of those that it has."""
    draft = begin(setting, store, FLUID).draft
    found = suggest(setting, store, "fluid layers", prompt=draft.ref, cohort="")
    assert found.cohort == "dev"
    assert of(found, GuidePart.TERM).changes == ()
    assert of(found, GuidePart.EXCLUSION).ways == (("present", "absent", 4),)


def test_a_holdout_is_searched_by_nobody(setting, store):
    """A count tells what its texts hold."""
    setting.add_cohort("hold", "holdout", [("h0", "Effusion.", 1, 0)])
    setting.add_cohort("other", "external", [("x0", "Effusion.", 1, 0)])
    for name in ("hold", "other"):
        with pytest.raises(DataError, match="revised on a dev"):
            suggest(setting, store, "effusion", cohort=name)


@pytest.mark.parametrize(
    ("phrase", "why"),
    [
        (" \n", "the phrase is empty"),
        ("...", "holds no word"),
        ("w" * 301, "at most 300"),
        ("fluid \ud800", "incomplete"),
    ],
)
def test_a_phrase_that_is_none_is_refused(setting, store, phrase, why):
    """In words that say what to do, and without the phrase."""
    with pytest.raises(DataError, match=why) as refused:
        suggest(setting, store, phrase)
    assert "fluid" not in str(refused.value)


def test_a_phrase_and_a_cohort_of_just_the_most_are_tried(setting, store, monkeypatch):
    """Spaces do not count as they were typed; one case more is refused."""
    assert len(suggest(setting, store, f"  {'w' * 149}   {'w' * 150} ").parts) == 7
    cases = len(read_cohort(setting.workspace, "dev").cases)
    monkeypatch.setattr(phrases, "MOST_CASES", cases)
    assert len(suggest(setting, store, "fluid layers").parts) == 7
    monkeypatch.setattr(phrases, "MOST_CASES", cases - 1)
    with pytest.raises(DataError, match=rf"{cases} cases; .* up to {cases - 1}\."):
        suggest(setting, store, "fluid layers")


def test_a_label_without_a_guide_is_refused(setting, store):
    """With what to name instead."""
    with pytest.raises(DataError, match="no guide for 'edema'"):
        suggest(setting, store, "fluid", "edema")
    with pytest.raises(DataError, match="follows from the other labels"):
        suggest(setting, store, "clear", "no_finding")
    with pytest.raises(EngineError, match="nonsense"):
        suggest(setting, store, "fluid", engine="nonsense")


def test_hostile_phrases_are_words_like_others(setting, store):
    """They are no pattern and no template, and take no longer."""
    setting.add_cohort("odd", "dev", [("o1", "Fluid (a+)+$ {{ x }} \u202e", 1, 0)])
    for phrase in ("(a+)+$", "{{ x }}", "* a *", "a" + "...b" * 70, "\u202ex"):
        assert len(suggest(setting, store, phrase, cohort="odd").parts) == 7


def test_another_engine_is_estimated_by_wording(setting, store, wavering):
    """Nothing is asked: the cases that hold the phrase, by what a run answered."""
    bare = suggest(setting, store, "small ... study", engine="wavering")
    assert bare.estimated and wavering.asked == ()
    assert of(bare, GuidePart.TERM).ways == (("not known", "present", 6),)
    assert of(bare, GuidePart.EXCLUSION).ways == (("not known", "absent", 6),)
    assert [bare.run, *((one.gained, one.lost) for one in bare.parts)] == [
        "",
        *[(None, None)] * 7,
    ]
    assert {one.unjudged for one in bare.parts} == {6}
    assert phrase_data(bare)["parts"][0]["gained"] is None
    run_prompt(setting.workspace, "tiny@v1", "dev", engine="wavering")
    found = suggest(setting, store, "small ... study", engine="wavering")
    assert found.run == find_run(setting.workspace, "latest").id
    asked = len(wavering.asked)
    counts = {one.part: {way[0]: way[2] for way in one.ways} for one in found.parts[:2]}
    present = counts[GuidePart.EXCLUSION].get("present", 0)
    absent = counts[GuidePart.TERM].get("absent", 0)
    assert present + absent == 6
    assert len(wavering.asked) == asked
    assert list_tries(setting.workspace, setting.tiny) == ()


def test_an_estimate_knows_what_no_draft_can_be_made_of(setting, store, wavering):
    """A wording that is there already changes nothing, whatever a run answered."""
    held = suggest(setting, store, "Pleural effusion", engine="wavering")
    term = of(held, GuidePart.TERM)
    assert held.holding and (term.problem, term.changes) == ("is there already", ())
    tried = suggest(setting, store, "Pleural effusion")
    assert [one.problem for one in held.parts] == [one.problem for one in tried.parts]


def test_changes_that_nobody_can_judge_are_counted_beside_the_others():
    """Without a reference, or without an answer now; no change at all is none."""
    way = ("effusion", "absent", "present")
    known = TriedChange("f1", *way, "present")
    unsure = TriedChange("f2", *way, "")
    unasked = TriedChange("f3", "effusion", "not known", "present", "present")
    mixed = TriedPart(part=GuidePart.TERM, value=None, changes=(known, unsure, unasked))
    assert (mixed.gained, mixed.lost, mixed.unjudged) == (1, 0, 2)
    open_ones = replace(mixed, changes=(unsure, unasked))
    assert (open_ones.gained, open_ones.lost, open_ones.unjudged) == (None, None, 2)
    none = replace(mixed, changes=())
    assert (none.gained, none.lost, none.unjudged) == (0, 0, 0)


def test_what_rules_showed_counts_for_the_drafts_of_that_guide(setting, store):
    """Wordings chosen by their counts were chosen on these cases."""
    suggest(setting, store, "fluid layers")
    suggest(setting, store, "fluid layers")
    suggest(setting, store, "resembles", "cardiomegaly")
    notes = list_tries(setting.workspace, setting.tiny)
    assert {(one.label, one.engine, one.by) for one in notes} == {
        (label, "rules", setting.editor.name)
        for label in ("pleural_effusion", "cardiomegaly")
    }
    of_fluid = [one for one in notes if one.label == "pleural_effusion"]
    assert len({one.digest for one in of_fluid}) == len(of_fluid) == 7
    assert {case for one in of_fluid for case in one.cases} == {
        *("f0", "f1", "f2", "f3")
    }
    draft = begin(setting, store, FLUID).draft
    assert count_tries(setting.workspace, draft) == (7, 4)
    suggest(setting, store, "cardiomegaly on", "cardiomegaly", draft.ref)
    assert check(setting, store, draft).tried == (14, 5)
    beside(setting.workspace, setting.tiny).tries.write_text("[{")
    with pytest.raises(DataError, match=f"what was tried of {setting.tiny.ref}"):
        count_tries(setting.workspace, draft)


def test_no_text_is_in_what_is_printed_of_a_try(setting, store):
    """The phrase may be the words of a case; the data has it for who asked."""
    found = suggest(setting, store, "fluid layers")
    assert "layers" not in repr(found)
    data = phrase_data(found)
    assert data["phrase"] == "fluid layers"
    assert data["parts"][0]["changes"][0] == {
        "case_id": "f0",
        "label": "pleural_effusion",
        "before": "absent",
        "after": "present",
        "expected": "present",
    }


def test_words_with_gaps_and_open_ends_are_found():
    """As `rules` finds them, as far as letters go."""
    assert holds("fluid at the left base", "Fluid ... base")
    assert not holds("fluid a b c d e f g base", "fluid ... base")
    assert holds("左胸腔积液", "胸腔")
    assert not holds("database", "base")
    assert not holds("a" + " b" * 3000, "a" + "...b" * 70 + "...c")


@pytest.mark.data
@pytest.mark.slow
def test_the_counts_hold_on_open_i(setting, store, data_folder):
    """Real reports hold what no made-up one does."""
    options = ImportOptions(name="openi", role="dev")
    path = data_folder / "openi" / "reports_dev.csv"
    import_cohort(setting.workspace, path, options, actor=setting.editor)
    phrases = (("pleural_effusion", "blunting"), ("cardiomegaly", "heart size"))
    version = setting.tiny
    assert require_same_as_a_pass(setting, store, version, phrases, "openi") > 30


def test_each_part_counts_what_is_gained_lost_and_open():
    """By the answers and the reference; the commonest way first."""
    changes = (
        TriedChange("a", "mass", "absent", "present", "present"),
        TriedChange("b", "mass", "present", "absent", "present"),
        TriedChange("c", "mass", "present", "absent", "absent"),
        TriedChange("d", "mass", "unparsed", "present", "present"),
        TriedChange("e", "mass", "present", "uncertain", "present"),
        TriedChange("f", "mass", "absent", "uncertain", "present"),
        TriedChange("g", "mass", "present", "absent", ""),
    )
    assert [one.gained for one in changes] == [
        *(True, False, True, False, False, False, False)
    ]
    assert [one.lost for one in changes] == [
        *(False, True, False, False, True, False, False)
    ]
    part = TriedPart(part=GuidePart.CLARIFICATION, value=Value.ABSENT, changes=changes)
    assert (part.gained, part.lost, part.unjudged) == (2, 2, 1)
    assert part.name == "clarification: absent"
    assert replace(part, part=GuidePart.TERM, value=None).name == "term"
    assert part.ways[0] == ("present", "absent", 3)
    assert sorted(part.ways[1:]) == [
        ("absent", "present", 1),
        ("absent", "uncertain", 1),
        ("present", "uncertain", 1),
        ("unparsed", "present", 1),
    ]


def test_a_try_is_told_whole_as_data():
    """Ids and answers; a run that there is not is null."""
    change = TriedChange("a", "mass", "absent", "present", "present")
    other = TriedChange("b", "edema", "present", "absent", "")
    parts = (
        TriedPart(part=GuidePart.TERM, value=None, problem="is there already"),
        TriedPart(
            part=GuidePart.EXEMPLAR,
            value=Value.PRESENT,
            changes=(change,),
            others=(other,),
        ),
    )
    found = PhraseTryout(
        prompt="tiny@v1",
        cohort="dev",
        cases=25,
        engine="rules",
        label="mass",
        phrase="lump",
        holding=3,
        estimated=False,
        run="",
        parts=parts,
    )
    told = {"gained": 0, "lost": 0, "unjudged": 0, "ways": [], "changes": []}
    assert phrase_data(found) == {
        "prompt": "tiny@v1",
        "cohort": "dev",
        "cases": 25,
        "engine": "rules",
        "label": "mass",
        "phrase": "lump",
        "holding": 3,
        "estimated": False,
        "run": None,
        "parts": [
            {
                "part": "term",
                "value": None,
                "problem": "is there already",
                "others": [],
                **told,
            },
            {
                "part": "exemplar",
                "value": "present",
                "problem": "",
                "gained": 1,
                "lost": 0,
                "unjudged": 0,
                "ways": [["absent", "present", 1]],
                "changes": [change._asdict()],
                "others": [other._asdict()],
            },
        ],
    }
    assert phrase_data(replace(found, run="r1"))["run"] == "r1"


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("fluid at base", "fluid", True),
        ("fluids at base", "fluid", False),
        ("fluids at base", "fluid*", True),
        ("a fluid", "luid", False),
        ("fluid a b c d e base", "fluid ... base", True),
        ("base then fluid", "fluid ... base", False),
        ("fluid base fluid x base", "fluid ... base ... base", True),
        ("fluid x base", "fluid \u2026 base", True),
        ("fluid x base y wall", "fluid ... base ... wall", True),
        ("fluid x base y wall", "fluid ... wall ... base", False),
        ("at 3.5 cm", "3.5 cm", True),
        ("at 3x5 cm", "3.5 cm", False),
        ("c- d", "c-", True),
        ("d -c", "-c", True),
    ],
)
def test_a_wording_stands_in_a_text_or_not(text, phrase, held):
    """Whole words, an open end, gaps in order, and no pattern."""
    assert holds(text, phrase) is held


def test_a_gap_holds_so_many_words_and_no_more():
    """As many as the engine takes."""
    for words in range(MAX_GAP_WORDS + 3):
        between = " ".join("x" * words)
        text = f"fluid {between} base" if words else "fluid base"
        assert holds(text, "fluid ... base") is (words <= MAX_GAP_WORDS)


def test_an_estimate_rests_on_the_newest_whole_run_of_that_engine(
    setting, store, wavering
):
    """Of a draft that of its parent will do; a part of the cases is none."""
    draft = begin(setting, store, FLUID).draft
    run_prompt(setting.workspace, "tiny@v1", "dev", engine="rules")
    run_prompt(setting.workspace, "tiny@v1", "dev", engine="wavering", limit=3)
    found = suggest(
        setting, store, "small ... study", prompt=draft.ref, engine="wavering"
    )
    assert found.run == ""
    first = run_prompt(setting.workspace, "tiny@v1", "dev", engine="wavering").run_id
    found = suggest(
        setting, store, "small ... study", prompt=draft.ref, engine="wavering"
    )
    assert found.run == first
    second = run_prompt(setting.workspace, draft.ref, "dev", engine="wavering").run_id
    found = suggest(
        setting, store, "small ... study", prompt=draft.ref, engine="wavering"
    )
    assert found.run == second
    plain = suggest(setting, store, "small ... study", engine="wavering")
    assert plain.run == first
    setting.add_cohort("more", "dev", ROWS)
    run_prompt(setting.workspace, "tiny@v1", "more", engine="wavering")
    plain = suggest(setting, store, "small ... study", engine="wavering")
    assert plain.run == first
    # A version is another prompt than the one before it.
    after = replace(setting.tiny, number=2, parent=setting.tiny.digest, system="Look.")
    write_version(setting.workspace, after)
    found = suggest(
        setting, store, "small ... study", prompt="tiny@v2", engine="wavering"
    )
    assert found.run == ""


def test_what_is_right_is_known_where_the_reference_decides_it(setting):
    """Present and absent alike; of a label that it cannot judge nothing is."""
    rows = [("a", "Effusion.", 1, 0), ("b", "Large heart.", 0, 1), ("c", "X.", -1, "")]
    setting.add_cohort("more", "dev", rows)
    cohort = read_cohort(setting.workspace, "more")
    known = PhraseBase(setting.workspace, setting.tiny, cohort).expected
    named = ("pleural_effusion", "cardiomegaly")
    assert {key: said for key, said in known.items() if key[1] in named} == {
        ("a", "pleural_effusion"): "present",
        ("a", "cardiomegaly"): "absent",
        ("b", "pleural_effusion"): "absent",
        ("b", "cardiomegaly"): "present",
    }
    apart = replace(cohort, not_comparable={"cardiomegaly": "another definition"})
    known = PhraseBase(setting.workspace, setting.tiny, apart).expected
    assert {key for key in known if key[1] in named} == {
        ("a", "pleural_effusion"),
        ("b", "pleural_effusion"),
    }
