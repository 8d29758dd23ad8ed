"""Rendering: golden text, one sandbox, and case text that is never a template."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from loop.core.errors import DataError
from loop.core.records import Guide, Item, Message, PromptFrame
from loop.prompts.render import Call, _inserts_shots, plan_prompts, space_out
from loop.prompts.version import CallPlan, PromptVersion


def schema(fields):
    """Return a schema that shows which fields it was made for."""
    return {"required": list(fields)}


def item(text):
    """Return a case with this text."""
    return Item(id="c1", variables={"text": text})


def test_a_joint_prompt_renders_exactly_this_text(first):
    """Golden text: a changed byte here is a changed prompt."""
    (prompt,) = plan_prompts(first, schema)(item("Clear."))
    system, user = prompt.messages
    assert (system.role, system.content) == ("system", "Read.\n")
    assert user.content == (
        "edema: Fluid in the lung.\nfracture: A broken bone.\n"
        "Answer edema, fracture.\nClear.\n"
    )
    assert prompt.frame.fields == ("edema", "fracture")
    assert prompt.frame.schema == {"required": ["edema", "fracture"]}
    assert prompt.tail == "Clear.\n"


def test_a_per_label_plan_asks_one_label_a_call(first):
    """Same templates, one guide each, case text last."""
    plan = plan_prompts(replace(first, plan=CallPlan.PER_LABEL), schema)
    prompts = plan(item("Clear."))
    assert [prompt.frame.call for prompt in prompts] == ["edema", "fracture"]
    assert prompts[1].messages[1].content == (
        "fracture: A broken bone.\nAnswer fracture.\nClear.\n"
    )
    assert [frame.fields for frame in plan.frames] == [("edema",), ("fracture",)]


def test_the_frame_is_the_same_object_for_every_case(first):
    """It is hashed and serialised once a run."""
    plan = plan_prompts(first, schema)
    assert plan(item("a"))[0].frame is plan(item("b"))[0].frame


def test_jinja_inside_a_case_is_not_evaluated(first):
    """Case text is data, never template source."""
    (prompt,) = plan_prompts(first, schema)(item("{{ 1/0 }} {% if %}"))
    assert "{{ 1/0 }} {% if %}" in prompt.messages[1].content


@given(text=st.text(max_size=60))
def test_cutting_gives_what_rendering_the_whole_would_give(text):
    """The fast path equals Jinja on the full template, for any case text."""
    version = PromptVersion(
        name="tiny",
        number=1,
        system="",
        user="{% for guide in guides %}\n{{ guide.label }}\n{% endfor %}\n{{ text }}\n",
        guides=(Guide(label="edema", name="Edema", definition="d"),),
    )
    whole = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    expected = whole.from_string(version.user).render(guides=version.guides, text=text)
    (prompt,) = plan_prompts(version, schema)(item(text))
    assert prompt.messages[1].content == expected


def test_several_inputs_are_inserted_in_order(first):
    """A judge's prompt has two texts: the runner does not care."""
    version = replace(
        first,
        user="A: {{ reference }}\nB: {{ candidate }}\nWell?\n",
        inputs=("reference", "candidate"),
    )
    pair = Item(id="p1", variables={"reference": "one", "candidate": "two"})
    (prompt,) = plan_prompts(version, schema)(pair)
    assert prompt.messages[1].content == "A: one\nB: two\nWell?\n"
    assert prompt.frame.messages[1].content == "A: "


def test_a_missing_variable_names_the_case(first):
    """The cohort lacks a column; its text is not shown."""
    with pytest.raises(DataError, match="case c1 has no variable 'text'"):
        plan_prompts(first, schema)(Item(id="c1", variables={}))


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("{{ txet }} {{ text }}", "'txet' is undefined"),
        ("{{ ''.__class__.__mro__ }} {{ text }}", "SecurityError"),
        ("{% do guides.append(1) %} {{ text }}", "tag 'do'"),
        ("{{ guides.append(1) }} {{ text }}", "no attribute 'append'"),
        ("{% include 'x' %} {{ text }}", "no loader"),
        ("{{ range(10 ** 9) }} {{ text }}", "OverflowError"),
        ("{{ 1 / 0 }} {{ text }}", "ZeroDivisionError"),
        ("{% for %} {{ text }}", "user.jinja, line 1"),
        ("no case", "exactly once"),
        ("{{ text }}{{ text }}", "exactly once"),
        ("{% for g in guides %}{{ text }}{% endfor %}", "exactly once"),
        ("{{ text | upper }}", "as it stands"),
        ("{% if 'x' in text %}y{% endif %}{{ text }}", "as it stands"),
        ("{% set t = text %}{{ t }}", "as it stands"),
    ],
)
def test_a_template_that_cannot_be_trusted_is_refused(first, user, message):
    """Strict undefined, immutable sandbox, and a frame that serves every case."""
    with pytest.raises(DataError, match=r"tiny@v1, user\.jinja") as caught:
        plan_prompts(replace(first, user=user), schema)
    assert message in str(caught.value)


def test_what_is_refused_does_not_depend_on_what_was_asked_before(first):
    """Jinja folds constants in the tree in which it looks for variables."""
    hidden = replace(first, user='{{ ("x" if true else text) ~ name }} {{ text }}')
    assert not _inserts_shots(hidden)
    with pytest.raises(DataError, match="may only be inserted as it stands"):
        plan_prompts(hidden, schema)


def test_case_text_in_the_system_message_is_undefined(first):
    """It would break the static prefix."""
    with pytest.raises(DataError, match=r"system\.jinja.*'text' is undefined"):
        plan_prompts(replace(first, system="{{ text }}"), schema)


def test_a_version_without_guides_asks_for_nothing(first):
    """An empty question is an error, not an empty answer."""
    with pytest.raises(DataError, match="has no guides"):
        plan_prompts(replace(first, guides=()), schema)


def test_a_draw_has_more_blank_lines_and_the_same_words(first):
    """Only between paragraphs, and never in the case."""
    user = "One.\n\nTwo {{ fields[0] }}.\n \nThree.\nReport:\n{{ text }}\n"
    plan = plan_prompts(replace(first, user=user), schema)
    (prompt,) = space_out(plan, 2)(item("First.\n\nSecond."))
    assert prompt.messages[0].content == "Read.\n"
    assert prompt.messages[1].content == (
        "One.\n\n\n\nTwo edema.\n \n\n\nThree.\nReport:\nFirst.\n\nSecond.\n"
    )
    assert space_out(plan, 0) == plan
    kept = prompt.frame
    assert (kept.fields, kept.schema) == (plan.frames[0].fields, plan.frames[0].schema)


def test_a_prompt_without_a_paragraph_is_spaced_by_line(first):
    """Another prompt all the same."""
    (prompt,) = space_out(plan_prompts(first, schema), 1)(item("Clear."))
    assert prompt.messages[0].content == "Read.\n\n"
    assert prompt.messages[1].content == (
        "edema: Fluid in the lung.\n\nfracture: A broken bone.\n\n"
        "Answer edema, fracture.\n\nClear.\n"
    )


def test_indented_blocks_leave_nothing_behind(first):
    """A template may be laid out for its readers; its blanks are no words."""
    user = "  {% if guides %}\n  Read.\n  {% endif %}\n{{ text }}\n"
    (prompt,) = plan_prompts(replace(first, user=user), schema)(item("Clear."))
    assert prompt.messages[-1].content == "  Read.\nClear.\n"


def test_the_longest_text_after_the_case_is_the_one_that_counts(first):
    """Of the calls of a version, whichever it is."""
    user = "{{ text }}{% for guide in guides %}{{ guide.definition }}{% endfor %}"
    version = replace(first, user=user, plan=CallPlan.PER_LABEL)
    lengths = [len(guide.definition) for guide in first.guides]
    assert lengths[0] > lengths[1]
    for guides in (version.guides, version.guides[::-1]):
        plan = plan_prompts(replace(version, guides=guides), schema)
        assert plan.suffix_length == lengths[0]


def test_an_input_is_put_in_as_numbered_lines(first):
    """The frame is cut at it as at any other; Jinja in a case stays what it is."""
    version = replace(
        first,
        inputs=("reference", "candidate"),
        user="R: {{ reference }} C:\n{{ candidate | numbered }}\nEnd.",
    )
    plan = plan_prompts(version, schema)
    texts = {"reference": "A. B.", "candidate": "One {{ 1 + 1 }}. Two."}
    (prompt,) = plan(Item(id="a", variables=texts))
    said = prompt.messages[1].content
    assert said == "R: A. B. C:\n[0] One {{ 1 + 1 }}.\n[1] Two.\nEnd."
    assert plan.calls[0].numbered == {"candidate"}


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("{{ text | numbered | upper }}", "may only be inserted as it stands"),
        ("{{ text | numbered(2) }}", "may only be inserted as it stands"),
        ("{{ (text ~ 'x') | numbered }}", "may only be inserted as it stands"),
        (
            "{% if fields %}{{ text }}{% else %}{{ text | numbered }}{% endif %}",
            "numbered in another",
        ),
    ],
)
def test_numbering_is_all_that_is_done_to_an_input(first, user, message):
    """Anything else could steer, or would have to run on the case."""
    with pytest.raises(DataError, match=message):
        plan_prompts(replace(first, user=user), schema)


def test_what_is_not_known_of_a_patient_is_empty(first):
    """Only the input `context` may be missing."""
    version = replace(
        first, inputs=("text", "context"), user="{{ text }} ({{ context }})"
    )
    plan = plan_prompts(version, schema)
    (without,) = plan(item("Clear."))
    assert without.messages[1].content == "Clear. ()"
    known = Item(id="a", variables={"text": "Clear.", "context": "Aged 9."})
    assert plan(known)[0].messages[1].content == "Clear. (Aged 9.)"


def test_a_frame_holds_all_that_is_the_same_for_every_case(first):
    """Whole, of a joint plan and of one call a label."""
    extractor = (Guide(label="x", name="X", definition="d"),)
    version = replace(first, finders=extractor)
    (call,) = plan_prompts(version, schema).calls
    assert call == Call(
        frame=PromptFrame(
            call="joint",
            messages=(
                Message("system", "Read.\n"),
                Message(
                    "user",
                    "edema: Fluid in the lung.\nfracture: A broken bone.\n"
                    "Answer edema, fracture.\n",
                ),
            ),
            fields=("edema", "fracture"),
            schema={"required": ["edema", "fracture"]},
            guides=first.guides,
            reads=extractor,
        ),
        pieces=(("text", "\n"),),
        numbered=frozenset(),
    )
    plan = plan_prompts(replace(version, plan=CallPlan.PER_LABEL), schema)
    assert plan.names == ("edema", "fracture")
    assert [one.guides for one in plan.frames] == [(one,) for one in first.guides]
    assert [one.reads for one in plan.frames] == [extractor] * 2


def test_three_inputs_are_cut_where_they_stand(first):
    """What stands between them, and after the last, is kept."""
    version = replace(
        first,
        user="0 {{ a }} 1 {{ b | numbered }} 2 {{ c }} 3",
        inputs=("a", "b", "c"),
    )
    (call,) = plan_prompts(version, schema).calls
    assert call.frame.messages[1].content == "0 "
    assert call.pieces == (("a", " 1 "), ("b", " 2 "), ("c", " 3"))
    assert call.numbered == {"b"}
    texts = {"a": "A.", "b": "Bee. Bee.", "c": "C. C."}
    (prompt,) = plan_prompts(version, schema)(Item(id="x", variables=texts))
    assert prompt.tail == "A. 1 [0] Bee.\n[1] Bee. 2 C. C. 3"
    with pytest.raises(DataError) as refused:
        plan_prompts(replace(version, inputs=("b", "a", "c")), schema)
    assert str(refused.value) == (
        "tiny@v1, user.jinja: {{ a }} must be rendered exactly once, inputs in the "
        "order b, a, c. Move it out of loops and conditions, to the end of the "
        "template."
    )


@pytest.mark.parametrize("name", ["b", "a"])
def test_an_input_that_an_item_lacks_is_named(first, name):
    """Numbered or not; the text of the other is not shown."""
    version = replace(first, user="{{ a }} {{ b | numbered }}", inputs=("a", "b"))
    texts = {"a": "zebra", "b": "zebra"}
    del texts[name]
    with pytest.raises(DataError) as refused:
        plan_prompts(version, schema)(Item(id="c7", variables=texts))
    assert str(refused.value) == (
        f"case c7 has no variable '{name}', which the prompt needs. Import the cohort "
        "again with that column."
    )


def test_an_input_that_another_prompt_finds_is_said_to_be_one(first):
    """No cohort has such a column; a version has to be named."""
    version = replace(first, user="{{ listed_errors }}", inputs=("listed_errors",))
    with pytest.raises(DataError) as refused:
        plan_prompts(version, schema)(Item(id="c7", variables={}))
    assert str(refused.value) == (
        "the input 'listed_errors' is what another prompt finds, and the version reads "
        "none that makes it: name one under `reads` in its prompt.yaml, with the "
        "contract error_list_unweighted."
    )


def test_what_a_template_may_use_is_told_where_it_fails(first):
    """With its line, in the template that is at fault."""
    with pytest.raises(DataError) as refused:
        plan_prompts(replace(first, user="a\n{{ b }}\n{{ text }}"), schema)
    assert str(refused.value) == (
        "tiny@v1, user.jinja: UndefinedError: 'b' is undefined. A template may use "
        "guides, fields, name, shots, text and nothing else; see `ranloop lint "
        "tiny@v1`."
    )
    with pytest.raises(DataError, match=r"^tiny@v1, system\.jinja, line 2: "):
        plan_prompts(replace(first, system="a\n{% if %}"), schema)
    with pytest.raises(DataError, match=r"^tiny@v1, user\.jinja, line 3: .* Correct "):
        plan_prompts(replace(first, user="a\n\n{% if %}{{ text }}"), schema)


def test_a_mark_in_a_name_is_no_input(first):
    """What stands for an input till a case is put in is of no guide's words."""
    guide = replace(first.guides[0], definition="a \ue000 b")
    (prompt,) = plan_prompts(replace(first, guides=(guide,)), schema)(item("Clear."))
    assert prompt.messages[1].content == "edema: a \ue000 b\nAnswer edema.\nClear.\n"


def test_more_blank_lines_may_hold_something(first):
    """Another draw asked aside is another prompt than that of a run."""
    plan = plan_prompts(replace(first, user="A.\n\n{{ text }}"), schema)
    (prompt,) = space_out(plan, 2, " ")(item("Clear."))
    assert prompt.messages[1].content == "A.\n\n \n \nClear."
