"""The diff says what changed, label by label, and nothing else."""

from dataclasses import replace

from loop.core.records import Clarification, Lexicon, Value
from loop.prompts.diff import (
    diff_data,
    diff_versions,
    format_diff,
    show_clarification,
    show_exemplar,
)
from loop.prompts.version import CallPlan, NamedVersion


def test_guides_are_compared_entry_by_entry(first, second):
    """A clinician reads terms, not line numbers."""
    diff = diff_versions(first, second)
    assert format_diff(diff) == [
        "tiny@v1 -> tiny@v2",
        "",
        "edema",
        "  + term: wet lungs",
        "  + term: fluid ... lung",
        "  + exclusion: soft tissue edema",
        "  + clarification: hazy -> uncertain (Not enough.)",
        '  + exemplar: "The lungs are wet." -> present by "wet"; Said outright.',
        "  + implies: fracture",
    ]
    assert diff.counts()["+term"] == 2


def test_the_reverse_diff_mirrors_every_sign(first, second):
    """What one adds the other removes."""
    there = diff_versions(first, second).guides[0].changes
    back = diff_versions(second, first).guides[0].changes
    assert [change.sign for change in there] == ["+"] * 6
    assert [change.sign for change in back] == ["-"] * 6
    assert [change[1:] for change in there] == [change[1:] for change in back]


def test_templates_are_compared_line_by_line(first):
    """Wording around the guides changes too."""
    diff = diff_versions(first, replace(first, number=2, system="Read well.\n"))
    assert diff.templates[0].lines == ("@@ -1 +1 @@", "-Read.", "+Read well.")


def test_a_change_stands_between_two_lines_of_what_is_around_it(first):
    """Enough to find the place, and no more."""
    long = replace(first, system="a\nb\nc\nd\ne\nf\ng\n")
    diff = diff_versions(long, replace(long, number=2, system="a\nb\nc\nX\ne\nf\ng\n"))
    assert diff.templates[0].lines == (
        *("@@ -2,5 +2,5 @@", " b", " c", "-d", "+X", " e", " f"),
    )


def test_line_ends_alone_are_a_difference(first):
    """They change the digest, so the diff must not be empty."""
    other = replace(first, system=first.system.replace("\n", "\r\n"))
    assert other.digest != first.digest
    assert not diff_versions(first, other).empty


def test_added_and_reordered_labels_are_shown(first):
    """Order changes behaviour as well."""
    turned = replace(first, guides=first.guides[::-1])
    assert [change.kind for change in diff_versions(first, turned).settings] == [
        "order",
        "order",
    ]
    fewer = replace(first, guides=first.guides[:1])
    assert diff_versions(fewer, first).guides[0].label == "fracture"


def test_equal_versions_have_an_empty_diff(first):
    """Same digest, no difference; different digest, some difference."""
    diff = diff_versions(first, replace(first, number=4))
    assert diff.empty
    assert diff_data(diff)["same"] is True
    assert format_diff(diff) == ["tiny@v1 and tiny@v4 are the same prompt"]


def test_settings_and_rules_are_shown_with_both_values(first):
    """What reads the answer, what is put in, and each general rule; no moved label."""
    other = replace(first, contract="findings", inputs=("text", "prior"))
    diff = diff_versions(first, other)
    assert [tuple(one) for one in diff.settings] == [
        ("-", "contract", first.contract),
        ("+", "contract", "findings"),
        ("-", "inputs", "text"),
        ("+", "inputs", "text, prior"),
    ]
    assert not diff.empty
    assert diff_versions(first, replace(first, guides=first.guides[:1])).settings == ()
    old, new = (
        replace(first, system=f"Rules of reading:\n- One.\n{more}\nEnd.\n")
        for more in ("", "- Two.\n")
    )
    diff = diff_versions(old, new)
    assert "+ general rule: Two." in format_diff(diff)
    assert diff.counts() == {"+general rule": 1, "+instruction line": 1}


def test_line_ends_are_said_to_differ(first):
    """A template without a changed line still says why it is listed."""
    other = replace(first, system=first.system.replace("\n", "\r\n"))
    assert diff_versions(first, other).templates[0].lines == ("line ends differ",)


def test_every_list_of_a_guide_is_compared(first):
    """Each under its own name."""
    for kind in ("counts", "does not count", "uncertain when", "implies"):
        guide = replace(first.guides[0], **{kind.replace(" ", "_"): ("fracture",)})
        other = replace(first, guides=(guide, *first.guides[1:]))
        (found,) = diff_versions(first, other).guides
        assert ("+", kind, "fracture") in found.changes


def test_a_difference_is_told_whole(first, second):
    """As lines for a terminal and as data, every part in its place."""
    other = replace(
        second,
        plan=CallPlan.PER_LABEL,
        reads=(NamedVersion("finder@v1", "d" * 64),),
        system="Read well.\n",
        guides=second.guides[:1],
    )
    diff = diff_versions(first, other)
    assert format_diff(diff) == [
        "tiny@v1 -> tiny@v2",
        "- plan: joint",
        "+ plan: per_label",
        "- reads: ",
        "+ reads: finder@v1 (dddddddddddd)",
        "",
        "edema",
        "  + term: wet lungs",
        "  + term: fluid ... lung",
        "  + exclusion: soft tissue edema",
        "  + clarification: hazy -> uncertain (Not enough.)",
        '  + exemplar: "The lungs are wet." -> present by "wet"; Said outright.',
        "  + implies: fracture",
        "",
        "fracture",
        "  - name: Fracture",
        "  - definition: A broken bone.",
        "",
        "system.jinja",
        "  @@ -1 +1 @@",
        "  -Read.",
        "  +Read well.",
    ]
    assert diff.counts() == {
        "+term": 2,
        "+exclusion": 1,
        "+clarification": 1,
        "+exemplar": 1,
        "+implies": 1,
        "-name": 1,
        "-definition": 1,
        "-instruction line": 1,
        "+instruction line": 1,
    }
    short = diff_versions(first, replace(first, number=2, contract="findings"))
    assert diff_data(short) == {
        "before": "tiny@v1",
        "after": "tiny@v2",
        "same": False,
        "settings": [
            {"sign": "-", "kind": "contract", "text": "label_values"},
            {"sign": "+", "kind": "contract", "text": "findings"},
        ],
        "rules": [],
        "guides": {},
        "templates": {},
    }
    data = diff_data(diff)
    assert list(data["guides"]) == ["edema", "fracture"]
    assert data["guides"]["fracture"] == [
        {"sign": "-", "kind": "name", "text": "Fracture"},
        {"sign": "-", "kind": "definition", "text": "A broken bone."},
    ]
    assert data["templates"] == {
        "system.jinja": ["@@ -1 +1 @@", "-Read.", "+Read well."]
    }


def test_the_same_content_in_another_order_is_a_difference(first, second):
    """A model reads it in that order; within one guide it is said once."""
    terms = second.guides[0].terms[::-1]
    turned = replace(
        second, guides=(replace(second.guides[0], terms=terms), second.guides[1])
    )
    (found,) = diff_versions(second, turned).guides
    assert found.changes == (("+", "order", "same content in another order"),)


def test_a_rule_and_an_example_without_a_reason_are_one_line_too(second):
    """Nothing stands where nothing is said."""
    guide = second.guides[0]
    assert show_clarification(replace(guide.clarifications[0], note="")) == (
        "hazy -> uncertain"
    )
    assert show_exemplar(replace(guide.exemplars[0], why="")) == (
        '"The lungs are wet." -> present by "wet"'
    )


def test_a_lexicon_is_compared_by_its_language(first):
    """Every kind of wording of it."""
    rule = Clarification(phrase="hazy", value=Value.ABSENT)
    lexicon = Lexicon(
        language="zh", terms=("a",), exclusions=("b",), clarifications=(rule,)
    )
    guide = replace(first.guides[0], lexicon=(lexicon,))
    (found,) = diff_versions(first, replace(first, guides=(guide,))).guides[:1]
    assert found.changes == (
        ("+", "lexicon zh term", "a"),
        ("+", "lexicon zh exclusion", "b"),
        ("+", "lexicon zh clarification", "hazy -> absent"),
    )


def test_general_rules_that_went_and_came_are_told_in_that_order(first):
    """Those in both versions are not."""
    old, new = (
        replace(first, system=f"Rules of reading:\n{rules}\nEnd.\n")
        for rules in ("- One.\n- Two.\n- Three.", "- Two.\n- Four.")
    )
    assert diff_versions(old, new).rules == (
        ("-", "general rule", "One."),
        ("-", "general rule", "Three."),
        ("+", "general rule", "Four."),
    )
