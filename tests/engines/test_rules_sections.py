"""Which stretches of a report are read, and where its sentences begin and end."""

import pytest

from loop.engines.rules.cues import Cues, SectionHeadings
from loop.engines.rules.sections import LONGEST, SectionFinder, sentences

FINDER = SectionFinder(
    [
        Cues(
            language="en",
            words=True,
            sections=SectionHeadings(
                plain=("findings",),
                decisive=("impression",),
                brief=("comparison",),
                ignored=("clinical history", "history"),
            ),
        )
    ]
)


def read(text):
    """Return the sections that hold anything, and whether each decides."""
    found = [(text[one.start : one.end], one.decisive) for one in FINDER.find(text)]
    return [(part.strip(), decides) for part, decides in found if part.strip()]


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("No heading.", [("No heading.", False)]),
        ("Time: noon.\nClear.", [("Time: noon.\nClear.", False)]),
        (
            "Before. FINDINGS: Clear. IMPRESSION: Normal.",
            [("Before.", False), ("Clear.", False), ("Normal.", True)],
        ),
        # What is ignored ends with a blank line, or at the next heading.
        (
            "HISTORY: Cough.\nFever.\n\nClear lungs.\nFINDINGS: Mass.",
            [("Clear lungs.", False), ("Mass.", False)],
        ),
        ("CLINICAL  HISTORY: Cough. Fever.\nFINDINGS: Mass.", [("Mass.", False)]),
        ("HISTORY:\n\nCough.\n\nMass.", [("Mass.", False)]),
        # What is brief ends with the line that ends its sentence, too.
        ("COMPARISON: None.\nClear lungs.", [("Clear lungs.", False)]),
        ("COMPARISON: None. Or one.\nClear.", [("Clear.", False)]),
        ("COMPARISON: None\nwas there.\nClear.", [("Clear.", False)]),
        ("COMPARISON: None\n \nClear.", [("Clear.", False)]),
        # A report has a body: of nothing else what follows one sentence.
        ("HISTORY: Cough. Clear lungs. Mass.", [("Clear lungs. Mass.", False)]),
        ("HISTORY: Cough.", []),
        ("FINDINGS:\nHISTORY: Cough. Clear.", [("Clear.", False)]),
        ("IMPRESSION\nNormal.", [("Normal.", True)]),
        ("Impression\nNormal.", [("Impression\nNormal.", False)]),
        ("1) FINDINGS: Mass.", [("Mass.", False)]),
    ],
)
def test_sections_are_read_by_their_headings(text, sections):
    """What is not read is left out; the impression decides."""
    assert read(text) == sections


def split(text):
    """Return the sentences of a text, without the space around them."""
    found = sentences(text, 0, len(text))
    assert all(text[at : at + len(one)] == one for at, one in found)
    return [one.strip() for _, one in found if one.strip()]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Clear. No mass.", ["Clear", "No mass"]),
        ("A 1.5 cm mass. Rt. lung.", ["A 1.5 cm mass", "Rt. lung"]),
        ("Mass vs. scar.", ["Mass vs. scar"]),
        ("No effusion.No mass.", ["No effusion", "No mass"]),
        ("Effusion? No. Mass?", ["Effusion? No", "Mass?"]),
        ("Effusion? Clear.", ["Effusion?", "Clear"]),
        ("? effusion. Clear", ["? effusion", "Clear"]),
        ("Clear; no mass! Yes.", ["Clear", "no mass", "Yes"]),
        ("One\n\ntwo\n - three\n2. four", ["One", "two", "- three", "2", "four"]),
        ("Seen: 1) mass 2) scar (3) clip", ["Seen:", "1) mass", "2) scar", "(3) clip"]),
        ("Mass (5 mm) seen", ["Mass (5 mm) seen"]),
        ("A short line\nMass here", ["A short line", "Mass here"]),
        ("A short line,\nMass here", ["A short line,\nMass here"]),
        ("A short line\nmass here", ["A short line\nmass here"]),
    ],
)
def test_sentences_end_where_they_end(text, parts):
    """A full stop in a number or an abbreviation is none."""
    assert [one.rstrip(".") for one in split(text)] == parts


@pytest.mark.parametrize(("length", "parts"), [(50, 2), (51, 1)])
def test_a_line_of_fifty_characters_may_be_an_item(length, parts):
    """A longer one is prose that was wrapped; each line is measured by itself."""
    line = "x" * length
    assert len(split(f"{line}\nMass here")) == parts
    assert len(split(f"Longer than fifty characters are wrapped prose, and so is this\n"
                     f"{line}\nMass here")) == parts  # fmt: skip


def test_a_sentence_without_an_end_is_cut_at_a_space():
    """Where it has one; every character is in one part."""
    for text, first in (
        ("a" * 100 + " " + "b" * (LONGEST - 1), 100),
        ("b" * (LONGEST + 5), LONGEST),
        ("b" * LONGEST, LONGEST),
    ):
        found = sentences(text, 0, len(text))
        assert len(found[0][1]) == first
        assert "".join(part for _, part in found) == text
        assert max(len(part) for _, part in found) <= LONGEST
        assert [at for at, _ in found] == [0, first][: len(found)]
    assert len(sentences("b" * LONGEST, 0, LONGEST)) == 1


def test_only_the_stretch_that_is_asked_for_is_split():
    """With places in the whole text."""
    text = "Skip. Clear. Mass 1) here. Rest."
    assert sentences(text, 6, 12) == [(6, "Clear")]
    assert sentences(text, 6, 11) == [(6, "Clear")]
    assert sentences(text, 5, 5) == []
