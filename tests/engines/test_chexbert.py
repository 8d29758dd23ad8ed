"""CheXbert: what a plain forward pass says, for the labels it knows and no others."""

import json
import sys
from pathlib import Path

import pytest

from loop.core.errors import DataError, EngineError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item, Prompt, PromptFrame, PromptTask, Value
from loop.engines.base import Settings
from loop.engines.chexbert import HEADS, LONGEST, CheXbertEngine, _answer
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import read_known
from loop.prompts.outputs.base import get_contract
from loop.run.asking import labels_of, load_engine, opened, plan_calls
from loop.score.records import Conventions, ExtractorFacts
from loop.score.signature import sign
from tests.torch_process import run_with_torch

SCRIPT = Path(__file__).with_name("chexbert_check.py")
UNKNOWN = {
    "Emphysema",
    "Interstitial Lung Disease",
    "Calcification (Lung/Mediastinal)",
    "Trachea and Bronchus",
    "Cavity and Cyst",
    "Mediastinal Other",
    "Pulmonary Vascular Abnormal",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what the process with torch says."""
    return run_with_torch(SCRIPT, tmp_path_factory.mktemp("chexbert"))


@pytest.mark.external
@pytest.mark.slow
def test_answers_are_those_of_a_plain_forward_pass(found):
    """Of 60 texts at once and one by one; every class is among them."""
    assert found["ours"] == found["plain"]
    assert found["one_by_one"] == found["ours"][:5]
    said = {value for row in found["ours"] for value in row.values()}
    assert said == {"present", "absent", "uncertain"}
    assert {row["no_finding"] for row in found["ours"]} == {"present", "absent"}
    # Weights that were trained on one GPU have other names, and are the same.
    assert found["unprefixed"] == found["ours"][:20]
    assert found["other"] != found["identity"]["weights"]


@pytest.mark.external
@pytest.mark.slow
def test_a_contract_without_uncertain_gets_absent(found):
    """And an answer in another language is none."""
    for row, before in zip(found["binary"], found["ours"], strict=True):
        assert row == {
            name: "absent" if value == "uncertain" else value
            for name, value in before.items()
        }
    assert found["foreign"] == [
        "chexbert reads English, and the text is in another language"
    ]
    assert found["judges"].startswith("chexbert reads labels out of reports")


@pytest.mark.external
@pytest.mark.slow
def test_texts_that_were_cut_are_counted_and_named(found):
    """Two marks belong to the 512 tokens: 510 fit, and 509 do."""
    assert found["longest"] == 512
    assert "t59" in found["cut"] and len(found["cut"]) == len(set(found["cut"])) <= 3
    number = len(found["cut"])
    assert found["told"] == [
        f"{number} texts are longer than 512 tokens, and their ends were not read: "
        + ", ".join(found["cut"])
    ]
    whole, cut = found["noted"]
    assert whole == [] and len(cut) == 14
    assert "pneumonia: the end of the text was not read" in cut


@pytest.mark.external
@pytest.mark.slow
def test_what_cannot_be_used_is_refused_and_no_code_is_run(found):
    """Each with the reason and what to do."""
    assert not found["ran"]
    said = found["refusals"]
    for kind in ("code", "pickle"):
        assert "a pickle that holds code, which is never run" in said[kind], kind
    assert "cannot be read as weights alone" in said["torn"]
    assert "has not the shape of CheXbert: bert." in said["shape"]
    assert "has 2 files *.pth, and should have one" in said["two"]
    assert "lacks BERT's marks" in said["words"]
    assert "is no configuration of BERT" in said["config"]
    assert "holds no weights" in said["empty"]
    assert "is no folder" in said["missing"]


@pytest.mark.external
@pytest.mark.slow
def test_it_stands_beside_the_extractor_in_run_evaluate_matrix_and_annotate(found):
    """Fourteen labels are measured, and seven were not asked for: never wrong."""
    labels = {one["name"]: one for one in found["evaluated"]["labels"]}
    for name in UNKNOWN:
        assert labels[name]["reasons"] == [
            "not asked for: the prompt version lacks it, or the engine does not know it"
        ]
        assert labels[name]["n"] == 0
    known = [one for name, one in labels.items() if name not in UNKNOWN]
    assert len(known) == 14 and all(one["n"] > 150 for one in known)
    assert "|nf:read|" in found["evaluated"]["signature"]
    assert "|L:14|" in found["evaluated"]["signature"]
    # The last run of the matrix was the same one.
    engines = found["matrix"]["engines"]
    assert [one["engine"].partition(":")[0] for one in engines] == ["rules", "chexbert"]
    counts = found["annotated"]["labels"]
    assert all(counts[name] == {"blank": 2} for name in UNKNOWN)
    assert all(
        "blank" not in told for name, told in counts.items() if name not in UNKNOWN
    )
    assert found["annotated"]["plan"]["no_finding"] == "read"
    # Two reports against themselves, by the 14 labels.
    (system,) = found["scored"]["systems"]
    assert system["ran_score"]["value"] == 1.0
    assert system["cells"]["unanswered"] == 2 * len(UNKNOWN)
    assert "|nf:read|" in system["signature"]
    assert "not asked about every label" in " ".join(found["replayed"].split())


def test_only_known_labels_are_asked_for_in_one_call():
    """With No Finding, which is read; a version without any of them cannot be asked."""
    place = WorkspacePaths(bundled())
    version = read_known(place, "extractor@v11").version
    contract = get_contract(version.contract)
    plan = plan_calls(version, contract, labels_of("chexbert:somewhere"))
    (frame,) = plan.frames
    assert set(frame.fields) == set(HEADS) and len(frame.fields) == 14
    assert list(frame.schema["required"]) == list(frame.fields)
    taxonomy = read_taxonomy(place.labels)
    assert set(HEADS) <= set(taxonomy.ids)
    whole = plan_calls(version, contract, labels_of("rules"))
    assert len(whole.frames[0].fields) > 14
    with pytest.raises(DataError, match="asks for no label that the engine knows"):
        plan_calls(version, contract, ("nothing",))


def test_the_signature_of_a_score_says_that_no_finding_is_read():
    """On both sides, or on one of them."""
    read = ExtractorFacts(ref="extractor@v11", digest="ab", engine="chexbert:x")
    counts = {"effective_labels": 14, "labels": 21, "n": 3}
    assert "|nf:read|" in sign(read, Conventions(), **counts)
    given = ExtractorFacts(ref="given+extractor@v11", digest="ab", engine="chexbert:x")
    assert "|nf:ran+read|" in sign(given, Conventions(), **counts)


def test_without_torch_it_is_said_what_to_install(monkeypatch, tmp_path):
    """Before anything is read; and a folder must be named."""
    settings = Settings(labels=tmp_path)
    with pytest.raises(EngineError, match="name the folder of the weights"):
        load_engine("chexbert:", settings)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("loop.engines.chexbert.find_spec", lambda name: None)
    refused = pytest.raises(EngineError, match=r"torch and transformers.*\[chexbert\]")
    with refused, opened(load_engine(f"chexbert:{tmp_path}", settings)):
        pass


def frame(*fields, contract="label_values"):
    """Return the frame of a call about these fields."""
    schema = get_contract(contract).schema(fields)
    return PromptFrame(call="joint", messages=(), fields=fields, schema=schema)


VALUES = {"edema": Value.PRESENT, "fracture": Value.ABSENT, "mass": Value.UNCERTAIN}


@pytest.mark.parametrize(
    ("contract", "cut", "said"),
    [
        (
            "label_values",
            False,
            {
                "mass": {"value": "uncertain"},
                "edema": {"value": "present"},
                "fracture": "absent",
            },
        ),
        (
            "binary",
            False,
            {"mass": "absent", "edema": {"value": "present"}, "fracture": "absent"},
        ),
        (
            "binary",
            True,
            {
                "mass": {"value": "absent", "notes": ["cut"]},
                "edema": {"value": "present", "notes": ["cut"]},
                "fracture": {"value": "absent", "notes": ["cut"]},
            },
        ),
    ],
)
def test_an_answer_has_the_fields_that_are_asked_for(contract, cut, said):
    """In their order; uncertain is absent where a version knows no uncertain."""
    asked = frame("mass", "edema", "fracture", contract=contract)
    found = _answer(asked, VALUES, cut=cut)
    assert json.loads(found) == said and list(json.loads(found)) == list(said)
    with pytest.raises(EngineError, match="chexbert does not know a_label"):
        _answer(frame("edema", "b_label", "a_label"), VALUES, cut=cut)


def test_each_prompt_is_answered_in_its_place(tmp_path):
    """In batches of 32. A text in another language gets an error and is not cut."""
    told, read = [], []
    engine = CheXbertEngine(tmp_path, Settings(labels=tmp_path, tell=told.append))

    def look(texts):
        read.append(len(texts))
        return [({"edema": Value.PRESENT}, int(text)) for text in texts]

    engine._read = look
    asked = frame("edema")
    lengths = [*range(LONGEST - 1, LONGEST + 22), *[3] * 42]
    items = [
        Item(
            id=f"t{n}",
            variables={"text": str(length)},
            language="de" if n == 2 else "en",
        )
        for n, length in enumerate(lengths)
    ]
    prompts = (Prompt(frame=asked, tail="", item=item) for item in items)
    found = list(engine.complete(prompts))
    assert [index for index, _ in found] == list(range(65))
    assert read == [32, 32, 1]
    cut = [n for n, length in enumerate(lengths) if length > LONGEST and n != 2]
    for (index, one), length in zip(found, lengths, strict=True):
        if index == 2:
            assert one.error.startswith("chexbert reads English") and one.text == ""
            continue
        assert ("notes" in one.text) is (index in cut)
        assert (one.prompt_tokens, one.completion_tokens) == (min(length, 512), 0)
    assert engine.account() == {"cut": [f"t{n}" for n in cut]}
    assert len(cut) == 20
    # One more than the account has, so that the message cannot name them all.
    engine._cut["t99"] = None
    engine.__exit__(None, None, None)
    assert told == [
        "21 texts are longer than 512 tokens, and their ends were not read: "
        + ", ".join(f"t{n}" for n in cut)
    ]


def test_without_weights_it_says_nothing(tmp_path):
    """Nor is it told that nothing was cut; it reads reports, in English."""
    told = []
    engine = CheXbertEngine(tmp_path, Settings(labels=tmp_path, tell=told.append))
    engine.__exit__(None, None, None)
    assert told == [] and list(engine.languages) == ["en"]
    with pytest.raises(EngineError, match=r"chexbert is not open\. Use it in a `with`"):
        engine.identity()
    assert engine.for_task(PromptTask.EXTRACT) is engine
    for task in (PromptTask.JUDGE, PromptTask.REWRITE):
        with pytest.raises(EngineError, match="reads labels out of reports and does"):
            engine.for_task(task)
