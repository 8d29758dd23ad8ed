"""The rules engine answers in the contract its prompt asks for."""

import json

import pytest

from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item
from loop.engines.base import Settings, get_engine
from loop.engines.rules.engine import ReportReader, wants_binary, wants_list
from loop.prompts.catalog import read_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.strict import NOTES
from loop.prompts.render import plan_prompts
from loop.prompts.version import with_contract
from tests.engines.reading import CUES, exemplar, guide

GUIDES = [
    guide("heart", "heart ... enlarged"),
    guide("effusion", "effusion"),
    guide("edema", "edema"),
    guide("device", "tube", implies=("line",)),
    guide("line", "catheter"),
]
FIELDS = [one.label for one in GUIDES]


def read_demo():
    """Return the synthetic reports of the demo."""
    path = bundled() / "labels/demo/dev.jsonl"
    lines = path.read_text("utf-8").splitlines()
    return [Item(id=str(n), variables=json.loads(x)) for n, x in enumerate(lines)]


@pytest.mark.parametrize("ref", ["extractor@v1", "extractor@latest"])
def test_both_contracts_give_the_same_predictions(labels_folder, ref):
    """Another way to answer must not be another answer; spans of findings included."""
    version = read_version(WorkspacePaths(bundled()), ref)
    engine = get_engine("rules", Settings(labels=labels_folder))
    items, readings = read_demo(), {}
    for name in ("label_values", "findings"):
        contract = get_contract(name)
        asked = with_contract(version, name, contract.instruction)
        (call,) = plan_prompts(asked, contract.schema).calls
        answers = engine.complete(call.prompt(item) for item in items)
        readings[name] = [
            contract.read(one.text, call.frame.fields, items[index])
            for index, one in answers
        ]
    full, compact = readings["label_values"], readings["findings"]
    assert len(full) == len(items) > 100
    for one, other in zip(full, compact, strict=True):
        # The list does not name what is denied, so it cannot note anything of it.
        assert set(other.repairs) <= set(one.repairs)
        assert all(note.endswith(tuple(NOTES.values())) for note in one.repairs)
        for label, field in one.fields.items():
            assert other.fields[label].value == field.value
            if field.value != "absent":
                assert other.fields[label].spans == field.spans


def test_the_list_names_what_is_not_absent_in_the_order_asked():
    """Negated and not mentioned are left out, implied is not."""
    reader = ReportReader(GUIDES, FIELDS, CUES, listing=True)
    text = "A tube is seen. No effusion. Possible edema. The heart is enlarged."
    assert json.loads(reader.answer(text)) == {
        "findings": [
            {"label": "heart", "value": "present", "span": [49, 66]},
            {"label": "edema", "value": "uncertain", "span": [38, 43]},
            {"label": "device", "value": "present", "span": [2, 6]},
            {"label": "line", "value": "present", "span": [2, 6]},
        ]
    }


def test_nothing_found_is_an_empty_list():
    """The list is there: every label was looked for."""
    reader = ReportReader(GUIDES, FIELDS, CUES, listing=True)
    assert reader.answer("The lungs are clear.") == '{"findings":[]}'


def test_a_label_not_asked_for_is_not_listed():
    """A guide may serve an implication only."""
    reader = ReportReader(GUIDES, ["line"], CUES, listing=True)
    (found,) = json.loads(reader.answer("A tube is seen."))["findings"]
    assert found["label"] == "line"


def test_only_the_list_schema_asks_for_a_list():
    """A label may be called findings, and a judge's schema may hold a list."""
    assert wants_list(get_contract("findings").schema(FIELDS))
    assert not wants_list(get_contract("label_values").schema(["findings"]))
    assert not wants_list(get_contract("label_values").schema(FIELDS))
    assert not wants_list({})


def test_an_exemplar_counts_in_the_list_too():
    """What a clinician adds to a guide changes either form."""
    taught = [guide("x", exemplars=(exemplar("ground glass", "present"),))]
    reader = ReportReader(taught, ["x"], CUES, listing=True)
    assert json.loads(reader.answer("Some ground glass."))["findings"]


def answer_of(text, **others):
    """Return what the binary reader says of a text."""
    return json.loads(
        ReportReader(GUIDES, FIELDS, CUES, binary=True, **others).answer(text)
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Edema is seen.", "present"),
        ("Possible edema.", "absent"),
        ("Edema cannot be excluded.", "absent"),
        ("No edema.", "absent"),
        ("Possible edema. Edema is seen.", "present"),
    ],
)
def test_what_is_not_unequivocal_is_absent_in_the_contract_binary(text, value):
    """The words that hedge are its evidence all the same."""
    assert answer_of(text)["edema"]["value"] == value
    assert answer_of("The lungs are clear.")["edema"] == "absent"


def test_the_tier_probable_keeps_its_switch_in_the_contract_binary():
    """What the cue file calls probable is present there, and here too."""
    assert answer_of("Probable edema.")["edema"]["value"] == "present"


def test_an_uncertain_finding_implies_nothing_in_either_contract():
    """Only what is present implies."""
    assert answer_of("Possible tube.")["line"] == "absent"
    assert answer_of("A tube is seen.")["line"]["value"] == "present"


def test_only_the_binary_schema_asks_for_two_values():
    """The engine reads the schema and not the name of a contract."""
    assert wants_binary(get_contract("binary").schema(FIELDS))
    assert not wants_binary(get_contract("label_values").schema(FIELDS))
    assert not wants_binary(get_contract("findings").schema(FIELDS))
    for strange in ({}, {"properties": {}}, {"properties": {"a": {"anyOf": [1]}}}):
        assert not wants_binary(strange)


def test_the_contract_binary_differs_only_where_the_answer_was_uncertain(labels_folder):
    """All else is the same, over the reports of the demo."""
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    engine = get_engine("rules", Settings(labels=labels_folder))
    items, found = read_demo(), {}
    for name in ("label_values", "binary"):
        contract = get_contract(name)
        asked = with_contract(version, name, contract.instruction)
        (call,) = plan_prompts(asked, contract.schema).calls
        found[name] = [
            contract.read(one.text, call.frame.fields, items[index]).fields
            for index, one in engine.complete(call.prompt(item) for item in items)
        ]
    unsure = 0
    for full, binary in zip(found["label_values"], found["binary"], strict=True):
        for label, field in full.items():
            unsure += field.value == "uncertain"
            wanted = "absent" if field.value == "uncertain" else field.value
            assert binary[label].value == wanted
            assert binary[label].spans == field.spans
    assert unsure > 20


@pytest.mark.parametrize("name", ["label_values", "findings"])
def test_sections_that_disagree_are_a_repair(name):
    """The impression is believed, and whoever reviews the case sees why to look."""
    text = "FINDINGS: No effusion. IMPRESSION: Small effusion. Possible edema."
    contract = get_contract(name)
    reader = ReportReader(GUIDES, FIELDS, CUES, listing=name == "findings")
    item = Item(id="1", variables={"text": text})
    reading = contract.read(reader.answer(text), FIELDS, item)
    assert reading.repairs == ("effusion: findings and impression disagree",)
    assert reading.fields["effusion"].value == "present"


def test_another_side_or_form_is_no_disagreement():
    """What is denied of one side is not denied."""
    for text in (
        "FINDINGS: Right effusion. IMPRESSION: No left effusion.",
        "FINDINGS: Small effusion. IMPRESSION: No large effusion.",
        "FINDINGS: Small effusion. IMPRESSION: Effusion.",
    ):
        answer = json.loads(ReportReader(GUIDES, FIELDS, CUES).answer(text))
        assert answer["effusion"]["value"] == "present"
        assert "notes" not in answer["effusion"]


def test_a_note_of_somebody_else_is_not_believed():
    """A model could write words of the case there, and repairs never quote it."""
    fields = ["effusion"]
    item = Item(id="1", variables={"text": "Effusion."})
    for notes in (["Mr Smith"], "Mr Smith", [["sections"]], 1):
        entry = {"value": "present", "span": [0, 8], "notes": notes}
        raw = json.dumps({"effusion": entry})
        reading = get_contract("label_values").read(raw, fields, item)
        assert "Smith" not in str(reading.repairs)
        assert not any(one.endswith("disagree") for one in reading.repairs)
