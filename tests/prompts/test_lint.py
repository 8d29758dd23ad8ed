"""Lint finds what would go wrong, and is silent about a clean version."""

from dataclasses import replace

import pytest

from loop.core.records import Clarification, Exemplar, Value
from loop.prompts.lint import LEVELS, MAX_SUFFIX, lint_version
from loop.prompts.version import frozen_blocks

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
    assert "tokens (estimate: characters / 4)" in line


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
