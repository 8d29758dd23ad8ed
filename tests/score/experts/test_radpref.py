"""RadPref: who wrote what, how it was rated, and which errors count as what."""

import json

import numpy as np
import pytest

from loop.core.errors import DataError
from loop.score.experts.radpref import read_radpref
from tests.score.experts.radpref_folder import candidate, case, write_folder

CASES = [case("two", 3, ("medgemma", "gpt")), case("one", 2)]
ANN = {
    "one": {"C1": candidate(5), "C2": candidate(2, missing={0: "urgent"})},
    "two": {
        "C1": candidate(
            1,
            false=["actionable_not_urgent", "benign_expected"],
            missing={1: "not_actionable_not_urgent"},
            attributes=[["significant", "negligible"], ["negligible"]],
        ),
        "C2": candidate(4, missing={0: "benign_expected", 1: "urgent"}),
    },
}
BEN = {"one": {"C1": candidate(4)}}


def test_candidates_are_named_by_the_model_that_wrote_them(tmp_path):
    """C1 is one model in this case and the other one in the next."""
    found = read_radpref(write_folder(tmp_path, CASES, {1: ANN, 2: BEN}))
    assert found.references == {"one": "Reference one.", "two": "Reference two."}
    assert found.candidates == {
        "gpt": {"one": "First one.", "two": "Second two."},
        "medgemma": {"one": "Second one.", "two": "First two."},
    }
    assert found.ratings.keys == (
        ("one", "gpt"),
        ("one", "medgemma"),
        ("two", "gpt"),
        ("two", "medgemma"),
    )
    nan = np.nan
    expected = [[5, 4], [2, nan], [4, nan], [1, nan]]
    np.testing.assert_array_equal(found.ratings.scores, expected)


def test_errors_become_matched_significant_and_insignificant(tmp_path):
    """Significant: urgent or actionable, or an attribute error with such a value."""
    found = read_radpref(write_folder(tmp_path, CASES, {1: ANN, 2: BEN}))
    assert found.counts[:, 0].tolist() == [[2, 0, 0], [1, 1, 0], [1, 1, 1], [0, 2, 3]]
    assert np.isnan(found.counts[1:, 1]).all()


def test_errors_have_the_category_of_their_kind(tmp_path):
    """A wrong attribute is of location or of severity, by what is wrong most."""
    found = read_radpref(write_folder(tmp_path, CASES, {1: ANN, 2: BEN}))
    assert found.errors.categories == (
        "false_finding",
        "omission",
        "location",
        "severity",
    )
    assert found.errors.counts[3, 0].tolist() == [[1, 1], [0, 1], [0, 0], [1, 1]]
    assert np.isnan(found.errors.counts[1:, 1]).all()
    kinds = [
        {"location": "negligible", "severity": "significant"},
        {"location": "significant", "temporal": "significant"},
        {"location": "negligible"},
        {"measurement": "negligible"},
    ]
    said = candidate(1)
    said["finding_errors"] = {
        str(at): {"error_type": "attribute", "attributes": one}
        for at, one in enumerate(kinds)
    }
    folder = write_folder(tmp_path / "b", [case("one", 4)], {1: {"one": {"C1": said}}})
    counts = read_radpref(folder).errors.counts[0, 0]
    assert counts.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]


def test_matched_findings_are_never_below_zero(tmp_path):
    """A rater may mark more findings than the reference has."""
    rated = {"one": {"C1": candidate(1, attributes=[["significant"]] * 3)}}
    found = read_radpref(write_folder(tmp_path, [case("one", 1)], {1: rated}))
    assert found.counts[0, 0].tolist() == [0, 3, 0]


def test_both_names_of_the_files_are_read_alike(tmp_path):
    """As published, and as they are often copied."""
    plain = read_radpref(write_folder(tmp_path / "a", CASES, {1: ANN, 2: BEN}))
    other = read_radpref(
        write_folder(tmp_path / "b", CASES[::-1], {1: ANN, 2: BEN}, published=True)
    )
    assert (other.references, other.candidates) == (plain.references, plain.candidates)
    np.testing.assert_array_equal(other.counts, plain.counts)


def test_two_texts_of_one_model_are_told_apart_by_place(tmp_path):
    """Where the writer does not tell the candidates apart, no case is named by it."""
    cases = [case("one", 1), case("two", 1, ("gpt", "gpt"))]
    found = read_radpref(write_folder(tmp_path, cases, {1: ANN}))
    assert set(found.candidates) == {"C1", "C2"}


def test_patients_are_known_only_where_every_id_names_one(tmp_path):
    """Ids as in ReXGradient begin with the patient."""
    names = ["pGRDN1_aGRDN2_s1.2", "pGRDN1_aGRDN3_s1.3"]
    cases = [case(name, 1) for name in names]
    rated = {name: {"C1": candidate(3)} for name in names}
    found = read_radpref(write_folder(tmp_path / "a", cases, {1: rated}))
    assert found.patients == dict.fromkeys(names, "pGRDN1")
    found = read_radpref(write_folder(tmp_path / "b", [*cases, CASES[0]], {1: rated}))
    assert found.patients is None


def test_a_folder_without_its_files_is_refused(tmp_path):
    """The message says which files are needed."""
    with pytest.raises(DataError, match=r"neither cases.json nor preference_data"):
        read_radpref(tmp_path)
    (tmp_path / "cases.json").write_text("[]")
    with pytest.raises(DataError, match=r"no ratings. Put radiologist_1.json"):
        read_radpref(tmp_path)
    (tmp_path / "radiologist_1.json").write_text("{}")
    with pytest.raises(DataError, match="a list of cases is needed"):
        read_radpref(tmp_path)


def test_a_wrong_field_is_named_and_never_quoted(tmp_path):
    """What stands in the file may be the text of a case."""
    broken = {**CASES[0], "C1_report": ["secret words"]}
    with pytest.raises(DataError, match=r"case 1: field C1_report") as raised:
        read_radpref(write_folder(tmp_path, [broken], {1: ANN}))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("text", ["[{]", "\xff", "[" * 100_000])
def test_what_is_no_json_is_refused(tmp_path, text):
    """A cut download, another encoding, or an attack on the parser."""
    folder = write_folder(tmp_path, CASES, {1: ANN})
    (folder / "cases.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match="not JSON"):
        read_radpref(folder)


def test_ratings_off_the_scale_are_refused(tmp_path):
    """Points go from 1 to 5."""
    rated = {"one": {"C1": candidate(6)}}
    with pytest.raises(DataError, match=r"field annotations.one.C1.rating"):
        read_radpref(write_folder(tmp_path, CASES, {1: rated}))


@pytest.mark.parametrize(
    "rated",
    [
        candidate(3, missing={0: "grave"}),
        candidate(3, false=["grave"]),
        candidate(3, false=[None]),
        candidate(3, attributes=[["grave"]]),
        candidate(3, attributes=[[]]),
    ],
)
def test_an_error_of_unknown_weight_is_refused(tmp_path, rated):
    """It would otherwise count as insignificant in silence."""
    with pytest.raises(DataError, match=r"field annotations\.one\.C1\."):
        read_radpref(write_folder(tmp_path, CASES, {1: {"one": {"C1": rated}}}))


def test_a_candidate_that_was_opened_only_is_not_without_an_error(tmp_path):
    """Neither points nor a mark: nobody judged it."""
    rated = {"one": {"C1": candidate(None), "C2": candidate(5)}}
    found = read_radpref(write_folder(tmp_path, [case("one", 2)], {1: rated}))
    assert np.isnan(found.counts[0, 0]).all()
    assert found.counts[1, 0].tolist() == [2, 0, 0]


def test_findings_that_a_rater_added_may_be_missing(tmp_path):
    """Their places come after the findings that the file lists."""
    rated = {"one": {"C1": candidate(3, missing={2: "urgent"})}}
    found = read_radpref(write_folder(tmp_path, CASES, {1: rated}))
    assert found.counts[0, 0].tolist() == [1, 1, 0]


def test_a_case_or_rater_that_stands_twice_is_refused(tmp_path):
    """Which of the two is right cannot be known."""
    with pytest.raises(DataError, match="case 'one' appears twice"):
        read_radpref(write_folder(tmp_path / "a", [CASES[1]] * 2, {1: ANN}))
    folder = write_folder(tmp_path / "b", CASES, {1: ANN, 2: BEN})
    data = json.loads((folder / "radiologist_2.json").read_text())
    (folder / "radiologist_2.json").write_text(json.dumps({**data, "user_id": 1}))
    with pytest.raises(DataError, match="two files hold the ratings of user '1'"):
        read_radpref(folder)


def test_a_case_that_one_rater_judges_twice_is_refused(tmp_path):
    """JSON readers take the last of the two, and say nothing."""
    write_folder(tmp_path, [case("one", 1)], {1: {"one": {"C1": candidate(2)}}})
    path = tmp_path / "radiologist_1.json"
    twice = '{"user_id": 1, "annotations": {"one": {}, "one": {}}}'
    path.write_text(twice, encoding="utf-8")
    with pytest.raises(DataError, match=r"radiologist_1\.json: a case or a field app"):
        read_radpref(tmp_path)


@pytest.mark.data
def test_the_real_ratings_are_as_described(data_folder):
    """About half of the published 100 cases: the shares of the published counts."""
    found = read_radpref(data_folder / "radpref")
    cases = len(found.references)
    assert found.ratings.scores.shape == (2 * cases, 3)
    assert not np.isnan(found.ratings.scores).any()
    empty = (found.counts.sum(axis=2) == 0).sum()
    assert empty / found.counts[..., 0].size == pytest.approx(62 / 600, abs=0.03)
    bare = (found.counts[..., :2].sum(axis=2) == 0).sum()
    assert bare / found.counts[..., 0].size == pytest.approx(128 / 600, abs=0.08)
