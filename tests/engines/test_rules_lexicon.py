"""The lexicon of a guide: wordings that only `rules` reads, in any language."""

from collections import deque

import pytest

from loop.core.records import Lexicon
from loop.engines.rules import vocabulary
from tests.engines.reading import CUES, guide, rule, value_of


@pytest.mark.parametrize(
    ("wordings", "text", "expected"),
    [
        ({"terms": ("wet lung*",)}, "Wet lungs.", "present"),
        ({"terms": ("wet lung*",)}, "No wet lungs.", "absent"),
        ({"exclusions": ("ankle edema",)}, "Ankle edema.", "absent"),
        (
            {"clarifications": (rule("overload", "uncertain"),)},
            "Fluid overload.",
            "uncertain",
        ),
        ({}, "Edema.", "present"),
    ],
)
def test_a_lexicon_is_read_like_the_guide_itself(wordings, text, expected):
    """Where a wording is kept changes nothing of what it means."""
    lexicon = Lexicon(language="en", **wordings)
    assert value_of(text, "edema", lexicon=(lexicon,)) == expected


def test_every_language_of_a_lexicon_is_read():
    """A Chinese wording is found in a Chinese report, an English one in an English."""
    english = Lexicon(language="en", terms=("wet lung",))
    chinese = Lexicon(language="zh", terms=("肺水肿",))
    lexicon = (english, chinese)
    assert value_of("Wet lung.", lexicon=lexicon) == "present"
    assert value_of("双肺肺水肿。", lexicon=lexicon) == "present"


def test_cues_are_compiled_once_for_all_prompts_and_no_guide_stays_in_them(monkeypatch):
    """A prompt with a call for each label has twenty vocabularies on the same cues."""
    compiled = []
    original = vocabulary._Builder.add_cues
    monkeypatch.setattr(vocabulary, "_KNOWN", deque())
    monkeypatch.setattr(
        vocabulary._Builder,
        "add_cues",
        lambda self, cues: compiled.append(cues) or original(self, cues),
    )
    cues = tuple(one.model_copy() for one in CUES)
    built = [
        vocabulary.build_vocabulary([guide(name, f"{name} sign")], cues)
        for name in ("walrus", "tern", "walrus")
    ]
    assert compiled == list(cues)
    assert built[0] == built[2] and "walrus sign" in built[0].strings
    assert not any("walrus" in one for one in built[1].strings)
    assert [len(one.parts) for one in built[1].entries if one.parts] == [1] * sum(
        bool(one.parts) for one in built[1].entries
    )
    assert vocabulary.build_vocabulary([], CUES[:1]).strings != built[0].strings
    assert len(compiled) == len(cues) + 1
