"""A small prompt with awkward characters, and what it takes to export it."""

from dataclasses import replace

from loop.core.ledger import Actor
from loop.core.records import Guide, Item
from loop.prompts.version import CallPlan, PromptVersion
from loop.release.export.export import Act, write_export
from loop.release.export.records import (
    CaseSource,
    ExportOrigin,
    ExportSpec,
    ExportTarget,
    RequestParameters,
)

ACT = Act(Actor(name="Dr A. Example"), "for the ward")
SECRET = "zebra"
VERSION = PromptVersion(
    name="tiny",
    number=1,
    system="  Read {{ '{{ braces }}' }}, {{ '{% tags %}' }} and <b>&amp;.\n\n",
    user=(
        "{% for guide in guides %}\n{{ guide.label }}: {{ guide.definition }}\n"
        '{% endfor %}\nAnswer like {"edema": "absent"}: {\n'
        "{{ text }}\n}\n"
    ),
    guides=(
        Guide(label="edema", name="Edema", definition="Fluid {# in #} the lung."),
        Guide(label="fracture", name="Fracture", definition="肋骨骨折 {{ x }}."),
    ),
    author="Dr A. Example",
    time="2026-01-05T09:00:00Z",
    why="a start",
)
PER_LABEL = replace(VERSION, plan=CallPlan.PER_LABEL)
ASKING = RequestParameters(model="Some/Model", temperature=0.0, max_tokens=300, seed=7)
TEXTS = {
    "a": f"No edema. {SECRET}",
    "b 2": 'He said: {{ 1/0 }} {% raw %} "quoted" \\ \u2028 \x85 </script>',
    "c::edema": "双肺清晰。\r\nEnd.",
}


def origin(version=VERSION, **changes):
    """Return a version to export and how it is asked."""
    return ExportOrigin(version=version, asking=ASKING, **changes)


def items(texts=TEXTS):
    """Return the cases of `texts`."""
    return [Item(id=name, variables={"text": text}) for name, text in texts.items()]


def spec(target, *, version=VERSION, texts=None, **changes):
    """Return what to export; with the cases of `texts` where there are some."""
    cases = CaseSource(origin="cohort dev", items=items(texts)) if texts else None
    return ExportSpec(
        origin=origin(version, **changes), target=ExportTarget(target), cases=cases
    )


def exported(workspace, folder, target, **options):
    """Export and return the folder."""
    write_export(workspace, spec(target, **options), folder, ACT)
    return folder
