"""Inputs that a first stage makes: what it is asked, and how its answer is written."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.records import Entry, Field, Guide, Item, Span
from loop.prompts.outputs.base import CONTRACTS
from loop.prompts.render import plan_prompts
from loop.prompts.stages import given_texts, stage_item, write_input
from loop.prompts.version import CallPlan, PromptVersion

PAIR = Item(
    id="a",
    variables={"reference": "Left\neffusion.", "candidate": "No effusion."},
    language="zh",
)


@pytest.mark.parametrize(
    ("inputs", "texts"),
    [
        (("text",), ("text",)),
        (("reference_phrases",), ("reference",)),
        (("candidate_phrases", "reference_phrases"), ("candidate", "reference")),
        (("reference", "listed_errors", "context"), None),
        ((), ()),
    ],
)
def test_an_item_needs_the_texts_that_inputs_are_made_of(inputs, texts):
    """Each once, in the order in which they are come by."""
    wanted = texts if texts is not None else ("reference", "candidate", "context")
    assert given_texts(inputs) == wanted


def test_each_report_is_taken_apart_under_the_name_of_a_single_one():
    """The other one is not seen; both are where errors are listed."""
    for name in ("reference", "candidate"):
        asked = stage_item(f"{name}_phrases", PAIR)
        assert asked == Item(
            id="a", variables={"text": PAIR.variables[name]}, language="zh"
        )
    assert stage_item("listed_errors", PAIR) == PAIR


def test_phrases_are_written_with_their_numbers():
    """Of every field, in order; without one the input is empty."""
    fields = {
        "a": Field(2, (), (Entry("left effusion"), Entry("normal heart"))),
        "b": Field(1, (), (Entry("no air"),)),
    }
    asked = stage_item("reference_phrases", PAIR)
    assert write_input("reference_phrases", fields, asked) == (
        "[0] left effusion\n[1] normal heart\n[2] no air"
    )
    assert write_input("candidate_phrases", {"a": Field(0)}, asked) == ""


def test_errors_are_written_with_the_words_that_they_are_about():
    """Each on one line, from 1; what only matches is no error."""
    spans = (Span(0, 13, "reference"), Span(0, 2, "candidate"))
    fields = {
        "omission": Field(
            1, (), (Entry("left  side\nis missing", "omission", "", spans),)
        ),
        "matched": Field(1, (), (Entry("normal heart"),)),
        "severity": Field(1, (), (Entry("too large", "severity"),)),
    }
    assert write_input("listed_errors", fields, PAIR) == (
        '1. omission: left side is missing (reference: "Left effusion"; '
        'candidate: "No")\n2. severity: too large'
    )
    del fields["omission"], fields["severity"]
    assert write_input("listed_errors", fields, PAIR) == "(none)"


def asking(contract, user, *inputs):
    """Return a version of one guide that shows these inputs."""
    return PromptVersion(
        name="tiny",
        number=1,
        system="{% for one in guides %}{{ one.label }}{% endfor %}\n",
        user=user,
        guides=(Guide(label="omission", name="Omission", definition="x"),),
        contract=contract,
        inputs=inputs,
    )


@pytest.mark.parametrize("inputs", [("reference", "listed_errors"), ("listed_errors",)])
def test_a_first_stage_is_asked_whichever_input_comes_first(inputs):
    """A text that is given before it hides none that has to be made."""
    user = " ".join(f"{{{{ {name} }}}}" for name in inputs)
    both = "{{ reference }} {{ candidate }}"
    maker = asking("error_list", both, "reference", "candidate")
    version = replace(asking("error_list", user, *inputs), stages=(maker,))
    plan = plan_prompts(version, lambda fields: {})
    assert plan.names == ("listed_errors", "joint")
    (stage,) = plan.stages
    assert stage.prompt(PAIR).messages[-1].content == "Left\neffusion. No effusion."
    without = plan_prompts(replace(version, stages=()), lambda fields: {})
    assert without.names == ("joint",)
    with pytest.raises(DataError, match="reads 2 versions that make its input"):
        plan_prompts(replace(version, stages=(maker, maker)), lambda fields: {})


def test_a_version_that_cannot_make_an_input_is_told():
    """It reads other texts, or takes several calls."""
    version = asking("error_list", "{{ listed_errors }}", "listed_errors")
    both = "{{ reference }} {{ candidate }}"
    maker = asking("error_list", both, "reference", "candidate")
    more = Guide(label="location", name="Location", definition="x")
    several = replace(maker, guides=(*maker.guides, more), plan=CallPlan.PER_LABEL)
    third = replace(
        maker,
        user=f"{both} {{{{ context }}}}",
        inputs=("reference", "candidate", "context"),
    )
    for wrong in (several, third):
        with pytest.raises(DataError) as refused:
            plan_prompts(replace(version, stages=(wrong,)), lambda fields: {})
        assert str(refused.value) == (
            "tiny@v1 cannot make the input listed_errors of tiny@v1: it takes a "
            "version that reads reference and candidate in one call. Name another one "
            "under `reads` in its prompt.yaml."
        )
    # One call for each label is one call where there is one label.
    alone = replace(maker, plan=CallPlan.PER_LABEL)
    (stage,) = plan_prompts(replace(version, stages=(alone,)), lambda fields: {}).stages
    assert (stage.name, stage.call.frame.call) == ("listed_errors", "listed_errors")
    assert stage.call.frame.fields == ("omission",)
    assert stage.call.frame.schema == CONTRACTS["error_list"].schema(("omission",))


def test_context_is_empty_where_it_is_not_known_beside_numbered_lines():
    """Both are put in at once; a case that has it shows it."""
    version = asking(
        "error_list",
        "{{ candidate | numbered }} ({{ context }})",
        "candidate",
        "context",
    )
    plan = plan_prompts(version, lambda fields: {})
    texts = {"candidate": "Clear lungs. Normal heart."}
    lines = "[0] Clear lungs.\n[1] Normal heart."
    for known, shown in (({}, ""), ({"context": "Aged 9. Ill."}, "Aged 9. Ill.")):
        (prompt,) = plan(Item(id="a", variables={**texts, **known}))
        assert prompt.messages[-1].content == f"{lines} ({shown})"
