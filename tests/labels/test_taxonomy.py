"""The taxonomy: 21 labels, found under every published spelling; No Finding derived."""

from pathlib import Path

import pytest

from loop.core.digests import digest_json
from loop.core.errors import DataError, UnknownLabelError
from loop.core.records import Value
from loop.labels.taxonomy import (
    NO_FINDING,
    NoFindingPolicy,
    Taxonomy,
    parse_taxonomy,
    read_taxonomy,
)

P, A, U = Value.PRESENT, Value.ABSENT, Value.UNCERTAIN


def _values(taxonomy: Taxonomy, **other: Value) -> dict[str, Value]:
    return {**dict.fromkeys(taxonomy.extracted, A), **other}


def test_there_are_21_labels_in_published_order(taxonomy: Taxonomy) -> None:
    """Tables are printed in this order; 20 labels are asked, one is derived."""
    assert len(taxonomy.ids) == 21
    assert taxonomy.ids[0] == "atelectasis"
    assert taxonomy.ids[7] == "no_finding"
    assert taxonomy.ids[-1] == "pulmonary_vascular_abnormal"
    assert set(taxonomy.ids) - set(taxonomy.extracted) == {"no_finding"}


def test_fourteen_labels_compare_with_chexpert(taxonomy: Taxonomy) -> None:
    """The first 14 are CheXpert's, the last seven have no counterpart."""
    assert taxonomy.comparable == taxonomy.ids[:14]


def test_every_label_says_what_counts_and_what_does_not(taxonomy: Taxonomy) -> None:
    """A definition that is missing or an essay helps no reader."""
    for label in taxonomy.labels:
        assert 20 < len(label.definition) < 150, label.id
        assert 1 <= label.definition.count(".") <= 2, label.id
        if label.id != NO_FINDING:
            assert label.counts and label.does_not_count, label.id
    assert len(taxonomy.reading) >= 8


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Pleural Effusion", "pleural_effusion"),
        ("pleural-effusion", "pleural_effusion"),
        ("Calcification", "calcification"),
        ("calcification(lung and mediastinal)", "calcification"),
        ("Calcification (Lung/Mediastinal)", "calcification"),
        ("Trachea and bronchus", "trachea_bronchus"),
        ("trachea & bronchus", "trachea_bronchus"),
        ("cavity and cyst", "cavity_cyst"),
        ("Pulmonary Vascular Abnormality", "pulmonary_vascular_abnormal"),
        ("PULMONARY EDEMA", "edema"),
    ],
)
def test_a_label_is_found_under_every_published_spelling(
    taxonomy: Taxonomy, name: str, label: str
) -> None:
    """Label files spell the same label in several ways."""
    assert taxonomy.find(name).id == label


def test_a_calcified_granuloma_alone_is_an_uncertain_lesion(taxonomy: Taxonomy) -> None:
    """The published task counts it under Calcification and does not call it absent."""
    assert "calcified granuloma" in taxonomy.find("lung_lesion").uncertain_when
    assert "calcified granuloma or nodule" in taxonomy.find("calcification").counts


def test_an_unknown_label_names_the_closest_one(taxonomy: Taxonomy) -> None:
    """The way out of a typing error is the right spelling."""
    with pytest.raises(UnknownLabelError, match="Did you mean 'Pneumothorax'"):
        taxonomy.find("Pneumothroax")


def test_a_name_like_nothing_lists_the_known_ones(taxonomy: Taxonomy) -> None:
    """Without a near match the message still says what would be right."""
    for name in ("q" * 500, "Pleural", "Lung"):
        with pytest.raises(UnknownLabelError, match="Known: atelectasis"):
            taxonomy.find(name)


@pytest.mark.parametrize(
    ("other", "ran", "chexpert"),
    [
        ({}, P, P),
        ({"edema": P}, A, A),
        ({"edema": U}, A, A),
        ({"support_devices": P}, A, P),
        ({"support_devices": U}, A, P),
        ({"support_devices": P, "edema": U}, A, A),
    ],
)
def test_no_finding_follows_the_policy(
    taxonomy: Taxonomy, other: dict[str, Value], ran: Value, chexpert: Value
) -> None:
    """Present if and only if all others are absent; only devices divide the two."""
    values = _values(taxonomy, **other)
    assert taxonomy.derive_no_finding(values, NoFindingPolicy.RAN) is ran
    assert taxonomy.derive_no_finding(values, NoFindingPolicy.CHEXPERT) is chexpert


def test_the_shipped_policy_is_ran(taxonomy: Taxonomy) -> None:
    """The default decides what every signature says."""
    assert taxonomy.derive_no_finding(_values(taxonomy, support_devices=P)) is A


def test_an_incomplete_answer_derives_nothing(taxonomy: Taxonomy) -> None:
    """A label without an answer is not absent."""
    values = _values(taxonomy, edema=P)
    del values["fracture"]
    assert taxonomy.derive_no_finding(values) is None


def test_a_predicted_no_finding_is_ignored(taxonomy: Taxonomy) -> None:
    """It is derived from the others, never asked."""
    assert taxonomy.derive_no_finding(_values(taxonomy, no_finding=A)) is P


@pytest.mark.parametrize(
    ("policy", "contradicted"),
    [("ran", ("edema", "support_devices")), ("chexpert", ("edema",))],
)
def test_a_present_no_finding_leaves_no_room_for_others(
    labels_folder: Path, tmp_path: Path, policy: str, contradicted: tuple[str, ...]
) -> None:
    """Of the labels that the policy looks at; also where answers are missing."""
    old, new = "no_finding_policy: ran", f"no_finding_policy: {policy}"
    taxonomy = read_taxonomy(_edited(labels_folder, tmp_path, old, new))
    given = {"no_finding": P, "edema": U, "support_devices": P, "fracture": A}
    assert taxonomy.contradict_no_finding(given) == contradicted
    for said in (A, U):
        assert taxonomy.contradict_no_finding({**given, "no_finding": said}) == ()
    assert taxonomy.contradict_no_finding({"edema": P}) == ()


def _edited(labels_folder: Path, tmp_path: Path, old: str, new: str) -> Path:
    text = (labels_folder / "taxonomy.yaml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "taxonomy.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    return tmp_path


def test_two_labels_of_one_name_are_refused(
    labels_folder: Path, tmp_path: Path
) -> None:
    """A file could not say which of them it means."""
    folder = _edited(labels_folder, tmp_path, "name: Edema", "name: Pneumonia")
    with pytest.raises(DataError, match="both called 'pneumonia'"):
        read_taxonomy(folder)


def test_a_label_that_stands_there_twice_is_refused(
    labels_folder: Path, tmp_path: Path
) -> None:
    """Of two definitions nobody knows which one was meant."""
    text = (labels_folder / "taxonomy.yaml").read_text(encoding="utf-8")
    entry = text[text.index("- id: edema") :].split("\n- id: ")[0]
    (tmp_path / "taxonomy.yaml").write_text(f"{text}\n{entry}\n", encoding="utf-8")
    with pytest.raises(DataError, match="label 'edema' appears twice"):
        read_taxonomy(tmp_path)


SMALL = """\
version: 1
labels:
- id: edema
  name: Edema
  definition: {definition}
"""


@pytest.mark.parametrize(("length", "enough"), [(20, True), (19, False)])
def test_a_definition_has_twenty_characters_at_least(length: int, enough: bool) -> None:
    """Fewer say nothing that the name does not."""
    text = SMALL.format(definition="x" * length)
    if enough:
        assert parse_taxonomy(text, "here").ids == ("edema",)
    else:
        with pytest.raises(DataError, match="definition"):
            parse_taxonomy(text, "here")


def test_what_was_there_before_a_field_came_keeps_its_digest() -> None:
    """Every run names the digest of its taxonomy."""
    plain = SMALL.format(definition="Fluid in the lungs, seen.")
    digest = parse_taxonomy(plain, "here").digest
    for same in ("region: chest\n", "reading: []\n"):
        assert parse_taxonomy(same + plain, "here").digest == digest
    assert parse_taxonomy(f"{plain}  counts: []\n", "here").digest == digest
    for other in ("region: any\n", "reading: [Read it.]\n"):
        assert parse_taxonomy(other + plain, "here").digest != digest
    assert parse_taxonomy(f"{plain}  counts: [x]\n", "here").digest != digest


def test_a_changed_definition_changes_the_digest(
    taxonomy: Taxonomy, labels_folder: Path, tmp_path: Path
) -> None:
    """Results name the taxonomy they were made with."""
    folder = _edited(labels_folder, tmp_path, "A broken bone", "A cracked bone")
    assert read_taxonomy(folder).digest != taxonomy.digest


def test_an_unknown_policy_is_refused(labels_folder: Path, tmp_path: Path) -> None:
    """The message names the field."""
    folder = _edited(labels_folder, tmp_path, "policy: ran", "policy: maybe")
    with pytest.raises(DataError, match="no_finding_policy"):
        read_taxonomy(folder)


def test_a_digest_is_of_what_the_file_says_and_of_no_empty_list() -> None:
    """Ledgers hold it: fields that came later are in it only where they are used."""
    plain = SMALL.format(definition="Fluid in the lungs, seen.")
    label = {
        "id": "edema",
        "name": "Edema",
        "group": "",
        "definition": "Fluid in the lungs, seen.",
        "chexpert": None,
        "aliases": [],
    }
    data = {"version": 1, "no_finding_policy": "ran", "labels": [label]}
    assert parse_taxonomy(plain, "here").digest == digest_json(data)
    lists = {"counts": ["x"], "does_not_count": ["y"], "uncertain_when": ["z"]}
    full = f"region: any\nreading: [Read it.]\n{plain}" + "".join(
        f"  {name}: {words}\n" for name, words in lists.items()
    )
    data = data | {
        "region": "any",
        "reading": ["Read it."],
        "labels": [label | lists],
    }
    assert parse_taxonomy(full, "here").digest == digest_json(data)


def test_a_no_finding_that_was_read_stands_and_else_follows(taxonomy: Taxonomy) -> None:
    """Of an incomplete answer nothing follows; what was read is not looked into."""
    values = _values(taxonomy)
    assert taxonomy.find_no_finding(values) is P
    assert taxonomy.find_no_finding(values | {NO_FINDING: U}) is U
    assert taxonomy.find_no_finding(values | {"edema": P}) is A
    assert taxonomy.find_no_finding({"edema": A}) is None
    assert taxonomy.find_no_finding({NO_FINDING: A}) is A


def test_without_the_label_no_finding_follows_from_nothing() -> None:
    """A task of one label has none; the label itself decides it elsewhere."""
    small = parse_taxonomy(SMALL.format(definition="Fluid in the lungs, seen."), "x")
    assert (small.derives, small.extracted, small.deciding) == (
        False,
        ("edema",),
        ("edema",),
    )
    assert small.derive_no_finding({"edema": A}) is None
    assert small.find_no_finding({"edema": A}) is None
    assert (small.region, small.reading, small.comparable) == ("chest", (), ())


@pytest.mark.parametrize(
    ("name", "known"),
    [("Edema", True), ("EDE_MA", True), ("edemata", False), ("", False)],
)
def test_a_name_is_known_if_it_can_be_found(
    taxonomy: Taxonomy, name: str, known: bool
) -> None:
    """Nothing near it will do."""
    assert taxonomy.knows(name) is known


def test_the_nearest_name_is_suggested_where_it_is_near_enough(
    taxonomy: Taxonomy,
) -> None:
    """As it was published, not as it was folded."""
    assert taxonomy.suggest("pleural effusions") == "Pleural Effusion"
    assert taxonomy.suggest("Pneumothroax") == "Pneumothorax"
    assert taxonomy.suggest("Pneumothroax", cutoff=1.0) is None
    assert taxonomy.suggest("pulmonary oedema") == taxonomy.find("edema").name
    assert taxonomy.suggest("remark") is None
