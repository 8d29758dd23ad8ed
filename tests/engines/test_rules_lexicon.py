"""The lexicon of a guide: wordings that only `rules` reads, in any language."""

import pytest

from loop.core.records import Lexicon
from tests.engines.reading import rule, value_of


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
