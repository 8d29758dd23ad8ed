"""The general instructions: edited as one text, frozen blocks and rules of reading."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Guide
from loop.prompts.catalog import read_version
from loop.prompts.diff import diff_versions, format_diff
from loop.prompts.instructions import (
    LONGEST,
    add_rules,
    edit_instructions,
    instructions_text,
    list_frozen,
    list_lines,
    parse_instructions,
    read_rules,
    rule_verdicts,
    version_facts,
    version_text,
    without_rules,
)
from loop.prompts.render import plan_prompts
from loop.prompts.version import NamedVersion, PromptVersion

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Co"]),
    min_size=1,
    max_size=30,
).map(str.strip).filter(bool)  # fmt: skip
USER = """Read the report.

Rules of reading:
- "No" reaches every finding
  of its list.
- "Resolved": absent.
What is uncertain is absent.
{% for guide in guides %}
{{ guide.label }}: {{ guide.definition }}
{% endfor %}
{# frozen: answer #}
Answer in JSON.
{# end frozen #}
Thank you.
{# frozen: case #}
{{ text }}
{# end frozen #}
"""
VERSION = PromptVersion(
    name="tiny",
    number=1,
    system="Be exact.\n",
    user=USER,
    guides=(
        Guide(label="edema", name="Edema", definition="Fluid."),
        Guide(label="fracture", name="Fracture", definition="A break."),
    ),
)


def rendered(version):
    """Return what a model is told before the case, with spaces as they are."""
    frame = plan_prompts(version, lambda fields: {}).calls[0].frame
    return "".join(message.content for message in frame.messages)


@given(WORDS, WORDS)
def test_instructions_read_back_as_they_were_written(system, user):
    """What an editor sees is all there is; line ends of another system do no harm."""
    version = replace(VERSION, system=system + "\n", user=user + "\n")
    text = instructions_text(version)
    assert parse_instructions(text) == (version.system, version.user)
    windows = text.replace("\n", "\r\n")
    assert parse_instructions(windows) == (version.system, version.user)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Read.\n",
        "[system.jinja]\nRead.\n",
        "[user.jinja]\na\n[system.jinja]\nb\n",
        "before\n[system.jinja]\na\n[user.jinja]\nb\n",
        "[system.jinja]\na\n[user.jinja]\nb\n[user.jinja]\nc\n",
    ],
)
def test_instructions_without_both_parts_are_refused(text):
    """The message says where to begin."""
    with pytest.raises(DataError, match="draft show DRAFT --instructions"):
        parse_instructions(text)


def test_a_frozen_block_may_stay_empty_in_an_edited_text():
    """What nobody may edit need not be in the box, and comes back as it was."""
    text = instructions_text(VERSION, folded=True)
    assert "Answer in JSON." not in text
    assert "{# frozen: answer #}\n{# end frozen #}\n" in text
    edited = edit_instructions(VERSION, text.replace("Thank you.", "Be brief."))
    assert edited.user == USER.replace("Thank you.", "Be brief.")
    assert [one[1:] for one in list_frozen(VERSION)] == [
        ("answer", "Answer in JSON."),
        ("case", "{{ text }}"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{% endfor %}", "{% endfr %}", r"the instructions, line 13: .*endfr"),
        ("{{ guide.label }}", "{{ guide.label }", r"the instructions, line 12: "),
        ("Be exact.", "{% if %}", r"the instructions, line 2: "),
        ("{# frozen: case #}\n", "", r"the instructions, line 17: frozen blocks must"),
        ("Thank", "{# frozen: answer #}\n{# end frozen #}\n", r"line 16: .* own name"),
    ],
)
def test_what_is_no_template_is_refused_with_its_line(old, new, said):
    """The line of the text that was edited, not of a file that nobody sees."""
    text = instructions_text(VERSION, folded=True)
    assert old in text
    with pytest.raises(DataError, match=said):
        edit_instructions(VERSION, text.replace(old, new))


def test_a_mark_that_is_broken_can_be_put_back():
    """Also in a draft that was edited as a file, where no block can be read."""
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    whole = instructions_text(version)
    broken = replace(version, user=version.user.replace("{# end frozen #}", "", 1))
    assert broken.user != version.user
    repaired = edit_instructions(broken, whole)
    assert (repaired.system, repaired.user) == (version.system, version.user)


def test_instructions_without_end_are_refused():
    """Every case would be asked with all of them."""
    text = instructions_text(VERSION) + "a\n" * LONGEST
    with pytest.raises(DataError, match=r"100,\d+ characters, at most 50,000"):
        edit_instructions(VERSION, text)


def test_the_rules_of_reading_are_found_in_the_instructions():
    """Each as one line, however it is wrapped."""
    assert read_rules(VERSION) == (
        '"No" reaches every finding of its list.',
        '"Resolved": absent.',
    )
    shipped = read_version(WorkspacePaths(bundled()), "extractor@v9")
    assert len(read_rules(shipped)) == 8
    # Also where the frozen blocks of the other template are malformed.
    torn = replace(VERSION, system="{# frozen: answer #}\nAnswer.")
    assert read_rules(torn) == read_rules(VERSION)


def test_a_general_rule_joins_the_rules_of_reading_under_its_verdict():
    """At the end of the list; its verdict stands above it, and no model is shown it."""
    rule = "What a drain has emptied is absent,\n even if an earlier report states it."
    made, known = add_rules(VERSION, {rule: "0123456789ab"})
    assert known == ()
    assert made.user == USER.replace(
        "What is uncertain is",
        "{# verdict 0123456789ab #}\n"
        "- What a drain has emptied is absent, even if an earlier report states it.\n"
        "What is uncertain is",
    )
    assert (
        '- "Resolved": absent.\n- What a drain has emptied is absent, even if an '
        "earlier report states it.\nWhat is uncertain"
    ) in rendered(made)
    assert "0123456789ab" not in rendered(made)
    assert made.system == VERSION.system


@pytest.mark.parametrize(
    "rule",
    [
        "{{ 7*7 }} {% for x in guides %}",
        "{{{{ {%- raw -%} {#- a comment -#} }}",
        "{# frozen: answer #} {# end frozen #}",
        "{{'{'}}{ text }} and <b>{{ text }}</b>",
        "{% endfor %}{{ ''.__class__.__mro__ }}",
        "ends with {",
        "- begins as a list",
        "一侧胸腔积液 " * 20,
    ],
)
def test_a_rule_is_text_and_never_template_code(rule):
    """A clinician writes a sentence; a model is shown it letter by letter."""
    made, _ = add_rules(VERSION, {rule: "0123456789ab", "A second one.": "b"})
    said = " ".join(rendered(made).split())
    assert f"- {' '.join(rule.split())} - A second one. What is uncertain" in said
    assert read_rules(made)[2:] == (" ".join(rule.split()), "A second one.")
    assert list_frozen(made) == list_frozen(VERSION)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Co"])))
def test_any_rule_reads_back(text):
    """Whatever a clinician typed."""
    rule = " ".join(text.split())
    if not rule or rule in {"-", "*"}:
        return
    made, known = add_rules(VERSION, {text: "0123456789ab"})
    assert known or read_rules(made)[-1] == rule


def test_a_rule_that_is_there_is_not_added_again():
    """Two clinicians may ask for the same."""
    made, known = add_rules(VERSION, {'"resolved":  absent.': "a"})
    assert (made, known) == (VERSION, ('"resolved": absent.',))


@pytest.mark.parametrize(
    "user",
    [
        USER.replace("Rules of reading", "Advice"),
        USER.replace("Answer in JSON.", "Rules of reading:\n- a").replace(
            "Rules of reading:\n- \"No", "- \"No"
        ),
    ],
)  # fmt: skip
def test_instructions_without_rules_get_a_list_in_the_system_message(user):
    """No wish of a clinician is lost on a prompt that began without general rules."""
    version = replace(VERSION, user=user)
    assert read_rules(version) == ()
    made, _ = add_rules(version, {"A rule.": "a", "Another.": "b"})
    assert made.system == (
        "Be exact.\n\nRules of reading:\n{# verdict a #}\n- A rule.\n"
        "{# verdict b #}\n- Another.\n"
    )
    assert made.user == user and read_rules(made) == ("A rule.", "Another.")
    assert "Be exact.\n\nRules of reading:\n- A rule.\n- Another." in rendered(made)
    bare, _ = add_rules(replace(version, system=""), {"A rule.": "a"})
    assert bare.system.startswith("Rules of reading:\n")


def test_a_version_with_malformed_frozen_blocks_has_no_place_for_a_rule():
    """Where nothing can be told apart, nothing is written."""
    broken = "{# frozen: a #}\nno end\n"
    with pytest.raises(DataError, match="frozen blocks are malformed"):
        add_rules(replace(VERSION, system=broken, user=broken), {"A rule.": "a"})


def test_a_list_may_be_empty_and_stand_in_the_system_message():
    """A heading is a place."""
    version = replace(VERSION, system="Be exact.\n## Rules of reading\n", user="-")
    version = replace(version, user=USER.partition("Rules of")[0] + USER[-150:])
    made, _ = add_rules(version, {"A rule.": "a"})
    assert made.system.endswith("reading\n{# verdict a #}\n- A rule.\n")
    assert read_rules(made) == ("A rule.",)


@pytest.mark.parametrize(
    "around", [("{#", "#}"), ("{% for g in guides %}", "{% endfor %}")]
)
def test_a_rule_that_would_not_be_read_once_is_refused(around):
    """In a comment it would be lost without a word, in a loop it would be repeated."""
    before, after = around
    user = USER.replace("Rules of", f"{before}\nRules of").replace(
        "What is unc", f"{after}\nWhat is unc"
    )
    with pytest.raises(DataError, match="does not reach a model exactly once"):
        add_rules(replace(VERSION, user=user), {"A rule.": "a"})


def test_a_difference_names_general_rules():
    """History and audit count them, and the lines that say them."""
    made, _ = add_rules(VERSION, {"A rule.": "a"})
    diff = diff_versions(VERSION, made)
    assert diff.counts() == {"+general rule": 1, "+instruction line": 2}
    assert "+ general rule: A rule." in format_diff(diff)
    assert diff_versions(made, VERSION).counts()["-general rule"] == 1


@pytest.mark.parametrize(
    ("listed", "rules"),
    [
        ("- a\n- b\nEnd.", ("a", "b")),
        ("\n\n- a\n* b\nEnd.", ("a", "b")),
        ("- a\n\n- b", ("a",)),
        ("  more\n- a", ()),
        ("- a\n  more\n   and more\n- b", ("a more and more", "b")),
        ("- a\n more", ("a",)),
        ("-a\n- b", ()),
        ("- \n- b", ()),
        ("-  - a", ("- a",)),
        ("{# verdict x #}\n- a\n{# verdict y #}\n- b", ("a", "b")),
        ("{# a remark #}\n- a", ()),
        ("- a\nEnd.\nRules of reading:\n- b", ("a",)),
    ],
)
def test_where_a_list_of_rules_begins_and_ends(listed, rules):
    """A list goes on over lines that are set in, and ends at an empty one."""
    version = replace(VERSION, system=f"**Rules of reading:**\n{listed}\n", user="-")
    assert read_rules(version) == rules


def test_the_verdict_above_a_rule_is_the_one_that_asked_for_it():
    """It is nobody else's: a rule below another has none, nor has a comment no rule."""
    listed = (
        "Rules of reading:\n- First.\n{# verdict aa #}\n- Wrapped\n  here.\n"
        "- Third.\n{# verdict bb #}\n- Use {{'{'}}{ x }}.\n{# verdict cc #}\nEnd.\n"
    )
    version = replace(VERSION, system=listed)
    assert rule_verdicts(version) == {"Wrapped here.": "aa", "Use {{ x }}.": "bb"}
    assert rule_verdicts(VERSION) == {}
    assert rule_verdicts(replace(VERSION, user="-")) == {}


def test_the_lines_of_instructions_have_their_rules_in_their_place():
    """Each rule once, as one line; a line of a template by the name of its file."""
    lines = list(list_lines(VERSION))
    assert lines[:6] == [
        ("system.jinja", "Be exact."),
        ("user.jinja", "Read the report."),
        ("user.jinja", "Rules of reading:"),
        ("general rule", '"No" reaches every finding of its list.'),
        ("general rule", '"Resolved": absent.'),
        ("user.jinja", "What is uncertain is absent."),
    ]
    rest = [line for line in USER.partition("is absent.\n")[2].split("\n") if line]
    assert lines[6:] == [("user.jinja", line) for line in rest]
    plain = replace(VERSION, user="a  \n \n- b")
    assert list(list_lines(plain)) == [
        ("system.jinja", "Be exact."),
        ("user.jinja", "a"),
        ("user.jinja", "- b"),
    ]
    named, _ = add_rules(VERSION, {"A rule.": "aa"})
    assert [one for one in list_lines(named) if one not in lines] == [
        ("general rule", "A rule.")
    ]


def test_without_its_rules_a_version_says_all_else():
    """Their heading stays, and so does every other line."""
    bare = without_rules(VERSION)
    start, end = USER.index('- "No"'), USER.index("What is unc")
    assert bare == replace(VERSION, user=USER[:start] + USER[end:])
    assert without_rules(replace(VERSION, user="a\n- b")).user == "a\n- b"
    one, two = (add_rules(VERSION, {"A.": name})[0] for name in ("aa", "bb"))
    assert without_rules(one) == without_rules(two) == bare


def test_instructions_may_be_as_long_as_the_limit():
    """One character more may not be edited."""
    left = LONGEST - len(instructions_text(VERSION))
    for more, longer in ((left, False), (left + 1, True)):
        text = instructions_text(VERSION).replace("Be exact.", "Be exact." + "a" * more)
        if longer:
            with pytest.raises(DataError, match="50,001 characters"):
                edit_instructions(VERSION, text)
        else:
            assert len(edit_instructions(VERSION, text).system) == 10 + more


def test_what_was_not_edited_is_the_same_prompt():
    """Also a system message whose last line has no end, or a block that is written."""
    bare = replace(VERSION, system="Be exact.")
    assert edit_instructions(bare, instructions_text(bare)) == bare
    longer = edit_instructions(
        bare, instructions_text(bare).replace("exact.", "clear.")
    )
    assert longer.system == "Be clear.\n"
    text = instructions_text(VERSION, folded=True).replace(
        "{# frozen: answer #}\n", "{# frozen: answer #}\nSay yes.\n"
    )
    text += "{# frozen: new #}\n{# end frozen #}\n"
    assert [one[1:] for one in list_frozen(edit_instructions(VERSION, text))] == [
        ("answer", "Say yes."),
        ("case", "{{ text }}"),
        ("new", ""),
    ]


def test_a_version_as_text_has_its_facts_its_words_and_its_guides():
    """In that order, with an empty line between; what is not recorded is not named."""
    text = version_text(replace(VERSION, author="Dr A", why="a start"))
    facts, rest = text.split("\n\n", 1)
    assert facts.split("\n") == [
        "prompt    tiny@v1",
        f"digest    {VERSION.digest}",
        "parent    none",
        "author    Dr A",
        "time      ",
        "why       a start",
        "plan      joint",
        "contract  label_values",
    ]
    assert rest == (
        f"[system.jinja]\nBe exact.\n[user.jinja]\n{USER}\n[guides.yaml]\n"
        "edema:\n  name: Edema\n  definition: Fluid.\n"
        "fracture:\n  name: Fracture\n  definition: A break."
    )


def test_what_is_recorded_of_a_version_is_told_whole():
    """In this order; what it does not have is left out, or said to be none."""
    version = replace(
        VERSION, author="Dr A", time="2026-01-05T09:00:00Z", why="a start"
    )
    facts = {
        "prompt": "tiny@v1",
        "digest": version.digest,
        "parent": "none",
        "author": "Dr A",
        "time": "2026-01-05T09:00:00Z",
        "why": "a start",
        "plan": "joint",
        "contract": "label_values",
    }
    assert version_facts(version) == facts
    assert [*version_facts(version)] == [*facts]
    reading = replace(version, parent="f" * 64, reads=(NamedVersion("a@v1", "d" * 64),))
    assert version_facts(reading) == {
        **facts,
        "digest": reading.digest,
        "parent": "f" * 64,
        "reads": f"a@v1 ({'d' * 12})",
    }


def test_frozen_blocks_are_listed_with_their_file():
    """Those of the system message first, in their order."""
    version = replace(
        VERSION, system="{# frozen: role #}\n\nBe exact.\n{# end frozen #}\n"
    )
    assert list_frozen(version) == (
        ("system.jinja", "role", "Be exact."),
        ("user.jinja", "answer", "Answer in JSON."),
        ("user.jinja", "case", "{{ text }}"),
    )


def test_an_edit_changes_the_templates_and_nothing_else():
    """Each its own, and every frozen block that is left empty keeps its words."""
    shown = instructions_text(VERSION, folded=True)
    assert "Answer in JSON." not in shown and "{{ text }}" not in shown
    edited = shown.replace("Be exact.", "Be brief.").replace("Thank you.", "Thanks.")
    assert edit_instructions(VERSION, edited) == replace(
        VERSION,
        system="Be brief.\n",
        user=VERSION.user.replace("Thank you.", "Thanks."),
    )
    spoken = shown.replace("{# frozen: answer #}\n", "{# frozen: answer #}\nSay.\n")
    assert "Say.\n" in edit_instructions(VERSION, spoken).user


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[system.jinja]\na\n{% if %}\n[user.jinja]\nb\n", "line 3: "),
        ("[system.jinja]\na\n[user.jinja]\nb\n{% if %}\n", "line 5: "),
        ("[system.jinja]\n[user.jinja]\n{# end frozen #}\n", "line 3: frozen blocks"),
        (
            "[system.jinja]\na\n{# frozen: x #}\n[user.jinja]\nb\n",
            "frozen block 'x' has no",
        ),
    ],
)
def test_a_line_of_the_instructions_is_counted_from_their_first(text, said):
    """Over both templates, so that an editor finds it."""
    with pytest.raises(DataError, match=f"^the instructions, {said}"):
        edit_instructions(VERSION, text)


def test_a_rule_is_added_at_the_end_of_the_list_and_wrapped():
    """Under its verdict, at 88 characters, words whole; two of them in their order."""
    long = " ".join(["word"] * 18)
    added = add_rules(VERSION, {f"{long}\n end.": "a1", "{% x %}  y": "b-2"})
    assert added.known == ()
    wrapped = " ".join(["word"] * 17)
    assert added.version == replace(
        VERSION,
        user=VERSION.user.replace(
            '- "Resolved": absent.\n',
            '- "Resolved": absent.\n'
            f"{{# verdict a1 #}}\n- {wrapped}\n  word end.\n"
            "{# verdict b-2 #}\n- {{'{'}}% x %} y\n",
        ),
    )
    assert read_rules(added.version)[-2:] == (f"{long} end.", "{% x %} y")
    assert rule_verdicts(added.version) == {
        f"{long} end.": "a1",
        "{% x %} y": "b-2",
    }
