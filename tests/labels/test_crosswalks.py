"""Crosswalks are data: CheXpert's 14, and the MeSH rules of the Open-i collection."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths
from loop.core.records import Mark
from loop.labels.importing.importer import ImportReport
from loop.labels.importing.openi import (
    Condition,
    MeshCrosswalk,
    MeshRule,
    read_mesh_crosswalk,
)
from loop.labels.reference import MARKS, read_reference
from loop.labels.taxonomy import Taxonomy

P, U, N = Mark.PRESENT, Mark.UNCERTAIN, Mark.NOT_CODED


@pytest.fixture
def crosswalk(labels_folder: Path, taxonomy: Taxonomy) -> MeshCrosswalk:
    """Return the shipped MeSH crosswalk."""
    return read_mesh_crosswalk(labels_folder, taxonomy)


def _coded(crosswalk: MeshCrosswalk, mesh: str) -> dict[str, Mark]:
    return {k: m for k, m in crosswalk.marks(mesh).items() if m is not N}


def test_all_62_rules_are_there(crosswalk: MeshCrosswalk) -> None:
    """The rules are numbered without gaps."""
    ids = {rule.id for rules in crosswalk.rules.values() for rule in rules}
    assert ids == set(range(1, 63))


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        ("normal", {"no_finding": P}),
        ("No Indexing", {}),
        ("", {}),
        ("Cardiomegaly/borderline", {"cardiomegaly": U}),
        ("Cardiomegaly/mild;Cardiomegaly/borderline", {"cardiomegaly": P}),
        (
            "Nodule/pleura",
            {"lung_lesion": P, "pleural_other": P},
        ),
        ("Bullous Emphysema/lung", {"emphysema": P, "cavity_cyst": P}),
        ("Calcinosis", {}),
        ("Calcinosis/aorta, thoracic", {"calcification": P}),
        ("Calcinosis/ribs", {}),
        ("Calcinosis/pleura", {"pleural_other": P}),
        ("Cicatrix/lung/upper lobe", {}),
        ("Cicatrix/pleura", {"pleural_other": P}),
        ("Trachea, Carina", {"mediastinal_other": P}),
        ("Trachea", {"trachea_bronchus": P}),
        ("trachea", {}),
        ("Opacity", {"lung_opacity": P}),
        ("Opacity/retrocardiac", {"lung_opacity": P}),
        ("Opacity/base", {"lung_opacity": U}),
        ("Opacity/lung/pleura/round", {"lung_lesion": U}),
        ("Mass/mediastinum", {"mediastinal_other": P}),
        ("Mass/mediastinum/lung", {"lung_lesion": P}),
        ("Mass/shoulder", {}),
        (
            "Lung/hilum/enlarged",
            {"pulmonary_vascular_abnormal": U, "mediastinal_other": U},
        ),
        ("Lung/hilum/lymph nodes/enlarged", {"mediastinal_other": P}),
        (
            " Pneumonia / lung ; Heart Failure",
            {
                "pneumonia": P,
                "lung_opacity": U,
                "edema": U,
                "pulmonary_vascular_abnormal": U,
            },
        ),
    ],
)
def test_a_tag_maps_as_documented(
    crosswalk: MeshCrosswalk, mesh: str, expected: dict[str, Mark]
) -> None:
    """Rules are not exclusive, present beats uncertain, prefixes and case matter."""
    assert _coded(crosswalk, mesh) == expected


def test_what_the_codes_cannot_judge_is_said(crosswalk: MeshCrosswalk) -> None:
    """A normal report by the coders is none by the 21 labels."""
    assert [*crosswalk.not_comparable] == ["no_finding"]
    assert "scoliosis" in crosswalk.not_comparable["no_finding"]


def test_what_is_not_coded_is_weaker_than_absent(crosswalk: MeshCrosswalk) -> None:
    """Nobody looked for it: it is never recorded as absent."""
    assert Mark.ABSENT not in crosswalk.marks("Pneumonia/lung").values()


def test_a_label_that_no_rule_is_about_is_unknown_and_never_absent(
    workspace: WorkspacePaths, take: Callable[..., ImportReport], write_csv
) -> None:
    """Scoliosis is coded, and a taxonomy that got the label knew nothing of it."""
    path = workspace.labels / "taxonomy.yaml"
    added = [
        "- id: scoliosis",
        "  name: Scoliosis",
        "  group: bone",
        "  definition: A sideways curve of the spine, stated or measured.",
        "  chexpert:",
    ]
    path.write_text(path.read_text("utf-8") + "\n".join(added) + "\n", "utf-8")
    rows = [
        ["uid", "MeSH", "findings", "impression"],
        ["1", "Scoliosis/thoracic vertebrae", "Curved spine.", ""],
        ["2", "normal", "Nothing.", ""],
    ]
    report = take(write_csv(rows))
    assert report.unknown == ("scoliosis",)
    reference = read_reference(workspace, "mine")
    assert "scoliosis" not in reference.labels
    assert reference.mark("1", "edema") is Mark.NOT_CODED


@pytest.mark.data
@pytest.mark.parametrize(("part", "cases"), [("dev", 300), ("test", 1348)])
def test_the_label_files_are_reproduced_exactly(
    workspace: WorkspacePaths,
    take: Callable[..., object],
    taxonomy: Taxonomy,
    data_folder: Path,
    part: str,
    cases: int,
) -> None:
    """Zero differences in all cells, through the whole import."""
    take(data_folder / "openi" / f"reports_{part}.csv", part, role="external")
    reference = read_reference(workspace, part)
    codes = {"1": P, "-1": U, "0": N}
    with (data_folder / "openi" / f"labels_{part}.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = {
        case: dict(zip(reference.labels, row, strict=True))
        for case, row in zip(reference.case_ids, reference.marks.tolist(), strict=True)
    }
    differences = [
        (row["uid"], name)
        for row in rows
        for name, cell in row.items()
        if name != "uid"
        and MARKS[found[row["uid"]][taxonomy.find(name).id]] is not codes[cell]
    ]
    assert len(rows) == len(reference.case_ids) == cases
    assert differences == []


def test_a_rule_with_an_unknown_label_is_refused(
    labels_folder: Path, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """A typing error must not make a label disappear."""
    text = (labels_folder / "crosswalks" / "openi_mesh.yaml").read_text("utf-8")
    (tmp_path / "crosswalks").mkdir()
    path = tmp_path / "crosswalks" / "openi_mesh.yaml"
    path.write_text(text.replace("[atelectasis]", "[atelectases]", 1), "utf-8")
    with pytest.raises(DataError, match="rule 2: no label 'atelectases'"):
        read_mesh_crosswalk(tmp_path, taxonomy)


@pytest.mark.parametrize(
    "own", ["all: [lung]", "any: [lung]", "none: [lung]", "qualified: true"]
)
def test_a_rule_with_alternatives_has_no_condition_beside_them(
    labels_folder: Path, tmp_path: Path, taxonomy: Taxonomy, own: str
) -> None:
    """The condition would be passed over, and the label given where it must not be."""
    text = (labels_folder / "crosswalks" / "openi_mesh.yaml").read_text("utf-8")
    (tmp_path / "crosswalks").mkdir()
    path = tmp_path / "crosswalks" / "openi_mesh.yaml"
    assert "  when:\n" in text
    path.write_text(text.replace("  when:\n", f"  {own}\n  when:\n", 1), "utf-8")
    with pytest.raises(DataError, match="both `when` and a condition of its own"):
        read_mesh_crosswalk(tmp_path, taxonomy)


def _crosswalk_of(**condition: object) -> MeshCrosswalk:
    """Return a crosswalk of one rule on the heading ``Opacity``."""
    rule = MeshRule(id=1, headings=("Opacity",), present=("lung_opacity",), **condition)
    return MeshCrosswalk(
        labels=("lung_opacity", "edema"),
        sites={"lung": ("lung", "lobe"), "base": ("base",)},
        rules={"Opacity": (rule,)},
    )


@pytest.mark.parametrize(
    ("condition", "fires", "silent"),
    [
        ({}, ["Opacity", "Opacity/mild", "x;Opacity"], ["opacity", "x", ""]),
        ({"qualified": True}, ["Opacity/mild"], ["Opacity"]),
        ({"qualified": False}, ["Opacity"], ["Opacity/mild"]),
        (
            {"all": ("lung", "base")},
            ["Opacity/lung/base", "Opacity / base / lobe, left", "Opacity/lungs/bases"],
            ["Opacity/lung", "Opacity/base", "Opacity", "Opacity/lung;Opacity/base"],
        ),
        (
            {"any": ("lung", "mild")},
            ["Opacity/lobe", "Opacity/mild", "Opacity/x/mild"],
            ["Opacity", "Opacity/base", "Opacity/the lung"],
        ),
        (
            {"none": ("lung", "mild")},
            ["Opacity", "Opacity/base"],
            ["Opacity/lobe", "Opacity/base/mild"],
        ),
        (
            {"all": ("base",), "none": ("lung",)},
            ["Opacity/base"],
            ["Opacity/base/lung", "Opacity", "Opacity/lung"],
        ),
        (
            {"when": (Condition(all=("base",)), Condition(qualified=False))},
            ["Opacity", "Opacity/base", "Opacity/x;Opacity"],
            ["Opacity/x"],
        ),
    ],
)
def test_a_rule_fires_where_all_of_its_condition_holds_of_one_tag(
    condition: dict[str, object], fires: list[str], silent: list[str]
) -> None:
    """Qualifiers begin with the site; those of another tag do not help."""
    crosswalk = _crosswalk_of(**condition)
    for mesh in fires:
        assert crosswalk.marks(mesh) == {"lung_opacity": P, "edema": N}, mesh
        assert len(crosswalk.fired(mesh)) == 1
    for mesh in silent:
        assert crosswalk.marks(mesh) == {"lung_opacity": N, "edema": N}, mesh
        assert crosswalk.fired(mesh) == ()


@pytest.mark.parametrize("mesh", ["A;B", "B;A", "A;B;B"])
def test_present_outweighs_uncertain_whichever_comes_first(mesh: str) -> None:
    """And uncertain outweighs that nothing was coded."""
    sure = MeshRule(id=1, headings=("A",), present=("edema",), uncertain=("fracture",))
    open_one = MeshRule(id=2, headings=("B",), uncertain=("edema", "fracture"))
    crosswalk = MeshCrosswalk(
        labels=("edema", "fracture", "lung_lesion"),
        sites={},
        rules={"A": (sure,), "B": (open_one,)},
    )
    assert crosswalk.marks(mesh) == {"edema": P, "fracture": U, "lung_lesion": N}
    assert crosswalk.marks("B")["edema"] is U
    assert [rule.id for rule in crosswalk.fired("B;A")] == [2, 1]
