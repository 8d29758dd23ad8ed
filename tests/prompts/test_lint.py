"""Lint finds what would go wrong, and is silent about a clean version."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from loop.core.records import Clarification, Exemplar, Lexicon, Value
from loop.prompts.lint import LEVELS, MAX_SUFFIX, lint_version
from loop.prompts.version import frozen_blocks
from tests.calls import count_calls

LABELS = ("edema", "fracture")


def lint(version, parent=None):
    """Return findings as ``level where: message`` lines."""
    found = lint_version(version, labels=LABELS, parent=parent)
    return [f"{LEVELS[one.severity]} {one.where}: {one.what}" for one in found]


def with_guide(version, **changes):
    """Return `version` with its first guide changed."""
    guide = replace(version.guides[0], **changes)
    return replace(version, guides=(guide, *version.guides[1:]))


def test_a_clean_version_has_no_findings(first, second):
    """No noise, so that a finding is read."""
    assert lint(first) == []
    assert lint(second, parent=first) == []


EXAMPLE = Exemplar(text="Wet.", value=Value.PRESENT, evidence="dry")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "oedema"}, "error guide oedema: is not a label"),
        ({"implies": ("x",)}, "error guide edema: implies the unknown label 'x'"),
        ({"implies": ("edema",)}, "error guide edema: implies itself"),
        (
            {"terms": ("wet-lung",), "exclusions": ("Wet lung",)},
            "error guide edema: 'wet lung' is both a term and an exclusion",
        ),
        ({"terms": ("wet", "Wet")}, "warning guide edema: term 'wet' appears twice"),
        (
            {"exclusions": ("a", "a")},
            "warning guide edema: exclusion 'a' appears twice",
        ),
        ({"exemplars": (EXAMPLE,)}, "error guide edema: exemplar 1: its evidence"),
        (
            {"terms": ("wet* lung",)},
            "error guide edema: 'wet* lung': * stands only after",
        ),
        (
            {"exclusions": ("wet lung... w*et",)},
            "error guide edema: 'wet lung... w*et': * stands only after",
        ),
        (
            {
                "exclusions": ("Wet-lung",),
                "clarifications": (
                    Clarification(phrase="wet lung", value=Value.PRESENT),
                ),
            },
            "error guide edema: 'wet lung' is excluded and clarified as present",
        ),
        (
            {
                "clarifications": (
                    Clarification(phrase="a", value=Value.PRESENT),
                    Clarification(phrase="A", value=Value.ABSENT),
                )
            },
            "error guide edema: 'a' is clarified with two different values",
        ),
    ],
)
def test_a_contradictory_guide_is_found(first, changes, message):
    """Published guidance had such contradictions, unnoticed."""
    assert any(line.startswith(message) for line in lint(with_guide(first, **changes)))


def test_a_guide_that_rules_a_phrase_out_in_two_ways_is_no_contradiction(first):
    """An exclusion clarified as absent, and stars where every engine reads them."""
    absent = Clarification(phrase="wet lung", value=Value.ABSENT)
    guide = with_guide(
        first,
        terms=(*first.guides[0].terms, "interstitial* ... mark*"),
        exclusions=("wet lung",),
        clarifications=(absent,),
    )
    assert not any(line.startswith("error") for line in lint(guide))


def test_a_term_of_two_labels_is_pointed_out(first):
    """Which label owns it is a clinical question."""
    guides = tuple(replace(guide, terms=("opacity",)) for guide in first.guides)
    (line,) = lint(replace(first, guides=guides))
    assert line == "warning guide edema: term 'opacity' also names fracture"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("{{ guides[0].label }}{{ txt }}{{ text }}", "variable 'txt' is undefined"),
        ("{{ text }}", "variable 'guides' is never used"),
        ("{{ guides[0].label }}", "variable 'text' is never used"),
        ("{{ guides[0].label }}{{ text }}" + "x" * (MAX_SUFFIX + 1), "follow the case"),
        ("{{ guides[0].label }}{{ text }}{{ text }}", "exactly once"),
        ("{{ guides[0].__class__ }}{{ text }}", "SecurityError"),
        ("{{ guides[0].label }}{{ text }}{# frozen: a #}", "has no {# end frozen #}"),
    ],
)
def test_a_template_at_fault_is_found(first, user, message):
    """Undefined, unused, after the case, twice, unsafe, unclosed."""
    assert any(
        line.startswith("error") and message in line
        for line in lint(replace(first, user=user))
    )


def test_length_is_warned_about_with_an_estimate(first):
    """The estimate says that it is one."""
    (line,) = lint(with_guide(first, definition="long " * 10_000))
    assert line.startswith("warning templates: one call has 50")
    assert "roughly 12," in line
    assert "into the lexicon" in line


def test_every_label_beyond_twenty_may_take_its_share(first):
    """A task of forty labels is not long because it has forty."""
    guide = replace(first.guides[0], definition="Wet. " * 100)
    forty = [replace(guide, label=f"l{number}") for number in range(40)]
    few = replace(first, guides=tuple(forty[:24]))
    many = replace(first, guides=tuple(forty))
    long = replace(first, guides=(*forty[:24], replace(guide, definition="x" * 9000)))
    found = [
        [line for line in lint(one) if "bytes before the case" in line]
        for one in (few, many, long)
    ]
    assert [len(lines) for lines in found] == [0, 0, 1]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [("Answer ", "Reply ", "was changed"), ("frozen: answer", "x", "was removed")],
)
def test_touching_a_frozen_block_is_an_error(first, old, new, what):
    """Optimizers must not rewrite the answer form or the place of the case."""
    user = first.user.replace(old, new).replace(
        "{# end frozen #}", "" if new == "x" else "{# end frozen #}"
    )
    lines = lint(replace(first, user=user), parent=first)
    assert f"error user.jinja: frozen block 'answer' {what}; restore it" in lines[0]


def test_every_file_at_fault_is_named(first):
    """A block that is not closed in one file hides no change in the next."""
    parent = replace(first, system="{# frozen: role #}Read.{# end frozen #}\n")
    version = replace(
        parent, system="{# frozen: role #}", user=parent.user.replace("Answer", "Say")
    )
    wheres = [one.where for one in lint_version(version, labels=LABELS, parent=parent)]
    assert {"system.jinja", "user.jinja"} <= {*wheres}


def test_errors_come_before_warnings(first):
    """What blocks a commit stands on top."""
    version = with_guide(first, terms=("a", "a"), implies=("x",))
    levels = [LEVELS[found.severity] for found in lint_version(version, labels=LABELS)]
    assert levels == ["error", "warning"]


def test_frozen_blocks_are_found_by_name(first):
    """Each holds the text that optimizers and editors must not touch."""
    blocks = frozen_blocks(first.user)
    assert list(blocks) == ["answer"]
    assert "Answer" in blocks["answer"]


class Meaning(NamedTuple):
    """What a taxonomy says of a label."""

    definition: str = "Fluid in the lung."
    counts: tuple[str, ...] = ()
    does_not_count: tuple[str, ...] = ()
    uncertain_when: tuple[str, ...] = ()


EDEMA = Meaning(
    counts=("Kerley B lines",),
    does_not_count=("soft tissue edema", "infection without the word"),
    uncertain_when=("fluid overload alone",),
)


def held_against(version, meaning=EDEMA, reading=()):
    """Return what lint says of a version that it holds against a taxonomy."""
    meanings = {"edema": meaning}
    found = lint_version(version, labels=LABELS, meanings=meanings, reading=reading)
    return [f"{one.where}: {one.what}" for one in found]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"terms": ("edema",)}, "term 'edema' makes 'soft tissue edema' present"),
        (
            {"terms": ("infect*",)},
            "term 'infect*' makes 'infection without the word' present",
        ),
        (
            {"terms": ("fluid ... alone",)},
            "term 'fluid ... alone' makes 'fluid overload alone' present",
        ),
        (
            {"exclusions": ("kerley b line",)},
            "exclusion 'kerley b line' makes 'Kerley B lines' absent",
        ),
        (
            {"clarifications": (Clarification(phrase="line", value=Value.UNCERTAIN),)},
            "clarification 'line' makes 'Kerley B lines' uncertain",
        ),
        (
            {"lexicon": (Lexicon(language="en", terms=("tissue edema",)),)},
            "term 'tissue edema' makes 'soft tissue edema' present",
        ),
    ],
)
def test_a_guide_that_contradicts_the_taxonomy_is_named(first, changes, message):
    """Readers and models are told the same, or somebody knows that they are not."""
    found = held_against(with_guide(first, **{"terms": (), **changes}))
    assert [line for line in found if f"guide edema: {message}" in line], found


@pytest.mark.parametrize(
    "changes",
    [
        {"terms": ("edema",), "exclusions": ("tissue edema",)},
        {"terms": ("kerley b line",)},
        {"terms": ("ide", "fect")},
        {
            "terms": ("kerley",),
            "clarifications": (Clarification(phrase="overload", value=Value.ABSENT),),
        },
        {
            "terms": ("kerley", "tissue"),
            "clarifications": (
                Clarification(phrase="tissue edema", value=Value.ABSENT),
                Clarification(phrase="fluid overload", value=Value.UNCERTAIN),
            ),
        },
    ],
)
def test_a_guide_that_agrees_contradicts_nothing(first, changes):
    """An exclusion or a clarification outranks the terms that it overlaps."""
    found = held_against(with_guide(first, **changes))
    assert [line for line in found if " makes " in line] == []


def test_a_guide_with_another_definition_than_the_taxonomy_is_named(first):
    """Readers would label one thing and a model look for another."""
    same = held_against(with_guide(first, definition="Fluid  in the\nlung."))
    assert [line for line in same if "defines otherwise" in line] == []
    (line,) = [
        line
        for line in held_against(with_guide(first, definition="Any fluid."))
        if "defines otherwise" in line
    ]
    assert line.startswith("guides: the taxonomy defines otherwise: edema; readers")


def test_what_a_guide_leaves_out_of_the_taxonomy_is_named(first):
    """A copy of the definition that fell behind is seen."""
    counts = {"counts": ("septal lines",)}
    found = held_against(with_guide(first, **counts))
    assert (
        "guide edema: counts leaves out what the taxonomy lists: 'Kerley B lines'"
        in (found)
    )
    agreed = held_against(with_guide(first, counts=("Kerley-B  lines",)))
    assert [line for line in agreed if "leaves out what" in line] == []


def test_rules_of_reading_that_a_prompt_leaves_out_are_named(first):
    """Line breaks do not matter, words do."""
    rules = ("No reaches its list.", "Stable is present.")
    version = replace(first, system=first.system + "\nNo reaches\n its list.\n")
    (line,) = [one for one in held_against(version, reading=rules) if "reading" in one]
    assert "leaves out 1 of the 2 rules" in line
    assert "Stable is present." in line


def test_what_a_model_has_no_use_for_belongs_to_the_lexicon(first):
    """A model knows endings; a pattern in a prompt is noise, and costs tokens."""
    many = tuple(f"wording {chr(97 + number)}" for number in range(13))
    shown = held_against(with_guide(first, terms=many))
    assert [line for line in shown if "more than 12 wordings of edema (13)" in line]
    enough = held_against(with_guide(first, terms=many[:12]))
    assert not [line for line in enough if "more than" in line]
    for wording in ("wet*", "wet ... lung", "\u80ba\u6c34\u80bf"):
        found = held_against(with_guide(first, terms=(wording,)))
        assert [one for one in found if "with * or ..., or of another script" in one]
    kept = Lexicon(language="en", terms=(*many, "wet*"))
    hidden = held_against(with_guide(first, terms=("wet",), lexicon=(kept,)))
    assert [line for line in hidden if "lexicon" in line] == []


def test_labels_without_an_example_of_each_kind_are_named(first):
    """One that is present, and one that only looks like it."""
    present = Exemplar(text="Wet lung.", value=Value.PRESENT, evidence="Wet")
    absent = Exemplar(text="Dry lung.", value=Value.ABSENT, evidence="Dry")
    found = held_against(with_guide(first, exemplars=(present,)))
    lines = [line for line in found if "no exemplar" in line]
    assert lines == [
        "guides: no exemplar that is present: fracture",
        "guides: no exemplar that only looks like it: edema, fracture",
    ]
    both = with_guide(first, exemplars=(present, absent))
    assert not [
        line for line in held_against(both) if "edema" in line and "no ex" in line
    ]


def test_a_note_that_speaks_of_another_wording_is_named(first):
    """A reason copied down a list is no reason for what it does not mention."""
    rules = tuple(
        Clarification(
            phrase=phrase, value=Value.UNCERTAIN, note="old granulomas calcify"
        )
        for phrase in ("granuloma", "atherosclerosis")
    )
    found = lint(with_guide(first, clarifications=rules))
    assert found == [
        "warning guide edema: the note 'old granulomas calcify' is given for "
        "'atherosclerosis', which it does not speak of"
    ]
    assert lint(with_guide(first, clarifications=rules[:1])) == []
    assert lint(with_guide(first, clarifications=rules[1:])) == []


@pytest.mark.parametrize(
    "wording", ["a ... " * 40 + "b", "(((((", "*" * 30, "a" * 5000]
)
def test_ten_times_the_words_are_ten_times_the_work(first, wording):
    """Wordings are words: nothing in them repeats a search without end."""
    version = with_guide(first, terms=(wording,))

    def work(words):
        meaning = Meaning(counts=("a " * words,))
        return count_calls(lambda: held_against(version, meaning))

    assert work(1_000) < 15 * work(100) + 1_000


def test_rules_that_say_uncertain_are_counted_where_it_is_not_offered(first):
    """One line, not one for each."""
    rules = tuple(
        Clarification(phrase=phrase, value=Value.UNCERTAIN) for phrase in ("a", "b")
    )
    taught = with_guide(first, clarifications=rules)
    assert not any("say uncertain" in line for line in lint(taught))
    (line,) = [
        line
        for line in lint(replace(taught, contract="binary"))
        if "say uncertain" in line
    ]
    assert line.startswith("warning guides: 2 rules and exemplars say uncertain")
