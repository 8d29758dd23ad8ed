"""A task of one's own, from a list of labels to a signed release, by commands alone.

All reports are synthetic and written for these tests.
"""

import csv
import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import bundled
from tests.servers.process import serving

READERS = ("A", "B", "C")

MRI = {
    "Ischaemic infarct": "A recent infarct, as diffusion imaging shows it.",
    "Haemorrhage": "Blood inside the skull, of any age and in any compartment.",
    "Mass": "A space-occupying lesion inside the skull, of any kind.",
    "Hydrocephalus": "The ventricles are enlarged by more fluid than they should hold.",
    "White matter lesions": "Hyperintense foci of the white matter, of any number.",
    "Atrophy": "The volume of the brain is reduced, in part or as a whole.",
    "Midline shift": "Structures of the midline are displaced to one side.",
    "Aneurysm": "A localised widening of an artery of the brain.",
    "Sinusitis": "The mucosa of a paranasal sinus is thickened, or a sinus is filled.",
    "Demyelination": "Lesions that the report calls demyelinating.",
}

SAID = {
    "Haemorrhage": "A microbleed is present in the left thalamus.",
    "White matter lesions": "There are white matter lesions.",
}
"""How the reports put what they do not call by the label's name."""

BRAIN = {
    "present": ["{} is seen.", "There is {}.", "The images show {}.", "{} is present."],
    "absent": ["No {}.", "There is no {}.", "No evidence of {}.", "{} is not seen."],
    "other": [
        "The pituitary gland is unremarkable.",
        "Flow voids are preserved.",
        "The orbits are symmetrical.",
        "Marrow signal is normal for age.",
        "The mastoid air cells are clear.",
        "The corpus callosum is normally formed.",
        "The internal auditory canals are free.",
        "The craniocervical junction is regular.",
        "Contrast was given without reaction.",
        "The cerebellar tonsils lie at the usual height.",
    ],
}

PATHOLOGY = {
    "Gefäßinvasion": "Tumorzellen liegen in einem Lymph- oder Blutgefäß.",
    "Lymphknotenmetastase": "Ein Lymphknoten enthält eine Absiedlung des Tumors.",
    "Schnittrand frei": "Der Tumor erreicht keinen Rand des Präparats.",
}


TISSUE = {
    "present": ["{} ist nachweisbar.", "Es findet sich: {}.", "{} liegt vor."],
    "absent": ["{} ist nicht nachweisbar.", "Kein Hinweis auf: {}.", "Ohne {}."],
    "other": [
        "Das Präparat wurde vollständig aufgearbeitet.",
        "Die Schleimhaut ist regelrecht aufgebaut.",
        "Das Fettgewebe ist frei von Entzündung.",
        "Der Befund ist mit der Klinik vereinbar.",
        "Die Färbung wurde mit einer Kontrolle geführt.",
        "Die Kapsel ist nicht durchbrochen.",
        "Das Stroma ist locker und zellarm.",
        "Die Drüsen sind unterschiedlich weit.",
    ],
}


def ranloop(*words, code=0, **env):
    """Run one command; return what it printed, as data where it is JSON."""
    done = CliRunner().invoke(app, [str(word) for word in words], env=env or None)
    assert done.exit_code == code, f"{words}: {done.exit_code}\n{done.output}"
    if code == 1:
        return str(done.exception)
    return json.loads(done.stdout) if "--json" in words else done.output


def write_labels(path, labels):
    """Write the list of labels."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("name", "definition"))
        rows.writerows(labels.items())
    return path


def brain_reports(name, size):
    """Return case id to text and the labels that are there."""
    return write_reports(name, size, list(MRI), BRAIN, SAID)


def tissue_reports(name, size):
    """Return the same in German, of another kind of report."""
    return write_reports(name, size, list(PATHOLOGY), TISSUE, {})


def write_reports(name, size, labels, words, said):
    """Return case id to text and the labels that are there, always the same ones."""
    chance, found = random.Random(name), {}
    for number in range(size):
        there = {labels[number % len(labels)], chance.choice(labels)}
        lines = [
            said.get(one, chance.choice(words["present"]).format(one))
            if one in there
            else chance.choice(words["absent"]).format(one)
            for one in labels
        ]
        lines += chance.sample(words["other"], 4)
        chance.shuffle(lines)
        found[f"{name}{number}"] = (" ".join(lines), there)
    return found


def add_cohort(folder, name, role, reports, labels):
    """Import reports and three readers' votes, who agree."""
    source, votes = folder / f"{name}.csv", folder / f"{name}_votes.csv"
    with source.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("case_id", "text", "exam"))
        rows.writerows((one, text, "MRI BRAIN") for one, (text, _) in reports.items())
    with votes.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("reader", "case_id", "label", "value"))
        for one, (_, there) in reports.items():
            for label in labels:
                value = "present" if label in there else "absent"
                rows.writerows((reader, one, label, value) for reader in READERS)
    said = ranloop(
        *("cohort", "import", source, "--name", name, "--role", role, "--json")
    )
    assert said["cases"] == len(reports)
    ranloop("cohort", "votes", name, votes)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Return the folder of a study, and work in it once it is there."""
    monkeypatch.setenv("RANLOOP_ACTOR", "Dr A")
    monkeypatch.setenv("COLUMNS", "200")
    folder = tmp_path / "study"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def release(engine):
    """Freeze v2 against its gates; check release, signature and history."""
    ranloop("key", "new", "Dr B", "--role", "approver")
    ask = ("freeze", "extractor@v2", "--cohort", "dev", "--holdout", "held")
    ask = (*ask, "--engine", engine, "--why", "for the ward", "--actor", "Dr B")
    ranloop(*ask, code=100)
    # What the holdout says can be overridden only once it is known.
    override = ("--override", "a small synthetic study")
    ranloop(*ask, *override, code=100)
    ranloop(*ask, *override)
    held = ranloop("verify", "extractor-v2")
    history = ranloop("audit", "--json")
    assert history["counts"]["broken"] == 0
    card = Path("reports/releases/extractor-v2/card.html").read_text("utf-8")
    return held, card


def test_brain_mri_from_nothing_to_a_signed_release(tmp_path, study):
    """Ten labels of another region, with `rules`, which reads guides only."""
    labels = write_labels(tmp_path / "labels.csv", MRI)
    made = ranloop("init", study, "--task", "new", "--labels", labels, "--json")
    assert len(made["labels"]) == 10 and made["origin"] is None
    add_cohort(tmp_path, "dev", "dev", brain_reports("dev", 40), MRI)
    add_cohort(tmp_path, "held", "holdout", brain_reports("held", 20), MRI)
    ranloop("cohort", "check")
    first = ranloop("run", "extractor", "--cohort", "dev", "--json")
    assert first["answered"] == 40
    before = ranloop("evaluate", "--json", "--html", "page.html", code=100)
    assert "|nf:" not in before["signature"]
    assert "No Finding" not in Path("page.html").read_text("utf-8")
    ask = (
        "matrix",
        "extractor",
        "--cohort",
        "dev",
        "-e",
        "rules",
        "-e",
        "replay:latest",
    )
    ranloop(*ask, "--html", "matrix.html")
    assert "No Finding" not in Path("matrix.html").read_text("utf-8")
    missed = ranloop("failures", "--json")["rows"]
    assert {one["label"] for one in missed} == {"haemorrhage"}
    verdicts = write_verdicts(tmp_path, missed, "haemorrhage", "microbleed")
    ranloop("verdict", "add", verdicts, "--run", "latest")
    revised = ranloop("revise", "extractor", "--cohort", "dev", "--kept", "--json")
    assert revised["version"] == "extractor@v2"
    assert not ranloop("run", "extractor", "--cohort", "dev", "--json")["failed"]
    ranloop("evaluate", code=100)
    held, card = release("rules")
    assert "holds" in held
    assert "chest" not in card.casefold() and "No Finding" not in card
    ranloop("score", "-r", texts(tmp_path, "ref"), texts(tmp_path, "ours"), "-o", "out")
    said = "".join(one.read_text("utf-8") for one in Path("out").glob("score.*"))
    assert "Ischaemic infarct" in said
    assert "No Finding" not in said and "|nf:" not in said and "exper" not in said


def test_the_release_of_the_readme_works_in_a_fresh_workspace(tmp_path, study):
    """Own key, cohort, holdout, freeze and verify, with the extractor that ships."""
    ranloop("init", study, "--json")
    for name, source, role, most in (
        ("dev", "dev", "dev", 60),
        ("test", "holdout", "holdout", 30),
    ):
        demo = bundled() / "labels" / "demo"
        lines = (demo / f"{source}.jsonl").read_text("utf-8").splitlines()[:most]
        ids = {json.loads(line)["case_id"] for line in lines}
        texts, votes = tmp_path / f"{name}.jsonl", tmp_path / f"{name}_votes.csv"
        texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
        head, *rows = (demo / f"votes_{source}.csv").read_text("utf-8").splitlines()
        kept = [row for row in rows if row.split(",")[1] in ids]
        votes.write_text("\n".join([head, *kept]) + "\n", encoding="utf-8")
        ranloop("cohort", "import", texts, "--name", name, "--role", role)
        ranloop("cohort", "votes", name, votes)
    ranloop("key", "new", "Dr B", "--role", "approver")
    ask = ("freeze", "extractor@v1", "--cohort", "dev", "--holdout", "test")
    ask = (*ask, "--why", "for the ward study", "--actor", "Dr B")
    ranloop(*ask, code=100)
    override = ("--override", "few cases")
    ranloop(*ask, *override, code=100)
    ranloop(*ask, *override)
    assert "holds" in ranloop("verify", "extractor-v1")
    assert ranloop("audit", "--json")["counts"]["broken"] == 0


@pytest.mark.external
def test_german_pathology_from_nothing_to_a_signed_release(tmp_path, study):
    """Three labels in a language that `rules` cannot read, with a real server."""
    for needed in ("xllamacpp", "gguf", "tokenizers"):
        pytest.importorskip(needed, reason="the extra `dev` has llama.cpp")
    from tests.servers.tiny_gguf import write_model

    labels = write_labels(tmp_path / "labels.csv", PATHOLOGY)
    made = ranloop("init", study, "--task", "new", "--labels", labels, "--json")
    assert made["labels"][0] == "gefaessinvasion"
    add_cohort(tmp_path, "dev", "dev", tissue_reports("dev", 6), PATHOLOGY)
    add_cohort(tmp_path, "held", "holdout", tissue_reports("held", 4), PATHOLOGY)
    refused = ranloop("run", "extractor", "--cohort", "dev", code=1)
    assert "rules reads en, zh" in refused and "cases of dev are in de" in refused
    model = write_model(tmp_path / "tiny.gguf")
    with serving("tests.servers.llama_server", model) as url:
        engine = f"openai:tiny@{url}"
        ask = ("--cohort", "dev", "--engine", engine)
        assert ranloop("run", "extractor", *ask, "--json")["answered"] == 6
        ranloop("evaluate", code=100)
        missed = ranloop("failures", "--json")["rows"]
        label = missed[0]["label"]
        verdicts = write_verdicts(tmp_path, missed, label, "Einbruch in die Vene")
        ranloop("verdict", "add", verdicts, "--run", "latest")
        begun = ranloop(
            "draft", "begin", "extractor", "--cohort", "dev", "--kept", "--json"
        )
        few = ("--draws", "1", "--max-draws", "1", "--engine", engine)
        # A random model: what the check says of it is chance.
        CliRunner().invoke(app, ["draft", "check", begun["draft"], *few])
        why = ("--why", "words of ours", "--override")
        ranloop("draft", "commit", begun["draft"], *why)
        held, card = release(engine)
    assert "holds" in held
    assert "chest" not in card.casefold()


def texts(folder, name):
    """Write two texts to be scored."""
    path = folder / f"{name}.csv"
    path.write_text("case_id,text\na,There is a mass.\nb,No haemorrhage.\n")
    return path


def write_verdicts(folder, missed, label, term):
    """Write a verdict on every failing pair of a label: one wording is missing."""
    cases = [one["case_id"] for one in missed if one["label"] == label]
    path = folder / "verdicts.yaml"
    path.write_text(
        json.dumps(
            {
                "reviewer": "Dr A",
                "verdicts": [
                    {
                        "cases": cases,
                        "label": label,
                        "judgement": "model_wrong",
                        "context": "synonym_or_abbreviation",
                        "terms": [term],
                    }
                ],
            }
        ),
        encoding="utf-8",
    )
    return path
