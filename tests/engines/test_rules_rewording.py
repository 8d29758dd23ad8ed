"""What another wording changes is found in a few sentences, as if all were read."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Clarification, Guide, Value
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.rewording import AnsweredTexts
from loop.engines.rules.vocabulary import build_vocabulary, guide_wordings
from loop.prompts.catalog import read_version
from tests.calls import count_calls

LABELS = ("pleural_effusion", "atelectasis", "fracture")
OTHERS = ("lung_opacity", "cardiomegaly")
FIXED = (
    ("pleural_effusion", "efusion"),  # a misspelling that is corrected
    ("pleural_effusion", "atelecta*"),  # the beginning of another label's words
    ("pleural_effusion", "small ... effusion"),  # a gap
    ("pleural_effusion", "no"),  # a cue
    ("atelectasis", "opacify"),  # near a word of the guides
    ("atelectasis", "İ\u0307 Σ"),  # folded characters of another length
    ("fracture", "胸腔积液"),
)
CROWDED = (
    "No effusion, no pleural effusion, but the small effusion or the atelectasis.",
    "The effusion: no. Small effusion versus small fracture, no fracture or effusion",
    "☐ the effusion ☒ small atelectasis ☐ fracture no",
    "☐ fracture. No small effusion or small effusion of the left base, large effusion.",
    "There is no effusion The small effusion is gone The atelectasis or fracture is",
    "The efusion,  the efusion or no small   effusion. Cannot exclude the atelectesis.",
    "FINDINGS: No effusion. IMPRESSION: The effusion, the effusion and no effusion.",
    "The left effusion. Heart is large, it is small. No it is not seen. The rest is no",
    "Small ☐ effusion ☐ fracture",  # whose the boxes are depends on what is named
    "There is no fracture Murky effusion is seen",  # and so does where a stop is lost
    "The effusion is unlikly.",  # a cue, once it is corrected
)
"""Texts with many mentions, that what is said around them makes into other ones."""

COMMON = (
    ("fracture", "unlikely"),  # first: what was read before hides what is shared
    ("pleural_effusion", "murky effusion"),
    ("pleural_effusion", "effusion"),
    ("pleural_effusion", "small"),
    ("atelectasis", "the"),
    ("fracture", "no"),
    ("atelectasis", "no ... effusion"),
)
"""Words that stand in most texts, often more than once."""


@pytest.fixture(scope="module")
def cues():
    """Return the shipped cues."""
    return read_cues(bundled() / "labels")


@pytest.fixture(scope="module")
def guides():
    """Return some guides of the newest shipped version; one implies another."""
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    some = [one for one in version.guides if one.label in (*LABELS, *OTHERS)]
    return tuple(
        replace(one, implies=("cardiomegaly",)) if one.label == LABELS[0] else one
        for one in some
    )


@pytest.fixture(scope="module")
def texts():
    """Return the synthetic reports, some misspelt, and a few that no report is."""
    lines = (bundled() / "labels" / "demo" / "dev.jsonl").read_text(encoding="utf-8")
    plain = [json.loads(line)["text"] for line in lines.splitlines()][:40]
    misspelt = [
        one.replace("effusion", "efusion").replace("atelectasis", "atelectesis")
        for one in plain[:20]
    ]
    odd = (
        "",
        " ",
        "ΑΣ. ΑΣ, effusion,no",
        "x" * 2000 + "effusion small",
        "胸腔积液，无",
    )
    return (*plain, *misspelt, *odd, *plain[:5])


def phrases(texts: tuple[str, ...], seed: int) -> Iterator[str]:
    """Yield words that stand in the texts, some of them with a letter changed."""
    chance = Random(seed)
    while True:
        words = chance.choice(texts).split()
        if len(words) < 4:
            continue
        at = chance.randrange(len(words) - 3)
        phrase = " ".join(words[at : at + chance.randrange(1, 4)]).strip(".,;:")
        if chance.random() < 0.3 and len(phrase) > 3:
            cut = chance.randrange(len(phrase) - 1)
            phrase = phrase[:cut] + phrase[cut + 1 :]
        if any(char.isalnum() for char in phrase):
            yield phrase


def rewordings(guide: Guide, phrase: str) -> Iterator[tuple[Guide, Value | None, bool]]:
    """Yield a guide with the phrase as each thing, and how `rules` takes it."""
    yield replace(guide, terms=(*guide.terms, phrase)), Value.PRESENT, False
    yield replace(guide, exclusions=(*guide.exclusions, phrase)), None, True
    for value in Value:
        rule = Clarification(phrase=phrase, value=value)
        ruled = replace(guide, clarifications=(*guide.clarifications, rule))
        yield ruled, value, True


def compile_with(guides, cues, guide):
    """Return a reader with its guide replaced by another."""
    changed = [guide if one.label == guide.label else one for one in guides]
    return ReportReader(changed, [one.label for one in guides], cues)


def test_what_changes_is_what_reading_everything_again_shows(guides, cues, texts):
    """Case by case and to the letter, for whatever a person may mark."""
    base = compile_with(guides, cues, guides[0])
    before = [base.answer(text) for text in texts]
    answered = AnsweredTexts(compile_with(guides, cues, guides[0]), texts)
    drawn, chance = phrases(texts, 1), Random(2)
    changes = 0
    for label, phrase in (*FIXED, *((label, next(drawn)) for label in LABELS)):
        guide = next(one for one in guides if one.label == label)
        first, *taken = next(rewordings(guide, phrase))
        compiled = compile_with(guides, cues, first)
        changed, value, clarifies = chance.choice(list(rewordings(guide, phrase)))
        old = phrase, *taken
        again = compiled.retaking(label, old, value, clarifies=clarifies)
        whole = compile_with(guides, cues, changed)
        after = [whole.answer(text) for text in texts]
        assert [tuple(one) for one in answered.compare(again, {phrase})] == [
            (row, *both)
            for row, both in enumerate(zip(before, after, strict=True))
            if both[0] != both[1]
        ], (label, phrase, value, clarifies)
        changes += before != after
    assert changes > 2


def require_same_as_reading_all(
    guides: Sequence[Guide], cues, texts: Sequence[str], phrases, seed: int
) -> int:
    """Compare all that each phrase could become, in any order; return the changes."""
    base = compile_with(guides, cues, guides[0])
    before = [base.answer(text) for text in texts]
    answered = AnsweredTexts(compile_with(guides, cues, guides[0]), texts)
    chance, changes = Random(seed), 0
    for label, phrase in phrases:
        guide = next(one for one in guides if one.label == label)
        known = set(guide_wordings(guide))
        ways = [
            one for one in rewordings(guide, phrase) if (phrase, *one[1:]) not in known
        ]
        chance.shuffle(ways)
        first, *taken = ways[0]
        compiled = compile_with(guides, cues, first)
        for changed, value, clarifies in ways:
            old = phrase, *taken
            again = compiled.retaking(label, old, value, clarifies=clarifies)
            whole = compile_with(guides, cues, changed)
            after = [whole.answer(text) for text in texts]
            assert [tuple(one) for one in answered.compare(again, {phrase})] == [
                (row, *both)
                for row, both in enumerate(zip(before, after, strict=True))
                if both[0] != both[1]
            ], (label, phrase, value, clarifies)
            changes += sum(a != b for a, b in zip(before, after, strict=True))
    return changes


@pytest.mark.slow
def test_common_words_with_many_mentions_are_judged_as_in_a_whole_pass(
    guides, cues, texts
):
    """All that a phrase could become shares work, and nothing that differs."""
    among = (*CROWDED, *texts[:6], *texts[40:43], *texts[-10:-5])
    drawn = phrases(among, 3)
    marked = (*COMMON, *FIXED[1:4], *((label, next(drawn)) for label in LABELS))
    assert require_same_as_reading_all(guides, cues, among, marked, 4) > 100


@pytest.mark.data
@pytest.mark.slow
def test_common_words_of_real_reports_are_judged_as_in_a_whole_pass(
    guides, cues, data_folder
):
    """Real reports say things as no made-up one does."""
    path = data_folder / "openi" / "reports_dev.csv"
    with path.open(encoding="utf-8", newline="") as file:
        texts = [
            f"FINDINGS: {row['findings']}\nIMPRESSION: {row['impression']}"
            for row in csv.DictReader(file)
        ]
    marked = (*COMMON[2:5], ("pleural_effusion", "lung"))
    assert require_same_as_reading_all(guides, cues, texts, marked, 5) > 100


def test_readings_of_different_wordings_of_one_guide_share_nothing(guides, cues):
    """What was made of one wording is no answer for another."""
    guide = next(one for one in guides if one.label == "fracture")
    changed = replace(guide, terms=(*guide.terms, "quokka", "wombat"))
    compiled = compile_with(guides, cues, changed)
    text = "Quokka and wombat."
    taken = {}
    for word in ("quokka", "wombat"):
        old = word, Value.PRESENT, False
        reader = compiled.retaking("fracture", old, Value.UNCERTAIN, clarifies=True)
        taken[word] = json.loads(reader.answer(text))["fracture"]["span"]
    assert taken == {"quokka": [11, 17], "wombat": [0, 6]}


def test_what_a_phrase_could_become_shares_its_sentences(guides, cues):
    """Five things cost less than two would if each were read by itself."""
    guide = next(one for one in guides if one.label == "atelectasis")
    texts = tuple(
        f"{n} no effusion, small fracture; the heart {n} is large." for n in range(300)
    )
    compiled = compile_with(guides, cues, next(rewordings(guide, "small"))[0])
    answered = AnsweredTexts(compile_with(guides, cues, guide), texts)

    def compare(ways):
        for _, value, clarifies in ways:
            old = "small", Value.PRESENT, False
            again = compiled.retaking(guide.label, old, value, clarifies=clarifies)
            answered.compare(again, {"small"})

    ways = list(rewordings(guide, "small"))
    one, others = (
        count_calls(lambda part=part: compare(part)) for part in (ways[:1], ways[1:])
    )
    assert others < one * 2


def test_a_vocabulary_with_another_order_is_not_one_wording_more(guides, cues):
    """The matcher tells a word and its beginning in the order of the guides."""
    first, second, *_ = guides
    ends = replace(second, terms=(*second.terms, "quok*", "quok"))
    mixed = replace(first, terms=(*first.terms, "quok"))
    before = build_vocabulary((first, ends), cues)
    after = build_vocabulary((mixed, ends), cues)
    plain = build_vocabulary((replace(first, terms=(*first.terms, "x")), ends), cues)
    (wording,) = (one for one in after.wordings if one[0] == 0 and one.text == "quok")
    assert not after.adds(wording, before)
    (wording,) = (one for one in plain.wordings if one.text == "x")
    assert plain.adds(wording, before)
    assert not plain.adds(plain.wordings[0], before)


def test_a_wording_taken_out_is_found_as_well(guides, cues, texts):
    """A clarification may take the place of another, and lists may lose a wording."""
    guide = next(one for one in guides if one.label == "pleural_effusion")
    gone = guide.terms[0]
    base = compile_with(guides, cues, guide)
    bare = compile_with(guides, cues, replace(guide, terms=guide.terms[1:]))
    answered = AnsweredTexts(compile_with(guides, cues, guide), texts)
    expected = [
        (row, base.answer(text), bare.answer(text)) for row, text in enumerate(texts)
    ]
    wanted = [one for one in expected if one[1] != one[2]]
    changed = compile_with(guides, cues, replace(guide, terms=guide.terms[1:]))
    assert [tuple(one) for one in answered.compare(changed, {gone})] == wanted


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("quokkas", "Quokkaz at the left base."),
        ("quokkabird*", "Quakkabirds at the left base."),
        ("efusion", "Small left efusion."),
    ],
)
def test_a_text_that_holds_a_misspelling_only_is_read_again(guides, cues, phrase, text):
    """What is corrected towards the phrase, or was towards another wording, changes."""
    guide = next(one for one in guides if one.label == "atelectasis")
    changed = replace(guide, terms=(*guide.terms, phrase))
    answered = AnsweredTexts(compile_with(guides, cues, guide), ("Clear.", text))
    reader = compile_with(guides, cues, changed)
    (only,) = answered.compare(reader, {phrase})
    assert only.row == 1
    assert only.before == compile_with(guides, cues, guide).answer(text)
    assert only.after == compile_with(guides, cues, changed).answer(text)


def test_only_sentences_with_the_wording_are_judged_again(guides, cues, texts):
    """That is what makes it fast in a large cohort."""
    guide = next(one for one in guides if one.label == "pleural_effusion")
    changed = replace(guide, terms=(*guide.terms, "talc pleurodesis"))
    others = tuple(f"{n} lungs are clear, heart {n} as before." for n in range(400))

    def compare(among):
        answered = AnsweredTexts(compile_with(guides, cues, guide), among)
        reader = compile_with(guides, cues, changed)
        found = []
        phrase = {changed.terms[-1]}
        calls = count_calls(lambda: found.extend(answered.compare(reader, phrase)))
        return calls, found

    few, found = compare(texts)
    more, same = compare((*texts, *others))
    assert found and found == same
    assert more < few + len(others)
