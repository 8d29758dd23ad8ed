"""Ensembles released with a judge: carried, fitted again, held to the ledger."""

import shutil
from dataclasses import replace

import pytest

from loop.core.check_findings import broken, ok, warning
from loop.core.digests import digest_bytes
from loop.core.errors import DataError
from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths
from loop.judge.ensemble_versions import parse_ensemble, read_ensemble, refit
from loop.release.audit.audit import audit_workspace
from loop.release.audit.ensembles import check_ensembles as check_recorded
from loop.release.ensemble_scoring import EnsembleOptions, fit_cohort_ensemble
from loop.release.folder import ensemble_names, read_contents
from loop.release.judge_consistency import check_ensembles
from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.verify import check_chain, verify_folder
from loop.run.asking import EngineOptions
from tests.judge.scenes import TEXTS, call
from tests.release.judge_ready import make_judge_ready
from tests.release.ready import APPROVER, AUTHOR

pytestmark = pytest.mark.slow

YAML, ROWS = ensemble_names("both@v1")


def fit(workspace, name, *members):
    """Fit an ensemble on the rated dev cohort."""
    options = EnsembleOptions(name=name, folds=4, resamples=50)
    return fit_cohort_ensemble(workspace, "rp", members, AUTHOR, options)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory, first_version):
    """Release a judge with an ensemble that it is a member of."""
    root = tmp_path_factory.mktemp("ensembles").resolve() / "ws"
    shutil.copytree(first_version.root, root)
    ready = make_judge_ready(WorkspacePaths(root), root.parent)
    fit(ready.workspace, "both", "mine", "rouge_1")
    fit(ready.workspace, "others", "green", "rouge_1")
    return ready, ready.freeze(ensembles=("both",))


def test_it_is_carried_to_the_byte_and_holds_for_whoever_has_the_folder(frozen):
    """Coefficients, digests of the members, rows; the card says how to reckon it."""
    ready, found = frozen
    kept = read_ensemble(ready.workspace, "both@v1")
    alone = verify_folder(found.folder, {ready.key.keyid: ready.key})
    assert alone.holds, alone.broken
    assert "1, as named; their rows give their coefficients" in [
        one.what for one in alone.findings if one.check == "ensembles"
    ]
    (told,) = found.facts.ensembles
    assert (told.ref, told.digest) == ("both@v1", kept.digest)
    assert digest_bytes(alone.files[YAML]) == kept.digest
    raw, rows = alone.files[YAML], alone.files[ROWS]
    again = parse_ensemble("both", 1, raw, rows, found.folder)
    assert again == kept and refit(again)
    card = (found.folder / "card.md").read_text("utf-8")
    for member in kept.ensemble.members:
        assert f"{member.coefficient:.6g}" in card
    assert "Ensemble both@v1" in card and "not measured on the holdout" in card
    for reference, candidate in TEXTS:
        for name in (YAML, ROWS):
            assert reference.encode() not in alone.files[name]
            assert candidate.encode() not in alone.files[name]
    assert audit_workspace(ready.workspace).holds


def test_the_audit_says_what_became_of_ensembles(frozen, tmp_path):
    """As recorded, edited, of other rows, or of ratings that came after it."""
    place = WorkspacePaths(
        shutil.copytree(frozen[0].workspace.root, tmp_path.resolve() / "ws")
    )
    entries = read_ledger(place.ledger)
    fitted = [one for one in entries if one.action == "ensemble_fitted"]
    assert [one.payload["name"] for one in fitted] == ["both", "others"]
    kept = "as recorded, and given by the rows that are kept"
    assert check_recorded(place, entries) == [
        ok("ensembles", f"2 ensembles are {kept}")
    ]
    alone = tuple(one for one in entries if one is not fitted[1])
    assert check_recorded(place, alone) == [ok("ensembles", f"1 ensemble is {kept}")]
    assert check_recorded(place, ()) == []
    late = tuple(
        replace(one, seq=fitted[0].seq + 1) if one.action == "ratings_added" else one
        for one in alone
    )
    told = next(one for one in late if one.action == "ratings_added")
    before = (*late, replace(told, seq=1, payload=told.payload | {"digest": "f" * 64}))
    subject = fitted[0].subject
    for some in (late, before):
        assert check_recorded(place, some) == [
            warning(
                "ensembles",
                f"{subject} was fitted on ratings that were not recorded before",
                where=subject,
                seq=fitted[0].seq,
            )
        ]
    path = place.labels / "ensembles" / "both" / "v1" / "ensemble.yaml"
    raw = path.read_bytes().replace(b"intercept: ", b"intercept: 1", 1)
    path.write_bytes(raw)
    edited = broken(
        "ensembles",
        f"{subject} is not as recorded",
        where=subject,
        implies="A file of it was edited, or is gone.",
        todo="Restore its folder from version control or a backup.",
        seq=fitted[0].seq,
    )
    # One that is edited hides no other.
    odd = tuple(one for one in entries if one.action != "ratings_added")
    found = check_recorded(place, odd)
    assert found[0] == edited
    assert [one.where for one in found] == [subject, fitted[1].subject]
    payload = fitted[0].payload | {"digest": digest_bytes(raw)}
    forged = tuple(
        replace(one, payload=payload) if one is fitted[0] else one for one in entries
    )
    assert check_recorded(place, forged) == [
        broken(
            "ensembles",
            f"the rows of {subject} give other coefficients",
            where=subject,
            implies="It was not fitted on them, or by another ranloop.",
            todo="Fit it again.",
            seq=fitted[0].seq,
        )
    ]


def test_a_release_without_one_says_nothing_of_them(judge_release):
    """Releases that were made before have the form that they had."""
    _, found = judge_release
    assert found.facts.ensembles == []
    assert "ensembles" not in found.facts.model_dump()
    files = read_contents(found.folder).files
    assert check_ensembles(files, found.facts) == ()


def changed(found, **more):
    """Return the facts with other ones of the ensemble."""
    told = found.facts.model_dump(mode="json")
    told["ensembles"][0] |= more
    return JudgeReleaseFacts.model_validate(told)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"intercept": 0.25}, "says of it what its files do not"),
        ({"digest": "0" * 64}, "says of it what its files do not"),
        ({"beats": None}, "says of it what its files do not"),
        ({"ref": "other@v1"}, "a file of it is missing"),
    ],
)
def test_facts_that_are_not_those_of_the_files_are_named(frozen, change, words):
    """Even where somebody signed them."""
    _, found = frozen
    (finding,) = check_ensembles(
        read_contents(found.folder).files, changed(found, **change)
    )
    assert not finding.holds and words in finding.what


def test_files_that_are_not_those_of_the_fit_are_named(frozen):
    """Other rows, other coefficients, another judge, nonsense: each in words."""
    _, found = frozen
    files = dict(read_contents(found.folder).files)

    def said(**more):
        (one,) = check_ensembles(files | more, found.facts)
        return "" if one.holds else one.what

    assert said() == ""
    lines = files[ROWS].splitlines(keepends=True)
    assert "cannot be read" in said(**{ROWS: b"".join(lines[:-1])})
    assert "cannot be read" in said(**{YAML: b"\xff\x00: ["})
    assert "rows" in said(**{ROWS: b"\n" * 20_000})
    assert "is not named" in said(**{"ensembles/more-v1.yaml": b""})
    other = files[YAML].replace(b"intercept: ", b"intercept: 1", 1)
    assert "its rows give other coefficients" in said(**{YAML: other})
    for number in (b"inf", b"nan", b"1e308"):
        rows = files[ROWS].replace(b",0.75,", b"," + number + b",", 1)
        told = digest_bytes(files[ROWS]).encode(), digest_bytes(rows).encode()
        assert said(**{ROWS: rows, YAML: files[YAML].replace(*told)})
    prompt = found.facts.release.digest.encode()
    engine = found.facts.engine.digest.encode()
    assert engine in files[YAML]
    otherwise = files[YAML].replace(engine, b"0" * 64)
    assert "was asked otherwise as a member" in said(**{YAML: otherwise})
    stranger = files[YAML].replace(prompt, b"0" * 64)
    assert "the judge is not a member of it" in said(**{YAML: stranger})


def test_an_ensemble_that_was_never_recorded_is_named(frozen, tmp_path):
    """The ledger that is shipped has none of that digest."""
    ready, found = frozen
    contents = read_contents(found.folder)
    lines = contents.files["ledger.jsonl"].splitlines(keepends=True)
    assert any(b"ensemble:both@v1" in one for one in lines)
    other = changed(found, digest="1" * 64)
    _, history = check_chain(contents.files, other, {ready.key.keyid: ready.key})
    assert "the ensemble both@v1 is not in the ledger" in history.what


def test_what_the_judge_is_not_part_of_is_refused_before_anything_is_asked(
    workspace, tmp_path
):
    """No run, no opening: the cohorts are as they were."""
    ready = make_judge_ready(workspace, tmp_path)
    fit(workspace, "others", "green", "rouge_1")
    fit(workspace, "both", "mine", "rouge_1")
    for names, words in (
        (("others",), "mine@v1 is not a member of the ensemble others@v1"),
        (("nothing",), "no ensemble 'nothing' is recorded"),
    ):
        with pytest.raises(DataError, match=words):
            ready.freeze(ensembles=names)
    with pytest.raises(DataError, match=r"Fit the ensemble with that engine"):
        ready.freeze(ensembles=("both",), engine="openai:x@http://127.0.0.1:9/v1")
    with pytest.raises(DataError, match="asked without a level of thinking"):
        ready.freeze(ensembles=("both",), asking=EngineOptions(thinking="low"))
    with pytest.raises(DataError, match=r"mine@v1 was asked otherwise, or of another"):
        ready.freeze(ensembles=("both",), asking=EngineOptions(max_tokens=99))
    assert ready.steps == []
    done = call(
        workspace,
        *("freeze", "mine@v1", "--cohort", "rp", "--why", "first"),
        *("--ensemble", "both", "--ensemble", "both@v1", "--actor", APPROVER.name),
    )
    assert done.exit_code == 0, done.output
    assert (workspace.releases / "mine-v1" / YAML).is_file()
    assert audit_workspace(workspace).holds


def test_an_export_of_the_judge_is_as_before(frozen, tmp_path):
    """What asks the judge elsewhere needs no ensemble."""
    ready, _ = frozen
    out = tmp_path / "out"
    done = call(ready.workspace, "export", "mine-v1", "--to", "dspy", "--out", out)
    assert done.exit_code == 0, done.output
    assert not [one for one in out.rglob("*") if "both" in one.name]
