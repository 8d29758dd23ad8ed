"""Lint finds what would go wrong, and is silent about a clean version."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from loop.core.records import Clarification, ErrorWeight, Exemplar, Lexicon, Value
from loop.prompts.lint import (
    LABEL_BYTES,
    LEVELS,
    LONG_BYTES,
    MAX_SUFFIX,
    fold_phrase,
    has_errors,
    is_pattern,
    is_shown,
    lint_data,
    lint_guide,
    lint_version,
)
from loop.prompts.outputs.base import CONTRACTS
from loop.prompts.outputs.binary import BinaryValues
from loop.prompts.version import CallPlan, frozen_blocks
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


def test_a_text_that_the_contract_is_about_must_be_shown(first):
    """Evidence would be looked for in a text that the model never saw."""
    user = first.user.replace("{{ text }}", "{{ indication }}")
    (found,) = lint(replace(first, user=user, inputs=("indication",)))
    assert found.startswith(
        "error prompt.yaml: the contract label_values is about 'text', which is none "
        "of the inputs (indication): add it there"
    )
    both = first.user.replace("{{ text }}", "{{ indication }}\n{{ text }}")
    assert lint(replace(first, user=both, inputs=("indication", "text"))) == []


def test_a_judge_is_asked_everything_in_one_call(first):
    """Letters name categories by their place, and matches are counted once."""
    user = first.user.replace("{{ text }}", "{{ reference }}\n{{ candidate }}")
    both = replace(
        first, user=user, contract="green_sections", inputs=("reference", "candidate")
    )
    assert lint(both) == []
    (found,) = lint(replace(both, plan=CallPlan.PER_LABEL))
    assert found.startswith(
        "error prompt.yaml: the contract green_sections is answered"
    )


def test_a_clean_version_has_no_findings(first, second):
    """No noise, so that a finding is read."""
    assert lint(first) == []
    assert lint(second, parent=first) == []


EXAMPLE = Exemplar(text="Wet.", value=Value.PRESENT, evidence="dry")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "oedema"}, "error guide oedema: is no label"),
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


def test_every_template_is_looked_at_and_blamed_for_its_own(first):
    """One at fault hides nothing of the other, and is no reason to blame it."""
    (alone,) = lint(replace(first, user="{{ guides[0].label }}{{ text }}{% if %}"))
    assert alone.startswith("error templates: ")
    asked = replace(first, system="{{ text }}\n")
    known = "variable 'text' is undefined; use"
    assert [one for one in lint(asked) if f"error system.jinja: {known}" in one]
    block = f"{{# frozen: answer #}}\n{BinaryValues().instruction}\n{{# end frozen #}}"
    both = replace(
        first,
        system="Read. {# frozen: role #}\n",
        user=f"{{{{ guides[0].label }}}}\n{block}\n{{{{ text }}}}\n",
    )
    lines = lint(both)
    assert [one for one in lines if "error system.jinja: " in one and "role" in one]
    assert [one for one in lines if "asks for the contract binary" in one]


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
    # Letters with accents, up to those of Romanian, are of the same script.
    assert is_shown("\u021bes\u0103tur\u0103", first.guides[0])
    assert is_shown("\u024f", first.guides[0])
    assert not is_shown("\u0250", first.guides[0])
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


@pytest.mark.parametrize(("more", "said"), [(0, False), (1, True)])
def test_a_limit_of_length_may_be_reached_and_not_passed(first, more, said):
    """In characters after the case, and in bytes before it, by number of guides."""
    after = replace(first, user="{{ text }}" + "x" * (MAX_SUFFIX + more))
    assert any("characters follow" in one for one in lint(after)) is said
    for guides, allowed in ((2, 0), (20, 0), (21, LABEL_BYTES)):
        size = LONG_BYTES + allowed + more
        long = replace(
            first,
            system="{% for one in guides %}{% endfor %}" + "é" * 9 + "x" * (size - 18),
            user="{{ text }}",
            guides=tuple(
                replace(first.guides[0], label=f"l{number}") for number in range(guides)
            ),
        )
        assert any("before the case text" in one for one in lint(long)) is said


def test_errors_come_before_warnings(first):
    """Whichever guide they are about."""
    twice = replace(first.guides[0], terms=("wet", "wet"))
    wrong = replace(first.guides[1], exemplars=(EXAMPLE,))
    levels = [one.split()[0] for one in lint(replace(first, guides=(twice, wrong)))]
    assert levels == ["error", "warning"]


def _rules(note, *phrases):
    """Return clarifications that give the same reason."""
    return tuple(
        Clarification(phrase=one, value=Value.ABSENT, note=note) for one in phrases
    )


@pytest.mark.parametrize(
    ("changes", "part", "said"),
    [
        ({"exemplars": (replace(EXAMPLE, evidence="WET"),)}, "its evidence", False),
        ({"terms": ("*",)}, "stands only after", True),
        (
            {"clarifications": _rules("Fluid moves.", "fluids", "moves")},
            "the note",
            False,
        ),
        ({"clarifications": _rules("A wet lung.", "lung", "grey")}, "'grey'", True),
    ],
)
def test_a_guide_is_read_word_by_word(first, changes, part, said):
    """In any case, by the first letters of longer words, a star alone as none."""
    assert any(part in one for one in lint(with_guide(first, **changes))) is said


def test_uncertain_exemplars_are_examples_and_no_binary_ones(first):
    """They show what only looks like it; a binary contract cannot give their value."""
    unsure = replace(EXAMPLE, value=Value.UNCERTAIN, evidence="wet")
    version = with_guide(first, exemplars=(unsure,))
    found = lint_version(version, labels=LABELS, meanings={})
    (lacking,) = [one.what for one in found if "only looks like it" in one.what]
    assert "edema" not in lacking and "fracture" in lacking
    binary = lint(replace(version, contract=BinaryValues.name))
    assert any("1 rules and exemplars say uncertain" in one for one in binary)


def test_a_rule_of_reading_may_be_wrapped_otherwise(first):
    """Line breaks and runs of spaces are none of its words."""
    version = replace(first, system=f"{first.system}Read this\nwell.\n")
    for rule, said in (("Read  this well.", False), ("Read that well.", True)):
        found = lint_version(version, labels=LABELS, meanings={}, reading=[rule])
        assert any("leaves out 1 of the 1 rules" in one.what for one in found) is said


@pytest.mark.parametrize(
    ("item", "wordings", "deciding"),
    [
        ("long wet lung", "term:long wet lung exclusion:wet", "exclusion:wet"),
        ("wet lung", "exclusion:wet clarified:wet lung", "clarification:wet lung"),
        ("wet lung", "term:wet lung term:lung", "term:wet lung term:lung"),
        ("dry lung", "exclusion:dry term:lung", "term:lung"),
        ("lung dry", "exclusion:dry term:lung", "term:lung"),
        ("wet a b c d e lung", "term:wet ... lung", "term:wet ... lung"),
        ("wet a b c d e f lung", "term:wet ... lung", ""),
        ("wet wet lung", "exclusion:wet term:wet ... lung", "term:wet ... lung"),
        ("masses", "term:mass", "term:mass"),
        ("opacities", "term:opacity", "term:opacity"),
        ("dry lung", "term:wet lung", ""),
    ],
)
def test_the_wording_that_decides_is_the_one_that_would_in_a_report(
    first, item, wordings, deciding
):
    """An exclusion before a term, the longer before the shorter, where they overlap."""
    given = _split(wordings)
    version = with_guide(
        first,
        terms=tuple(phrase for kind, phrase in given if kind == "term"),
        exclusions=tuple(phrase for kind, phrase in given if kind == "exclusion"),
        clarifications=tuple(
            Clarification(phrase=phrase, value=Value.PRESENT)
            for kind, phrase in given
            if kind == "clarified"
        ),
    )
    # Listed on both sides, so that whatever decides is contradicted once.
    meaning = SimpleNamespace(
        definition=version.guides[0].definition,
        counts=(item,),
        does_not_count=(item,),
        uncertain_when=(),
    )
    found = lint_version(version, labels=LABELS, meanings={"edema": meaning})
    said = [re.match(r"(\w+) '(.*)' makes ", one.what) for one in found]
    assert {one.groups() for one in said if one} == set(_split(deciding))


def _split(text):
    """Return pairs of kind and phrase."""
    return re.findall(r"(\w+):(.*?)(?= \w+:|$)", text)


@pytest.mark.parametrize(
    ("phrase", "said"),
    [
        ("...", "has no word in it"),
        (" - ", "has no word in it"),
        ("*", "has no word in it"),
        ("wet*", "has a *, which stands for nothing in the guide of a judge"),
        ("*wet", "has a *, which stands for nothing in the guide of a judge"),
        ("wet ... lung", ""),
        ("7", ""),
    ],
)
def test_a_judge_is_given_words_that_can_be_found(first, phrase, said):
    """An extractor's patterns are read by `rules`, a judge's by nobody."""
    user = first.user.replace("{{ text }}", "{{ reference }}\n{{ candidate }}")
    judge = replace(
        with_guide(
            first,
            clarifications=(
                Clarification(phrase="dry", value=ErrorWeight.SIGNIFICANT),
                Clarification(phrase=phrase, value=ErrorWeight.NO_ERROR),
            ),
        ),
        user=user,
        contract="green_sections",
        inputs=("reference", "candidate"),
    )
    found = [one for one in lint(judge) if "a clarification's phrase" in one]
    assert len(found) == bool(said)
    assert all(f"error edema: a clarification's phrase {said}" in one for one in found)
    extractor = with_guide(
        first, clarifications=(Clarification(phrase=phrase, value=Value.ABSENT),)
    )
    assert not [one for one in lint(extractor) if "a clarification's phrase" in one]


def told(version, **options):
    """Return what lint says of a version, whole."""
    found = lint_version(version, **{"labels": LABELS, **options})
    return [(LEVELS[one.severity], one.where, one.what) for one in found]


def test_what_lint_found_is_data_and_decides(first):
    """Level, place and words; a warning alone is no error."""
    twice = with_guide(first, terms=("wet", "wet"))
    found = lint_version(twice, labels=LABELS)
    assert lint_data(found) == [
        {
            "level": "warning",
            "where": "guide edema",
            "message": "term 'wet' appears twice",
        }
    ]
    assert {one.check for one in found} == {"lint"}
    assert not has_errors(found) and not has_errors([])
    found = lint_version(with_guide(twice, label="x"), labels=LABELS)
    assert has_errors(found)


def test_undefined_variables_are_told_with_those_there_are(first):
    """In each template its own: only the user message has the inputs."""
    version = replace(
        first,
        system="{{ b }}{{ a }}{{ text }}{{ shots }}{{ name }}",
        user="{{ guides }}{{ fields }}{{ c }}{{ text }}",
    )
    shared = "use fields, guides, name, shots"
    lines = [one for one in told(version) if "is undefined; use" in one[2]]
    assert lines == [
        ("error", "system.jinja", f"variable 'a' is undefined; {shared}"),
        ("error", "system.jinja", f"variable 'b' is undefined; {shared}"),
        ("error", "system.jinja", f"variable 'text' is undefined; {shared}"),
        ("error", "user.jinja", f"variable 'c' is undefined; {shared}, text"),
    ]


def test_the_call_plan_of_a_contract_is_told(first):
    """A judge has one call; one that holds phrases against each other, two."""
    user = first.user.replace("{{ text }}", "{{ reference }}\n{{ candidate }}")
    pair = replace(
        first,
        user=user,
        contract="error_list",
        inputs=("reference", "candidate"),
        plan=CallPlan.PER_LABEL,
    )
    assert (
        "error",
        "prompt.yaml",
        "the contract error_list is answered in one call, and the call plan is "
        "per_label: set it to joint",
    ) in told(pair)
    phrases = ("reference_phrases", "candidate_phrases")
    held = replace(
        first,
        user="{{ guides }}" + "".join(f"{{{{ {one} }}}}\n" for one in phrases),
        contract="entailment",
        inputs=phrases,
    )
    lines = told(held)
    assert (
        "error",
        "prompt.yaml",
        "the contract entailment is answered in a call for each guide, and the call "
        "plan is joint: set it to per_label",
    ) in lines
    asks = "the contract entailment asks for precision and recall, and the guides are "
    assert (
        "error",
        "guides.yaml",
        f"{asks}for something else: have one for each of the two",
    ) in lines
    guides = tuple(
        replace(first.guides[0], label=name) for name in ("recall", "precision")
    )
    both = replace(held, plan=CallPlan.PER_LABEL, guides=guides)
    assert told(both, labels=("recall", "precision")) == []


def test_each_missing_text_of_a_contract_is_told(first):
    """In the order of their names, with the inputs that there are."""
    lines = told(replace(first, contract="error_list_weighted"))
    assert [one[2].partition(",")[0] for one in lines if "is about" in one[2]] == [
        f"the contract error_list_weighted is about {name!r}"
        for name in ("candidate", "context", "reference")
    ]
    assert all("none of the inputs (text): add it" in one[2] for one in lines[-3:])


def test_an_answer_block_of_another_contract_is_told(first):
    """In whichever template; that of its own contract is as it should be."""
    for name, wrong in (("binary", True), ("label_values", False)):
        instruction = CONTRACTS[name].instruction
        block = f"{{# frozen: answer #}}\n{instruction}{{# end frozen #}}\n"
        user = f"{{{{ guides }}}}{block}{{{{ text }}}}\n"
        lines = told(replace(first, user=user))
        assert (
            (
                "error",
                "user.jinja",
                "frozen block 'answer' asks for the contract binary, and prompt.yaml "
                "names label_values",
            )
            in lines
        ) is wrong
        assert len(lines) == wrong


def test_words_of_another_task_are_told(first):
    """Each once and in order, of rules and of examples."""
    rules = (
        Clarification(phrase="a", value=ErrorWeight.SIGNIFICANT),
        Clarification(phrase="b", value=ErrorWeight.NO_ERROR),
        Clarification(phrase="c", value=Value.ABSENT),
    )
    example = replace(EXAMPLE, value=ErrorWeight.NO_ERROR, evidence="wet")
    version = with_guide(first, clarifications=rules, exemplars=(example,))
    assert told(version) == [
        (
            "error",
            "guides",
            "rules or exemplars say no_error, significant; this prompt's words are "
            "present, absent, uncertain",
        )
    ]


def test_what_repeats_or_contradicts_itself_in_a_guide_is_told_whole(first):
    """Over the guide and its lexicon together, in one order."""
    lexicon = Lexicon(
        language="en",
        terms=("Wet-lung", "zoo"),
        exclusions=("dry", "Dry"),
        clarifications=(Clarification(phrase="hazy", value=Value.ABSENT),),
    )
    guide = replace(
        first.guides[0],
        terms=("wet lung", "ant*x", "zoo"),
        exclusions=("zoo", "hazy"),
        clarifications=(
            Clarification(phrase="Hazy", value=Value.PRESENT),
            Clarification(phrase="* b", value=Value.ABSENT),
        ),
        exemplars=(EXAMPLE, replace(EXAMPLE, evidence="Wet"), EXAMPLE),
        lexicon=(lexicon,),
    )
    found = [(LEVELS[one.severity], one.what) for one in lint_guide(guide)]
    star = (
        ": * stands only after the last word, or after the last word before ...; "
        "elsewhere the wording never matches"
    )
    assert found == [
        ("error", "'zoo' is both a term and an exclusion; keep one"),
        ("warning", "term 'wet lung' appears twice"),
        ("warning", "term 'zoo' appears twice"),
        ("warning", "exclusion 'dry' appears twice"),
        ("error", f"'ant*x'{star}"),
        ("error", f"'* b'{star}"),
        ("error", "'hazy' is excluded and clarified as present"),
        ("error", "'hazy' is clarified with two different values"),
        ("error", "exemplar 1: its evidence is not in its text"),
        ("error", "exemplar 3: its evidence is not in its text"),
    ]


def test_a_term_of_three_labels_is_told_once(first):
    """With every other label; a term twice in one guide is of one label."""
    guides = tuple(
        replace(first.guides[0], label=name, terms=terms)
        for name, terms in (
            ("a", ("wet", "dry")),
            ("b", ("Wet", "wet")),
            ("c", ("wet", "own")),
        )
    )
    lines = told(replace(first, guides=guides), labels="abc")
    assert lines == [
        ("warning", "guide b", "term 'wet' appears twice"),
        ("warning", "guide a", "term 'wet' also names b, c"),
    ]


@pytest.mark.parametrize(
    ("wording", "pattern", "shown"),
    [
        ("wet lung", False, True),
        ("wet*", True, False),
        ("wet ... lung", True, False),
        ("wet … lung", True, False),
        ("肺", False, False),
        ("12 %", False, True),
    ],
)
def test_a_pattern_and_a_foreign_word_are_for_rules_alone(
    first, wording, pattern, shown
):
    """A foreign word is one where the definition is not of its script."""
    assert is_pattern(wording) is pattern
    assert is_shown(wording, first.guides[0]) is shown
    chinese = replace(first.guides[0], definition="肺水肿")
    assert is_shown("肺", chinese) and is_shown("wet", chinese)


def test_case_hyphens_and_spaces_make_no_other_phrase():
    """As a reader takes them."""
    assert fold_phrase("  Plate-LIKE \n opacity-") == "plate like opacity"


def test_what_a_model_is_shown_too_much_of_is_told_by_label(first):
    """Each label once, with how many wordings it has."""
    many = tuple(f"word {chr(97 + n)}" for n in range(14))
    guides = (
        replace(first.guides[0], terms=many, exclusions=("a*", "b*")),
        replace(first.guides[1], terms=(*many[:12], "c ... d")),
    )
    lines = told(replace(first, guides=guides), meanings={})
    assert [one for one in lines if "a language model is shown" in one[2]] == [
        (
            "warning",
            "guides",
            "a language model is shown more than 12 wordings of edema (14), fracture "
            "(13): move the others to the lexicon, which `rules` reads",
        ),
        (
            "warning",
            "guides",
            "a language model is shown wordings with * or ..., or of another script, "
            "in edema, fracture: move them to the lexicon, which `rules` reads",
        ),
    ]


def test_rules_and_definitions_that_differ_are_told_whole(first):
    """Every rule that is left out, and every label; those that agree are not."""
    version = replace(first, system="Read. One two.\n")
    meanings = {
        "edema": Meaning(definition="Other."),
        "fracture": Meaning(definition="A broken\nbone."),
    }
    lines = told(version, meanings=meanings, reading=("One  two.", "Three.", "Four."))
    assert [one for one in lines if "taxonomy" in one[2]] == [
        (
            "warning",
            "templates",
            "leaves out 2 of the 3 rules of reading of the taxonomy: Three. / Four.",
        ),
        (
            "warning",
            "guides",
            "the taxonomy defines otherwise: edema; readers are told its definition, "
            "models that of the guide",
        ),
    ]


def test_what_a_guide_leaves_out_is_told_by_list(first):
    """Only of a list that the guide has; each thing in quotes."""
    meaning = EDEMA._replace(counts=("a", "b", "c"), uncertain_when=("d",))
    version = with_guide(first, counts=("B",), does_not_count=())
    lines = told(version, meanings={"edema": meaning})
    assert [one for one in lines if "leaves out what" in one[2]] == [
        (
            "warning",
            "guide edema",
            "counts leaves out what the taxonomy lists: 'a', 'c'",
        )
    ]
