"""A list of labels becomes a taxonomy, or the line that is wrong is named."""

import re

import pytest
from openpyxl import Workbook
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.errors import DataError
from loop.core.yaml_files import parse_yaml
from loop.labels import label_list
from loop.labels.importing.screening import Screening
from loop.labels.importing.source import ImportOptions, SourceCase
from loop.labels.label_list import (
    MOST_LABELS,
    READING,
    derive_id,
    pick_listed,
    read_label_list,
)
from loop.labels.taxonomy import NO_FINDING, Taxonomy, parse_taxonomy, read_taxonomy
from loop.prompts.first import first_guide

MEANS = "An area of the brain that lost its blood supply."


def listed(tmp_path, text, name="labels.csv"):
    """Return the taxonomy of a list with this text."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return parse_taxonomy(read_label_list(path), path)


def test_names_and_definitions_are_enough(tmp_path):
    """Ids come from names; neither group, CheXpert label nor No Finding is needed."""
    made = listed(tmp_path, f"name,definition\nOld infarct,{MEANS}\nÖdem,{MEANS}\n")
    assert made.ids == made.extracted == ("old_infarct", "oedem")
    assert {label.group for label in made.labels} == {"findings"}
    assert not made.derives and made.comparable == () and made.reading
    assert made.derive_no_finding({"old_infarct": "absent", "oedem": "absent"}) is None


def test_every_column_arrives(tmp_path):
    """Lists in one cell are separated by semicolons; columns may stand in any order."""
    made = listed(
        tmp_path,
        "Definition,id,name,counts,not_counts,uncertain,group,aliases\n"
        f"{MEANS},stroke,Infarct,lacune; old stroke,tumour,doubt,vessels,Insult\n",
    )
    (label,) = made.labels
    assert (label.id, label.group, label.aliases) == ("stroke", "vessels", ("Insult",))
    assert first_guide(label).terms == ("Insult",)
    assert label.counts == ("lacune", "old stroke")
    assert (label.does_not_count, label.uncertain_when) == (("tumour",), ("doubt",))


def test_a_list_becomes_a_whole_taxonomy(tmp_path):
    """What it does not say is what holds of any report; empty rows are none."""
    path = tmp_path / "labels.csv"
    path.write_text(
        f"Label,definition,Aliases,CheXpert,counts\n"
        f'Old  infarct ,"{MEANS[:20]}\n{MEANS[20:]}",a; b ;;c,Edema,"d\ne"\n'
        f",,,,\nStroke,{MEANS},,,\n",
        "utf-8",
    )
    assert parse_yaml(read_label_list(path), "x") == {
        "version": 1,
        "region": "any",
        "reading": list(READING),
        "labels": [
            {
                "id": "old_infarct",
                "group": "findings",
                "name": "Old infarct",
                "definition": f"{MEANS[:20].strip()} {MEANS[20:].strip()}",
                "aliases": ["a", "b", "c"],
                "chexpert": "Edema",
                "counts": ["d", "e"],
            },
            {
                "id": "stroke",
                "group": "findings",
                "name": "Stroke",
                "definition": MEANS,
            },
        ],
    }


def test_a_definition_says_something_and_a_list_has_an_end(tmp_path, monkeypatch):
    """Twenty characters are enough, and as many labels as a list may have."""
    assert listed(tmp_path, f"name,definition\nA,{'d' * 20}\n").ids == ("a",)
    with pytest.raises(DataError, match="line 2: the definition has fewer than 20 ch"):
        listed(tmp_path, f"name,definition\nA,{'d' * 19}\n")
    assert MOST_LABELS == 1_000
    monkeypatch.setattr(label_list, "MOST_LABELS", 2)
    two = f"name,definition\nA,{MEANS}\nB,{MEANS}\n"
    assert listed(tmp_path, two).ids == ("a", "b")
    with pytest.raises(DataError) as refused:
        listed(tmp_path, f"{two}C,{MEANS}\n")
    assert str(refused.value) == (
        "labels.csv has more than 2 rows, so it is no list of labels. Give a file with "
        "one label a row: name,definition."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"- name: A\n  definition: {MEANS}\n- just words", "label 2: is no entry"),
        (
            f"- name: A\n  label: B\n  definition: {MEANS}",
            "label 1: has a key that is unknown or given twice",
        ),
        (f"- name: [A]\n  definition: {MEANS}", "label 1: has no name"),
        (f"- name: A\n  definition: {MEANS}\n  id: 7", "label 1: no id can be made"),
        ("group,aliases\nA,B\n", "no column name and no column definition"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told_by_its_number(tmp_path, text, said):
    """Entries of YAML have no line."""
    name = "labels.csv" if text.startswith("group") else "labels.yaml"
    with pytest.raises(DataError, match=said):
        listed(tmp_path, text, name)


def test_excel_says_the_same(tmp_path):
    """A list as most people keep one."""
    book = Workbook()
    for row in (("Name", "Definition"), ("Infarct", MEANS)):
        book.active.append(row)
    book.save(tmp_path / "labels.xlsx")
    text = read_label_list(tmp_path / "labels.xlsx")
    assert parse_taxonomy(text, "it").ids == ("infarct",)


def test_yaml_says_the_same(tmp_path):
    """As a list of entries, or as a whole taxonomy with its own rules of reading."""
    entry = f"- name: Infarct\n  definition: {MEANS}\n  uncertain: [doubt]\n"
    assert listed(tmp_path, entry, "a.yaml").labels[0].uncertain_when == ("doubt",)
    whole = f"version: 3\nreading: [Read all.]\nlabels:\n{entry}"
    made = listed(tmp_path, whole, "b.yaml")
    assert (made.version, made.reading) == (3, ("Read all.",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("name,definition\n", "lists no label"),
        (f"name\n{MEANS}\n", "no column definition"),
        (f"name,definition,colour\nA,{MEANS},red\n", "column 3 is not known"),
        (f"Peter Pan 1980,{MEANS}\nA,{MEANS}\n", "column 1 is not known"),
        (f"name,label,definition\nA,A,{MEANS}\n", "column 2 gives name once more"),
        ("name,definition\nInfarct,short\n", "line 2: the definition has fewer"),
        (f"name,definition\n,{MEANS}\n", "line 2: has no name"),
        (f"name,definition\n梗死,{MEANS}\n", "line 2: no id can be made"),
        (f"name,definition,id\nA,{MEANS},A B\n", "line 2: no id can be made"),
        (f"name,definition\nA b,{MEANS}\na-B,{MEANS}\n", "line 3: the id 'a_b' is"),
        (
            "name,definition\n"
            + "".join(f"n{n},{MEANS}\n" for n in range(MOST_LABELS + 1)),
            "no list of labels",
        ),
    ],
)
def test_what_is_no_list_of_labels_is_refused(tmp_path, text, said):
    """With its line, and never with what may be somebody's report."""
    with pytest.raises(DataError, match=said) as refused:
        listed(tmp_path, text)
    assert "Peter" not in str(refused.value) and "blood" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["just words", "- just words", "- {name: A, colour: red}", "labels: {}"]
)
def test_other_yaml_is_refused(tmp_path, text):
    """It names the entry, or the form that is wanted."""
    with pytest.raises(DataError, match=r"labels\.yaml"):
        listed(tmp_path, text, "labels.yaml")


def test_a_file_of_another_kind_is_refused_with_those_that_are_read(tmp_path):
    """A list in a text document is none."""
    with pytest.raises(DataError, match=r"\.csv, \.tsv, \.xlsx, \.yaml"):
        read_label_list(tmp_path / "labels.docx")


def test_listed_labels_are_those_of_the_taxonomy(tmp_path, labels_folder):
    """What a label means is said in one place only."""
    taxonomy, path = read_taxonomy(labels_folder), tmp_path / "few.csv"
    means = taxonomy.find("edema").definition
    path.write_text(f'name,definition\nEdema,"{means}"\n', encoding="utf-8")
    assert pick_listed(path, taxonomy) == ("edema",)
    path.write_text(f"name,definition\nEdema,{MEANS}\n", encoding="utf-8")
    with pytest.raises(DataError, match="edema is defined otherwise"):
        pick_listed(path, taxonomy)
    path.write_text(f"name,definition\nInfarct,{MEANS}\n", encoding="utf-8")
    with pytest.raises(DataError, match="infarct is not in"):
        pick_listed(path, taxonomy)


def test_an_id_is_made_of_what_a_name_says():
    """Marks of a language are spelled out; what has no letters has no id."""
    assert derive_id("Trachea & Bronchus") == "trachea_and_bronchus"
    assert derive_id("Épanchement") == "epanchement"
    assert derive_id("3rd ventricle") == derive_id("—") == ""


def test_the_shipped_taxonomy_is_what_it_was(labels_folder):
    """Its digest stands in ledgers: later fields are in it only where filled."""
    taxonomy: Taxonomy = read_taxonomy(labels_folder)
    assert taxonomy.region == "chest" and taxonomy.derives
    assert taxonomy.digest.startswith("75ba1d655efb")
    assert NO_FINDING in taxonomy.ids


def test_studies_of_another_region_are_left_out_of_chest_tasks_only():
    """A brain MRI is no mistake where the labels are those of a brain MRI."""
    case = SourceCase(where="-", case_id="a", text="No mass.", exam="MRI BRAIN")
    options = ImportOptions(name="x", role="dev")
    assert not list(Screening(options).passed([case]))
    assert list(Screening(options, "any").passed([case]))


def test_a_list_in_gbk_is_read(tmp_path):
    """As Chinese Excel saves it; no option is needed."""
    means = "肺野内可见边界清楚的圆形或类圆形致密影，直径不超过三厘米。"
    path = tmp_path / "labels.csv"
    path.write_bytes(f"id,name,definition\nnodule,肺结节,{means}\n".encode("gbk"))
    made = parse_taxonomy(read_label_list(path), path)
    assert (made.labels[0].name, made.labels[0].definition) == ("肺结节", means)


@pytest.mark.parametrize(
    "data",
    [
        "name,definition\nÖdem,Flüssigkeit\n".encode("latin-1"),
        "name,definition\n气胸,胸膜腔\n".encode() + "气胸,胸膜腔内\n".encode("gbk"),
    ],
)
def test_the_way_out_of_another_encoding_is_one_that_there_is(tmp_path, data):
    """`init` and `cohort votes` have no option for it: saving as UTF-8 always helps."""
    path = tmp_path / "labels.csv"
    path.write_bytes(data)
    with pytest.raises(DataError) as refused:
        read_label_list(path)
    told = str(refused.value)
    assert "Save it as UTF-8" in told
    for verb in re.findall("`([a-z ]+)`", told):
        assert "--encoding" in CliRunner().invoke(app, [*verb.split(), "--help"]).output
    assert "`" in told
