"""A version as a model reads it: what changed, and what its tokens go to."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Exemplar, Guide, Value
from loop.prompts.catalog import read_version, version_folder
from loop.prompts.version import CallPlan
from loop.review.prompt_page import (
    REST,
    compare_lines,
    count_parts,
    mark_changes,
    open_prompt_page,
    read_prompt_page,
)
from loop.review.revise.draft import render_shown
from loop.run.tokens import TokenCounter, find_counter
from tests.review.revise.conftest import TINY
from tests.review.revise.conftest import setting as setting
from tests.review.revise.conftest import store as store
from tests.review.revise.stepping import overtake

TEXTS = st.text("ab \n,", max_size=40)
LETTERS = TokenCounter(count=len, exact=True, remark="letters")


@given(before=TEXTS, after=TEXTS)
def test_both_texts_can_be_read_from_what_is_marked(before, after):
    """No letter is lost, none invented, and what stands in both is not marked."""
    lines = list(compare_lines(before, after))
    for sign, text in (("+", after), ("-", before)):
        kept = [line.text for line in lines if line.sign in ("", sign)]
        assert "\n".join(kept) == text
    assert before != after or not any(line.sign for line in lines)


def test_of_a_line_that_got_longer_only_the_new_words_are_marked():
    """A list of terms on one line is most of many prompts."""
    old, new = compare_lines(
        "Also: fluid, effusion.", "Also: fluid, ascites, effusion."
    )
    assert (old.sign, [one.text for one in old.pieces if one.changed]) == ("-", [])
    assert "".join(one.text for one in new.pieces if one.changed).strip() in (
        "ascites,",
        ", ascites",
    )


def test_a_line_that_became_quite_another_is_marked_whole():
    """Shared commas are no likeness."""
    lines = list(compare_lines("never mind", "Answer in JSON"))
    assert [(one.sign, len(one.pieces)) for one in lines] == [("-", 1), ("+", 1)]


def test_lines_without_end_are_compared_at_their_ends_only(monkeypatch):
    """Comparing word by word would take minutes: the middle is another as a whole."""
    monkeypatch.setattr("loop.review.prompt_page._MOST_PAIRS", 4)
    old, new = compare_lines("begin b c d end", "begin x y z end")
    assert [one.text for one in new.pieces if one.changed] == ["x y z"]
    assert [one.text for one in old.pieces if one.changed] == ["b c d"]


def test_a_call_that_the_parent_does_not_make_is_new_throughout():
    """And one that only the parent makes is named."""
    split = replace(TINY, plan=CallPlan.PER_LABEL)
    calls = mark_changes(render_shown(TINY), render_shown(split))
    assert [call.name for call in calls] == list(TINY.labels)
    signs = {line.sign for call in calls for one in call.messages for line in one.lines}
    assert signs == {"+"}
    first = mark_changes(None, render_shown(split))
    assert sum(call.changes for call in first) == 0


GUIDES = (
    replace(
        TINY.guides[0],
        exemplars=(
            Exemplar(text="Small effusion.", value=Value.PRESENT, evidence="effusion"),
        ),
    ),
    TINY.guides[1],
)
TEMPLATE = """{% for guide in guides %}
{{ guide.label }}: {{ guide.definition }} {{ guide.terms | join(", ") }}
{% for one in guide.exemplars %}{{ one.text }}{% endfor %}
{% endfor %}
Rules of reading:
- Count what is stated.
{# frozen: answer #}
Answer in JSON.
{# end frozen #}
{# frozen: case #}
{{ text }}
{# end frozen #}
"""
FULL = replace(TINY, guides=GUIDES, user=TEMPLATE)


def test_sections_make_up_the_whole_and_each_is_what_it_says():
    """Counted in letters, so that nothing is rounded."""
    counted = count_parts(FULL, None, LETTERS)
    sections = {one.part: one.tokens for one in counted.sections}
    assert sections.pop("frozen block case") is None
    assert sum(sections.values()) == counted.total.tokens
    assert sections["terms"] == len("pleural effusion" + "cardiomegaly")
    assert sections["exemplars"] == len("Small effusion.")
    assert sections["frozen block answer"] == len("Answer in JSON.\n")
    assert sections["rules of reading"] == len("- Count what is stated.\n")
    assert counted.total.tokens == render_shown(FULL, LETTERS).tokens
    assert counted.total.before is None


@pytest.mark.parametrize("plan", list(CallPlan))
def test_a_label_takes_what_the_prompt_is_shorter_by_without_it(plan):
    """With a call for each label, that is its whole call."""
    version = replace(FULL, plan=plan)
    less = replace(version, guides=version.guides[1:])
    shares = count_parts(version, None, LETTERS).labels
    whole, left = (render_shown(one, LETTERS).tokens for one in (version, less))
    assert (shares[0].part, shares[0].tokens) == ("pleural_effusion", whole - left)


def test_tokens_stand_beside_those_of_the_parent():
    """A label that is new had none."""
    parent = replace(FULL, guides=GUIDES[1:])
    counted = count_parts(FULL, parent, find_counter(None))
    before = {one.part: one.before for one in counted.labels}
    assert before["pleural_effusion"] == 0 and before["cardiomegaly"] > 0


def test_a_template_that_cannot_do_without_a_part_is_counted_with_the_rest():
    """The first term of an empty list is an error: terms have no number of theirs."""
    picky = replace(FULL, user="{{ guides[0].terms[0] }} {{ text }}\n")
    counted = count_parts(picky, FULL, LETTERS)
    sections = {one.part: one.tokens for one in counted.sections if one.tokens != 0}
    assert sections == {"terms": None, REST: counted.total.tokens}
    assert {one.part: one.before for one in counted.sections}["terms"] > 0


def test_what_a_version_removed_is_there_with_what_it_took():
    """Else the parts would not add up to what the prompt became shorter by."""
    user = TEMPLATE.replace("Rules of reading:\n- Count what is stated.\n", "")
    less = replace(FULL, guides=GUIDES[1:], user=user)
    counted = count_parts(less, FULL, LETTERS)
    labels = {one.part: (one.tokens, one.before) for one in counted.labels}
    assert labels["pleural_effusion"][0] == 0 < labels["pleural_effusion"][1]
    sections = {one.part: (one.tokens, one.before) for one in counted.sections}
    assert sections["exemplars"] == (0, len("Small effusion."))
    assert sections["rules of reading"] == (0, len("- Count what is stated.\n"))
    assert counted.sections[-1].part == REST
    for number, total in enumerate((counted.total.tokens, counted.total.before)):
        assert sum(one[number] or 0 for one in sections.values()) == total


def test_a_block_that_is_never_closed_hides_no_other():
    """What is frozen in the other template is counted all the same."""
    odd = replace(FULL, system="{# frozen: open #}\nRead.\n")
    sections = {
        one.part: one.tokens for one in count_parts(odd, None, LETTERS).sections
    }
    assert sections["frozen block answer"] == len("Answer in JSON.\n")
    assert "frozen block open" not in sections


def test_a_label_that_the_template_needs_has_no_number():
    """That the rest cannot be rendered alone does not make it free."""
    needy = replace(FULL, user="{{ guides[1].name }} {{ text }}\n")
    shares = count_parts(needy, FULL, LETTERS).labels
    assert [one.tokens for one in shares] == [None, None]
    assert all(one.before for one in shares)


def test_the_page_of_a_version_holds_all_its_parts(setting, store):
    """Parent, marked messages, tokens and lines."""
    overtake(setting)
    page = read_prompt_page(setting.workspace, "tiny@latest", store)
    assert (page.version.ref, page.parent.ref) == ("tiny@v2", "tiny@v1")
    assert [call.changes for call in page.calls] == [2]
    assert page.tokens.total.before > 0 and page.problems == ()
    assert "estimated" in page.tokens.remark
    assert {one.version.ref for one in page.lines} == {"tiny@v1", "tiny@v2"}
    old, new, _ = page.calls[0].messages[0].lines
    assert (old.sign, old.sources) == ("-", ())
    assert [one.text for one in new.sources] == ["Read quickly."]


def test_what_cannot_be_told_hides_nothing_else(setting, store):
    """A parent that is gone: the prompt is shown, with nothing marked."""
    overtake(setting)
    folder = version_folder(setting.workspace, TINY)
    folder.rename(folder.parent / "gone")
    page = read_prompt_page(setting.workspace, "tiny@v2", store)
    assert page.parent is None and page.lines == ()
    assert page.tokens.total.tokens and page.calls[0].changes == 0
    assert "Restore the missing folder" in page.problems[0]


def test_of_an_edited_ancestor_no_line_is_from_anybody(setting, store):
    """Its digest says that these are not its words."""
    overtake(setting)
    place = version_folder(setting.workspace, TINY) / "system.jinja"
    place.write_text("Read it otherwise.\n")
    page = read_prompt_page(setting.workspace, "tiny@v2", store)
    assert page.lines == () and page.calls
    assert "edited after it was committed" in page.problems[0]


def test_a_template_that_cannot_be_rendered_still_has_its_lines(setting, store):
    """Whose line broke it is what one wants to know."""
    overtake(setting, system="{{ nothing }}\n")
    page = read_prompt_page(setting.workspace, "tiny@v2", store)
    assert page.calls == () and page.tokens is None
    assert "nothing" in page.problems[0]
    assert page.lines[3].line.text == "{{ nothing }}"


def test_a_shipped_version_has_its_page_in_a_workspace_of_ones_own(setting):
    """As `prompt show` shows it; its ancestors ship as well."""
    page = open_prompt_page(setting.workspace, "extractor@v10")
    shipped = read_version(WorkspacePaths(bundled()), "extractor@v10")
    assert page.version == shipped and page.parent.ref == "extractor@v9"
    assert page.tokens.total.tokens == render_shown(shipped).tokens


def test_a_prompt_that_is_not_there_is_refused(setting):
    """With what there is."""
    with pytest.raises(DataError, match="known: extractor, tiny"):
        open_prompt_page(setting.workspace, "timy")


def test_a_guide_whose_words_are_template_code_is_text():
    """What a clinician types is no template, here as everywhere."""
    guide = Guide(label="edema", name="{{ 7 * 7 }}", definition="{% for %}")
    version = replace(TINY, guides=(guide,), user="{{ guides[0].name }} {{ text }}\n")
    lines = mark_changes(None, render_shown(version))[0].messages[1].lines
    assert lines[0].text == "{{ 7 * 7 }} [text of the case]"


def marked(before, after):
    """Return lines as (sign, pieces), what is changed in brackets."""
    return [
        (sign, "|".join(f"[{text}]" if changed else text for text, changed in pieces))
        for sign, pieces, _ in compare_lines(before, after)
    ]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb", "a\nb", [("", "a"), ("", "b")]),
        ("a\nc", "a\nb\nc", [("", "a"), ("+", "[b]"), ("", "c")]),
        ("a\nb\nc", "a\nc", [("", "a"), ("-", "[b]"), ("", "c")]),
        (None, "a\n", [("+", "[a]"), ("+", "")]),
        # Three of six letters are shared, then three of seven.
        ("ab cdx", "ab yzw", [("-", "ab |[cdx]"), ("+", "ab |[yzw]")]),
        ("ab cdxy", "ab yzwq", [("-", "[ab cdxy]"), ("+", "[ab yzwq]")]),
        # Of the shorter line all is in the other.
        ("ab", "ab cdef ghi", [("-", "ab"), ("+", "ab|[ cdef ghi]")]),
        (
            "x\none two\nqq\ny",
            "x\none 2\ny",
            [
                ("", "x"),
                ("-", "one |[two]"),
                ("+", "one |[2]"),
                ("-", "[qq]"),
                ("", "y"),
            ],
        ),
        (
            "one two",
            "one 2\nnew",
            [("-", "one |[two]"), ("+", "one |[2]"), ("+", "[new]")],
        ),
    ],
)
def test_lines_are_marked_where_they_differ(before, after, lines):
    """Line for line, then word for word where half of the shorter one is shared."""
    assert marked(before, after) == lines


def test_a_call_that_only_the_parent_makes_is_named(setting, store):
    """And the page is told in one line."""
    overtake(setting, plan=CallPlan.PER_LABEL)
    page = read_prompt_page(setting.workspace, "tiny@v2", store)
    assert page.gone == ("joint",)
    assert [call.name for call in page.calls] == list(TINY.labels)
    lines = sum(len(one.lines) for call in page.calls for one in call.messages)
    assert sum(call.changes for call in page.calls) == lines
    tokens = page.tokens.total.tokens
    assert (
        repr(page) == f"<page of tiny@v2: {tokens:,} tokens, {len(page.lines)} lines>"
    )
    first = read_prompt_page(setting.workspace, "tiny@v1", store)
    assert (first.parent, first.gone, first.problems) == (None, (), ())
    bare = replace(page, tokens=None, lines=page.lines * 400)
    said = f"<page of tiny@v2: no tokens, {400 * len(page.lines):,} lines>"
    assert repr(bare) == said


def test_each_line_of_a_version_shows_what_it_is_made_of(setting, store):
    """One that only the parent has shows nothing, and shifts no other."""
    effusion, heart = TINY.guides
    changed = replace(effusion, definition="Any fluid.")
    overtake(setting, guides=(changed, heart))
    page = read_prompt_page(setting.workspace, "tiny@v2", store)
    user = page.calls[0].messages[1].lines
    shown = [(one.sign, [each.text for each in one.sources]) for one in user]
    assert ("-", []) in shown
    assert ("+", ["Any fluid."]) in shown
    assert ("", ["The heart is enlarged."]) in shown
    assert shown.index(("-", [])) < shown.index(("+", ["Any fluid."]))


def test_tokens_are_told_whole_beside_those_of_the_parent():
    """By label and by section, the rest last; counted as the counter counts."""
    parent = replace(FULL, guides=(replace(GUIDES[0], exemplars=()), GUIDES[1]))
    found = count_parts(FULL, parent, LETTERS)
    whole, before = (render_shown(one, LETTERS).tokens for one in (FULL, parent))
    assert found.total == ("all", whole, before)
    assert (found.exact, found.remark) == (True, "letters")
    assert [one.part for one in found.labels] == list(FULL.labels)
    less = len("Small effusion.")
    effusion, heart = found.labels
    assert effusion.tokens - effusion.before == whole - before == less
    assert heart.tokens == heart.before
    sections = {one.part: (one.tokens, one.before) for one in found.sections}
    definitions = sum(len(one.definition) for one in GUIDES)
    terms = len("pleural effusion" + "cardiomegaly")
    rules = len("- Count what is stated.\n")
    answer = len("Answer in JSON.\n")
    rest = whole - definitions - terms - less - rules - answer
    assert list(sections.items()) == [
        ("names and definitions", (definitions, definitions)),
        ("terms", (terms, terms)),
        ("exemplars", (less, 0)),
        ("rules of reading", (rules, rules)),
        ("frozen block answer", (answer, answer)),
        ("frozen block case", (None, None)),
        (REST, (rest, rest)),
    ]


def test_of_what_cannot_be_rendered_nothing_is_counted():
    """A version is refused; a parent has no numbers."""
    broken = replace(FULL, user="{{ nothing }} {{ text }}")
    with pytest.raises(DataError, match=r"tiny@v1 cannot be rendered: see"):
        count_parts(broken, FULL, LETTERS)
    found = count_parts(FULL, broken, LETTERS)
    assert found.total.before is None
    assert {one.before for one in (*found.labels, *found.sections)} == {None}


def test_a_workspace_without_a_store_has_its_pages(setting):
    """As a fresh clone has."""
    page = open_prompt_page(setting.workspace, "tiny@v1")
    assert page.version.ref == "tiny@v1"
    setting.workspace.store.unlink(missing_ok=True)
    bare = open_prompt_page(setting.workspace, "tiny@v1")
    assert bare == page
    assert not setting.workspace.store.exists()
