"""The layout of the published implementation: our words in its order."""

import pytest

from loop.core.records import Clarification, Exemplar, Guide, Item, Value
from loop.prompts.render import plan_prompts
from loop.prompts.version import CallPlan, PromptVersion
from loop.run.reference_implementation import in_published_layout

FULL = Guide(
    label="edema",
    name="Edema",
    definition="Fluid.",
    terms=("wet lung", "oedema"),
    exclusions=("soft tissue edema",),
    clarifications=(
        Clarification(phrase="hazy", value=Value.UNCERTAIN, note="Not enough."),
        Clarification(phrase="clear", value=Value.ABSENT),
    ),
    exemplars=(
        Exemplar(text="Wet.", value=Value.PRESENT, evidence="Wet", why="Said."),
    ),
)
VERSION = PromptVersion(
    name="tiny",
    number=1,
    system="Read.\n",
    user="{{ guides }}{{ text }}",
    guides=(FULL, Guide(label="mass", name="Mass", definition="A lump.")),
)


def test_a_call_a_label_has_the_case_before_its_guide():
    """Golden text: a comparison with other words would be one with something else."""
    layout = in_published_layout(VERSION)
    assert (layout.plan, layout.guides) == (CallPlan.PER_LABEL, VERSION.guides)
    plan = plan_prompts(layout, lambda fields: {})
    prompts = plan(Item(id="a", variables={"text": "Clear lungs."}))
    said = [[one.content for one in prompt.messages] for prompt in prompts]
    system = "You read reports of chest X-rays.\n"
    end = "Answer with one digit: 1 if the finding is present, else 0.\n"
    assert said == [
        [
            system,
            "Finding: Edema\nReport:\nClear lungs.\n\n"
            "Fluid.\n- wet lung\n- oedema\n- not: soft tissue edema\n"
            "- hazy: uncertain. Not enough.\n- clear: absent\n"
            f'- "Wet.": present. Said.\n{end}',
        ],
        [
            system,
            f"Finding: Mass\nReport:\nClear lungs.\n\nA lump.\n{end}",
        ],
    ]


@pytest.mark.parametrize("inputs", [("text",), ("indication", "text")])
def test_every_text_of_a_case_is_shown(inputs):
    """A line each, in their order."""
    user = "".join(f"{{{{ {name} }}}}" for name in inputs)
    version = PromptVersion(
        name="tiny",
        number=1,
        system="",
        user=user,
        guides=VERSION.guides[1:],
        inputs=inputs,
    )
    plan = plan_prompts(in_published_layout(version), lambda fields: {})
    item = Item(id="a", variables={name: name.upper() for name in inputs})
    (prompt,) = plan(item)
    shown = "\n".join(name.upper() for name in inputs)
    assert f"Report:\n{shown}\n\nA lump." in prompt.messages[1].content
