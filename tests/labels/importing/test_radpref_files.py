"""RadPref as published: which errors are serious, of which kind, what is refused."""

import hashlib
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from loop.core.errors import DataError
from loop.labels.expert_ratings import (
    ExpertRating,
    Judgements,
    MarkedError,
    PointScale,
)
from loop.labels.importing.radpref_files import (
    Case,
    FindingError,
    Judged,
    JudgedCase,
    MissingFinding,
    check_raters,
    describe_patient,
    find_cases,
    find_patients,
    find_raters,
    is_radpref,
    open_radpref,
    read_cases,
    read_rater,
)
from loop.labels.importing.source import Source, SourceCase

CASE = {
    "id": "a",
    "ground_truth_report": "Left effusion.",
    "ground_truth_findings": ["left effusion"],
    "C1_report": "No effusion.",
    "C2_report": "Effusion.",
}


@pytest.mark.parametrize(
    ("significance", "serious"),
    [
        ("urgent", True),
        ("actionable_not_urgent", True),
        ("not_actionable_not_urgent", False),
        ("benign_expected", False),
    ],
)
def test_what_asks_for_an_act_is_serious(significance: str, serious: bool) -> None:
    """Of what is said and is not there, as of what is there and not said."""
    false = FindingError(error_type="false", clinical_significance=significance)  # type: ignore[arg-type]
    assert false.serious is serious
    assert false.category == "false_finding"
    missing = MissingFinding(clinical_significance=significance)  # type: ignore[arg-type]
    assert missing.serious is serious


@pytest.mark.parametrize(
    ("attributes", "serious", "category"),
    [
        ({"location": "significant"}, True, "location"),
        ({"location": "negligible"}, False, "location"),
        ({"size": "significant"}, True, "severity"),
        ({"size": "negligible"}, False, "severity"),
        ({"location": "negligible", "size": "significant"}, True, "severity"),
        ({"location": "significant", "size": "negligible"}, True, "location"),
        ({"size": "significant", "location": "significant"}, True, "location"),
        ({"size": "negligible", "location": "negligible"}, False, "location"),
    ],
)
def test_of_several_wrong_attributes_the_significant_one_decides(
    attributes: dict[str, str], serious: bool, category: str
) -> None:
    """Of those that weigh the same, the location; what is false elsewhere is not."""
    for beside in (None, "urgent", "benign_expected"):
        error = FindingError.model_validate(
            {
                "error_type": "attribute",
                "clinical_significance": beside,
                "attributes": attributes,
            }
        )
        assert (error.serious, error.category) == (serious, category)


@pytest.mark.parametrize(
    "data",
    [
        {"error_type": "false"},
        {"error_type": "false", "attributes": {"location": "significant"}},
        {"error_type": "attribute"},
        {"error_type": "attribute", "clinical_significance": "urgent"},
        {"error_type": "other", "clinical_significance": "urgent"},
        {"error_type": "attribute", "attributes": {"size": "huge"}},
    ],
)
def test_an_error_without_its_weight_is_refused(data: dict[str, object]) -> None:
    """It would count as insignificant in silence."""
    with pytest.raises(ValidationError):
        FindingError.model_validate(data)


def test_a_candidate_that_was_only_opened_was_not_judged() -> None:
    """Points or a single mark are a judgement; nothing at all is none."""
    missing = {"x": MissingFinding(clinical_significance="urgent")}
    rated, marked = Judged(rating=1), Judged(missing_findings=missing)
    case = JudgedCase(C1=Judged(), C2=rated)
    assert case.of("C1") is None
    assert case.of("C2") == rated
    assert JudgedCase(C1=marked).of("C1") == marked
    assert JudgedCase(C1=marked).of("C2") is None


@pytest.mark.parametrize(("rating", "known"), [(0, False), (1, True), (5, True)])
def test_points_are_from_one_to_five(rating: int, known: bool) -> None:
    """Six of five would raise a mean beyond its scale."""
    assert Judged(rating=5).rating == 5
    for points, taken in ((rating, known), (6, False)):
        if taken:
            assert Judged(rating=points).rating == points
            continue
        with pytest.raises(ValidationError):
            Judged(rating=points)


def test_the_files_are_found_by_their_published_names(tmp_path: Path) -> None:
    """Either layout; the first name counts where both are there."""
    with pytest.raises(DataError, match="is not a RadPref folder"):
        find_cases(tmp_path)
    with pytest.raises(DataError, match="has no ratings"):
        find_raters(tmp_path)
    for name in ("preference_data.json", "cases.json"):
        (tmp_path / name).write_text("[]")
        assert find_cases(tmp_path) == tmp_path / name
    users = tmp_path / "radiologist_annotations"
    users.mkdir()
    made = [tmp_path / "radiologist_1.json", users / "user_2.json"]
    for path in (*made, users / "other.json", tmp_path / "radiologist.json"):
        path.write_text("{}")
    assert find_raters(tmp_path) == sorted(made)


def test_cases_are_read_by_id_and_each_once(tmp_path: Path) -> None:
    """In the order of their ids; an id may be a text, which no message shows."""
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([{**CASE, "id": name} for name in "ba"]))
    assert [case.id for case in read_cases(path)] == ["a", "b"]
    for name, said in (("b", "case 'b' appears"), ("A small zebra.", "not shown")):
        path.write_text(json.dumps([{**CASE, "id": name}] * 2))
        with pytest.raises(DataError, match=said) as refused:
            read_cases(path)
        assert "zebra" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "a list of cases is needed"),
        ("{}", "a list of cases is needed"),
        ("[1]", "case 1: field"),
        (json.dumps([CASE, {**CASE, "C1_report": 3}]), "case 2: field C1_report"),
        (json.dumps([{**CASE, "id": ""}]), "case 1: field id"),
        ("[{", "line 1: not JSON"),
        ('[\n{"zebra"', "line 2: not JSON"),
        ('[{"id": "zebra", "id": "b"}]', "appears twice in one object"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_file_of_cases_that_is_none_says_where(
    tmp_path: Path, text: str, said: str
) -> None:
    """And nothing of what it holds."""
    path = tmp_path / "cases.json"
    path.write_text(text)
    with pytest.raises(DataError, match=said) as refused:
        read_cases(path)
    assert "zebra" not in str(refused.value)
    with pytest.raises(DataError, match="cannot read"):
        read_cases(tmp_path / "none.json")


def test_two_files_of_one_rater_are_refused(tmp_path: Path) -> None:
    """Their marks would be counted twice."""
    check_raters(tmp_path, ["1", "2", "12"])
    with pytest.raises(DataError, match="hold the ratings of user '2'"):
        check_raters(tmp_path, ["1", "2", "2"])
    path = tmp_path / "radiologist_1.json"
    path.write_text(json.dumps({"user_id": 7, "annotations": {}}))
    assert read_rater(path).user_id == 7
    path.write_text(json.dumps({"annotations": {"zebra": {"C1": {"rating": 9}}}}))
    with pytest.raises(DataError, match="the file: field"):
        read_rater(path)


def opened(folder: Path, case: dict[str, object], said: dict[str, object]) -> Source:
    """Write a folder of one case and one rater, and return it as a source."""
    (folder / "cases.json").write_text(json.dumps([{**CASE, **case}]))
    rater = {"user_id": 1, "annotations": {str(case["id"]): {"C1": said}}}
    (folder / "radiologist_1.json").write_text(json.dumps(rater))
    return open_radpref(folder)


def test_where_a_pair_stands_is_said_without_its_text(tmp_path: Path) -> None:
    """Whatever is wrong with a pair is told with its place; an id may be a report."""
    for case_id, where in (
        ("a1", "cases.json, case 'a1', C1"),
        ("A small zebra.", "cases.json, case (14 characters, not shown), C1"),
    ):
        source = opened(tmp_path, {"id": case_id}, {"rating": 1})
        assert next(iter(source.cases)).where == where


@pytest.mark.parametrize(
    ("index", "finding"),
    [
        *(("0", "one"), ("1", "two"), ("01", "two"), ("2", ""), ("-1", "")),
        *(("new", ""), ("", ""), ("²", ""), ("\u0660", ""), ("9" * 5000, "")),
    ],
)
def test_the_words_of_a_finding_are_those_that_its_number_names(
    tmp_path: Path, index: str, finding: str
) -> None:
    """What a rater added has a key of another kind; it is an error without words."""
    missing = {index: {"clinical_significance": "urgent"}}
    case = {"id": "a", "ground_truth_findings": ["one", "two"]}
    source = opened(tmp_path, case, {"missing_findings": missing})
    assert source.judgements is not None
    (error,) = source.judgements.errors
    assert (error.category, error.finding) == ("omission", finding)


PATIENT = "pGRDN7_a12_s1.2"


def _folder(tmp_path: Path, *sources: tuple[str, str], first: str = PATIENT) -> Path:
    """Write two cases of two candidates, and what a rater says of the first."""
    cases = [
        CASE
        | {
            "id": name,
            "ground_truth_report": " Left effusion. ",
            "C2_report": " ",
            "C1_source": one,
            "C2_source": two,
        }
        for name, (one, two) in zip(("zz", first), sources, strict=True)
    ]
    cases[1] |= {"PatientAge": "007M", "PatientSex": "F", "Indication": " Cough. "}
    said = {
        "C1": {"rating": 5},
        "C2": {
            "missing_findings": {
                "0": {"clinical_significance": "urgent"},
                "1": {"clinical_significance": "benign_expected"},
            }
        },
    }
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    for number, told in (("2", {}), ("1", {first: said, "gone": said})):
        data = {"user_id": int(number), "annotations": told}
        (tmp_path / f"radiologist_{number}.json").write_text(json.dumps(data))
    return tmp_path


def test_a_folder_is_read_as_pairs_with_what_raters_say(tmp_path: Path) -> None:
    """Each candidate by its case and slot, in the order of ids; all of it."""
    assert not is_radpref(tmp_path)
    folder = _folder(tmp_path, ("gpt", "gemma"), ("gpt", "gemma"))
    assert is_radpref(folder)
    found = open_radpref(folder)
    pair = {"reference": "Left effusion.", "context": ""}
    known = "Age: 7 months\nSex: F\nIndication: Cough."
    assert list(found.cases) == [
        SourceCase(
            where=f"cases.json, case '{name}', {slot}",
            case_id=f"{name}-{slot}",
            text="",
            pair=pair | {"candidate": text, "context": context},
            system=system,
            reference_id=name,
            language="en",
        )
        for name, context in ((PATIENT, known), ("zz", ""))
        for slot, text, system in (("C1", "No effusion.", "gpt"), ("C2", "", "gemma"))
    ]
    assert found.judgements == Judgements(
        (ExpertRating(f"{PATIENT}-C1", "1", "overall", 5.0, PointScale(1, 5)),),
        (
            MarkedError(f"{PATIENT}-C1", "1"),
            MarkedError(
                *(f"{PATIENT}-C2", "1", "omission", "significant", "left effusion")
            ),
            MarkedError(f"{PATIENT}-C2", "1", "omission", "insignificant", ""),
        ),
    )
    assert (found.inputs, found.format) == (
        ("reference", "candidate", "context"),
        "radpref",
    )
    names = ["cases.json", "radiologist_1.json", "radiologist_2.json"]
    assert found.files == tuple(
        (name, hashlib.sha256((folder / name).read_bytes()).hexdigest())
        for name in names
    )


@pytest.mark.parametrize(
    ("sources", "systems"),
    [
        ((("gpt", "gemma"), ("gemma", "gpt")), ["gemma", "gpt", "gpt", "gemma"]),
        ((("gpt", "gemma"), ("gpt", "gpt")), ["C1", "C2"] * 2),
        ((("gpt", ""), ("gpt", "gemma")), ["C1", "C2"] * 2),
        ((("", "gpt"), ("gpt", "gemma")), ["C1", "C2"] * 2),
    ],
)
def test_a_writer_is_the_system_where_it_tells_two_apart(
    tmp_path: Path, sources: tuple[tuple[str, str], ...], systems: list[str]
) -> None:
    """In every case; else the slot is."""
    found = open_radpref(_folder(tmp_path, *sources))
    assert [one.system for one in found.cases] == systems


@pytest.mark.parametrize(
    ("ids", "patients"),
    [
        ((PATIENT, "pGRDX_aB_s1"), {PATIENT: "pGRDN7", "pGRDX_aB_s1": "pGRDX"}),
        ((PATIENT, "zz"), None),
        (("pGRD_a1_s1",), None),
        ((f"{PATIENT}x",), None),
    ],
)
def test_patients_are_known_only_where_every_id_names_one(
    ids: tuple[str, ...], patients: dict[str, str] | None
) -> None:
    """Else half of a cohort would look as if nobody was there twice."""
    assert find_patients([Case(**CASE | {"id": one}) for one in ids]) == patients


def test_cases_of_named_patients_name_them(tmp_path: Path) -> None:
    """Both candidates of a case are of one."""
    folder = _folder(tmp_path, ("gpt", "gemma"), ("gpt", "gemma"))
    path = folder / "cases.json"
    path.write_text(path.read_text().replace('"zz"', '"pGRDX_aB_s1"'))
    found = [(one.case_id, one.patient) for one in open_radpref(folder).cases]
    assert found == [
        (f"{PATIENT}-C1", "pGRDN7"),
        (f"{PATIENT}-C2", "pGRDN7"),
        ("pGRDX_aB_s1-C1", "pGRDX"),
        ("pGRDX_aB_s1-C2", "pGRDX"),
    ]


@pytest.mark.parametrize(
    ("age", "told"),
    [
        ("072Y", "Age: 72 years"),
        ("000D", "Age: 0 days"),
        ("3W", "Age: 3 weeks"),
        (" 10M ", "Age: 10 months"),
        ("about 40", "Age: about 40"),
        ("40X", "Age: 40X"),
        ("", ""),
        (None, ""),
    ],
)
def test_an_age_is_told_in_words(age: str | None, told: str) -> None:
    """As it stands where it is in no known form."""
    assert describe_patient(Case(**CASE | {"PatientAge": age})) == told
