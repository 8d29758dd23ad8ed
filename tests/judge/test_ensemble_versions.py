"""An ensemble is kept as it was fitted, and read back only as it was recorded."""

import csv
import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import kendalltau, spearmanr

from loop.core.digests import digest_bytes
from loop.core.errors import DataError, LedgerError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.judge import ensemble_versions
from loop.judge.ensemble import (
    EnsembleMethod,
    MemberScores,
    evaluate_out_of_fold,
    fit_ensemble,
)
from loop.judge.ensemble_text import (
    ensemble_data,
    ensemble_notes,
    fold_rows,
    member_rows,
    verdict,
)
from loop.judge.ensemble_versions import (
    Ensemble,
    EnsembleVersion,
    FittedOn,
    Folded,
    MemberPin,
    apply_ensemble,
    ensemble_files,
    ensembles_folder,
    fit_order,
    judge_pins,
    keep_ensemble,
    list_ensembles,
    make_ensemble,
    parse_ensemble,
    read_ensemble,
    refit,
)

ANN = Actor(name="Ann")


def made(method=EnsembleMethod.REGRESSION, *, pairs=40, seed=1, folds=4, weight=1.0):
    """Return the record and the rows of an ensemble of two made-up members."""
    table = np.random.default_rng(seed).normal(size=(pairs, 2))
    points = 3 + table[:, 0] - weight * table[:, 1]
    members = [
        MemberScores(name="good", title="Good", lower=False, values=table[:, 0]),
        MemberScores(name="bad", title="Bad", lower=True, values=table[:, 1]),
    ]
    fit = fit_ensemble(members, points, np.arange(pairs) // 2, method)
    results = evaluate_out_of_fold(fit, folds=folds, resamples=100) if folds else None
    fitted_on = FittedOn(
        cohort="rp",
        cohort_digest="c" * 64,
        ratings="rp:ratings1",
        ratings_digest="d" * 64,
        raters=3,
        scale="1-5",
        rated=pairs,
        pairs=pairs,
        units=pairs // 2,
        unit="patient",
    )
    pins = [
        MemberPin(judge="green@v1", score="green", digest="a" * 64, conventions="x|y"),
        MemberPin(metric="ran_errors", conventions="z"),
    ]
    return make_ensemble(Folded(fit, results), pins, fitted_on, ["e" * 64, "e" * 64])


def keep(workspace, name="mix", **changes):
    """Keep a made-up ensemble."""
    return keep_ensemble(workspace, name, *made(**changes), ANN)


def test_what_is_kept_is_read_back_and_recorded(workspace):
    """File, rows and ledger say the same; the score is the fitted one."""
    kept = keep(workspace)
    assert kept.made
    read = read_ensemble(workspace, "mix")
    assert (read.ref, read.digest) == ("mix@v1", kept.digest)
    assert read.ensemble == kept.ensemble
    assert read.rows == kept.rows
    assert read.ensemble.references == ("e" * 64,)
    assert refit(read)
    entry = read_ledger(workspace.ledger)[-1]
    assert (entry.action, entry.subject) == ("ensemble_fitted", "ensemble:mix@v1")
    assert entry.payload["digest"] == kept.digest
    values = {
        "good": np.array([1.0, np.nan, 2.0]),
        "bad": np.array([0.5, 0.5, np.nan]),
    }
    scores = apply_ensemble(read.ensemble, values)
    assert scores[0] == pytest.approx(3.5)
    assert np.isnan(scores[1:]).all()
    with pytest.raises(ValueError, match="no values of the member 'bad'"):
        apply_ensemble(read.ensemble, {"good": values["good"]})


def test_the_same_once_more_makes_nothing_and_another_the_next(workspace):
    """Fitting twice leaves one version; older versions stay."""
    keep(workspace)
    before = len(read_ledger(workspace.ledger))
    assert not keep(workspace).made
    assert len(read_ledger(workspace.ledger)) == before
    assert keep(workspace, method=EnsembleMethod.MEAN).ref == "mix@v2"
    assert read_ensemble(workspace, "ensemble:mix@v1").number == 1
    assert [one.ref for one in list_ensembles(workspace)] == ["mix@v2"]


def test_the_same_fit_puts_back_what_was_edited_or_lost(workspace):
    """What was recorded, to the byte, and no new entry: the way out of the error."""
    kept = keep(workspace)
    folder = ensembles_folder(workspace) / "mix" / "v1"
    before = len(read_ledger(workspace.ledger))
    (folder / "ensemble.yaml").write_text("method: mean\n")
    assert not keep(workspace).made
    assert read_ensemble(workspace, "mix").digest == kept.digest
    shutil.rmtree(folder)
    assert keep(workspace).ref == "mix@v1"
    assert read_ensemble(workspace, "mix").rows == kept.rows
    assert len(read_ledger(workspace.ledger)) == before


@pytest.mark.parametrize("name", ["ensemble.yaml", "rows.csv"])
def test_an_edited_file_is_refused(workspace, name):
    """One digit is enough; the way out is told."""
    keep(workspace)
    path = ensembles_folder(workspace) / "mix" / "v1" / name
    path.write_text(path.read_text().replace("1", "2", 1))
    with pytest.raises(DataError, match=r"was edited.*or fit the ensemble again"):
        read_ensemble(workspace, "mix")


def test_a_rewritten_file_with_a_fitting_entry_does_not_follow_from_its_rows(workspace):
    """Who forges file and entry has to forge the rows, too."""
    keep(workspace)
    path = ensembles_folder(workspace) / "mix" / "v1" / "ensemble.yaml"
    data = yaml.safe_load(path.read_text())
    data["members"][0]["weight"] *= 2
    path.write_text(yaml.safe_dump(data))
    old = read_ledger(workspace.ledger)[-1]
    payload = {**old.payload, "digest": digest_bytes(path.read_bytes())}
    event = Event(
        action=old.action, subject=old.subject, reason="forged", payload=payload
    )
    append_event(workspace.ledger, event, ANN)
    assert not refit(read_ensemble(workspace, "mix"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"color": "red"}, "color: there is no such field"),
        ({"intercept": "much"}, "intercept"),
        ({"members": []}, "members"),
        ({"method": "median"}, "method"),
    ],
)
def test_a_file_of_another_form_is_refused_field_by_field(workspace, change, words):
    """Even one that an entry records."""
    keep(workspace)
    path = ensembles_folder(workspace) / "mix" / "v1" / "ensemble.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    old = read_ledger(workspace.ledger)[-1]
    payload = {**old.payload, "digest": digest_bytes(path.read_bytes())}
    event = Event(action=old.action, subject=old.subject, reason="x", payload=payload)
    append_event(workspace.ledger, event, ANN)
    with pytest.raises(DataError, match=words):
        read_ensemble(workspace, "mix")


def test_a_version_that_was_never_recorded_is_none(workspace):
    """A folder alone is no version; an unknown name says how to make one."""
    folder = ensembles_folder(workspace) / "mix" / "v1"
    folder.mkdir(parents=True)
    (folder / "ensemble.yaml").write_text("method: mean\n")
    with pytest.raises(DataError, match="no ensemble 'mix' is recorded here"):
        read_ensemble(workspace, "mix")
    kept = keep(workspace)
    assert kept.ref == "mix@v1"
    assert read_ensemble(workspace, "mix").digest == kept.digest
    with pytest.raises(DataError, match=r"no version 'v7' \(recorded: v1\)"):
        read_ensemble(workspace, "mix@v7")
    with pytest.raises(DataError, match="cannot be the name of an ensemble"):
        keep(workspace, name="../mix")


def test_without_the_ledger_nothing_is_kept(workspace, monkeypatch):
    """A version that cannot be recorded leaves no folder."""

    def refuse(*given):
        raise LedgerError("full")

    monkeypatch.setattr(ensemble_versions, "append_event", refuse)
    with pytest.raises(LedgerError):
        keep(workspace)
    assert not (ensembles_folder(workspace) / "mix" / "v1").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from loop.core.paths import WorkspacePaths
from loop.judge import ensemble_versions
from tests.judge.test_ensemble_versions import keep

def die(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(ensemble_versions, sys.argv[2], die)
keep(WorkspacePaths(Path(sys.argv[1])))
"""


@pytest.mark.parametrize("at", ["write_atomic", "replace_folder", "append_event"])
def test_a_fit_that_was_killed_leaves_no_version_and_can_be_repeated(workspace, at):
    """Before a file, before the folder stands, and before the entry."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(workspace.root), at], check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert list_ensembles(workspace) == ()
    kept = keep(workspace)
    assert kept.ref == "mix@v1"
    left = os.listdir(ensembles_folder(workspace) / "mix")
    assert left == ["v1"]
    assert read_ensemble(workspace, "mix").digest == kept.digest


def test_order_and_units_come_from_the_values_alone():
    """Renamed patients in another order give the same rows, folds and resamples."""
    generator = np.random.default_rng(4)
    values, points = generator.normal(size=(30, 2)), generator.integers(1, 5, 30) * 1.0
    values[3, 0] = np.nan
    names = np.array([f"p{n // 3}" for n in range(30)])
    shuffle = generator.permutation(30)
    found = []
    for rows, renamed in ((np.arange(30), names), (shuffle, np.char.add("x", names))):
        units, order = fit_order(renamed[rows], points[rows], values[rows])
        found.append(np.column_stack([units[order], values[rows][order]]))
    np.testing.assert_array_equal(found[0], found[1])


def test_the_verdict_is_plain_either_way():
    """Beats, does not beat, was not measured."""
    beats, _ = made(pairs=120)
    assert verdict(beats).startswith("Out of fold, the regression beats its best ")
    assert "The mean beats it, too" in verdict(beats)
    no, _ = made(weight=0.0)
    assert "regression does not beat its best member" in verdict(no)
    assert "The mean does not beat it, either" in verdict(no)
    assert "--out-of-fold" in verdict(made(folds=0)[0])


def test_notes_say_signs_and_what_is_left_out():
    """A coefficient against its direction, few pairs, and pairs without an answer."""
    odd, _ = made(weight=-1.0, pairs=14, folds=0)
    told = " ".join(ensemble_notes(odd))
    assert "Lower is better for bad" in told
    assert "The coefficient of bad has the wrong sign" in told
    assert "14 pairs are fewer than 10 for each of 2 members" in told
    whole = odd.fitted_on.model_copy(update={"rated": 17})
    lost = odd.members[0].model_copy(update={"missing": 3})
    less = odd.model_copy(
        update={"fitted_on": whole, "members": (lost, odd.members[1])}
    )
    assert "3 of 17 rated pairs are left out" in " ".join(ensemble_notes(less))
    assert "good 3" in " ".join(ensemble_notes(less))


def test_rows_for_people_and_data_for_programs_agree(workspace):
    """Everything to fit it again is in the JSON."""
    kept = keep(workspace)
    told, rows = kept.ensemble, member_rows(kept.ensemble)
    assert [row[1] for row in rows] == ["higher", "lower", "\N{EN DASH}"]
    assert rows[-1][2] == "+3.0000"
    assert [row[0] for row in fold_rows(told)] == [
        "best member",
        "mean of all members",
        "regression of all members",
    ]
    data = ensemble_data(kept)
    values = np.array([[*one["values"].values()] for one in data["fitted_rows"]])
    points = np.array([one["points"] for one in data["fitted_rows"]])
    design = np.column_stack([np.ones(len(values)), values])
    (zero, good, bad), *_ = np.linalg.lstsq(design, points, rcond=None)
    assert data["coefficients"] == {
        "good": pytest.approx(good),
        "bad": pytest.approx(bad),
    }
    assert zero == pytest.approx(3)
    assert {one["fold"] for one in data["fitted_rows"]} == {1, 2, 3, 4}


def test_file_rows_and_entry_say_the_same(workspace):
    """To the byte; what was scored out of fold stands beside what it was fitted on."""
    kept = keep(workspace, pairs=12)
    folder = ensembles_folder(workspace) / "mix" / "v1"
    raw, rows = (folder / name for name in ("ensemble.yaml", "rows.csv"))
    assert ensemble_files(kept) == (raw.read_bytes(), rows.read_bytes())
    assert kept.digest == digest_bytes(raw.read_bytes())
    assert kept.ensemble.rows == digest_bytes(rows.read_bytes())
    header, *lines = csv.reader(io.StringIO(rows.read_text()))
    assert header == [
        *("unit", "points", "good", "bad"),
        *("fold", "mean", "regression", "best_member"),
    ]
    assert lines == [
        [
            *(str(row.unit), repr(row.points), *map(repr, row.values)),
            *(str(int(row.out_of_fold[0])), *map(repr, row.out_of_fold[1:])),
        ]
        for row in kept.rows
    ]
    assert [row.unit for row in kept.rows] == [place // 2 + 1 for place in range(12)]
    for row in kept.rows:
        good, bad = row.values
        assert row.points == pytest.approx(3 + good - bad)
    entry = read_ledger(workspace.ledger)[-1]
    assert entry.reason == "regression of 2 members on rp"
    assert entry.payload == {
        "name": "mix",
        "number": 1,
        "digest": kept.digest,
        "method": "regression",
        "members": ["good", "bad"],
        "cohort": "rp",
        "cohort_digest": "c" * 64,
        "ratings": "rp:ratings1",
        "ratings_digest": "d" * 64,
        "pairs": 12,
    }
    plain = keep(workspace, name="plain", pairs=12, folds=0)
    (first, *_) = ensemble_files(plain)[1].decode().splitlines()
    assert first == "unit,points,good,bad"
    assert plain.rows[0].out_of_fold == () and plain.ensemble.out_of_fold is None
    assert [one.ref for one in list_ensembles(workspace)] == ["mix@v1", "plain@v1"]
    with pytest.raises(DataError) as refused:
        read_ensemble(workspace, "other")
    assert (
        "(recorded: mix, plain). Fit one with `ranloop ensemble fit --name other"
        in (str(refused.value))
    )


def test_what_is_kept_of_a_fit_is_what_was_measured():
    """Members with centre, scale and weight; each estimate without its note."""
    ensemble, rows = made(pairs=12)
    table = np.array([row.values for row in rows])
    good, bad = ensemble.members
    assert [one.centre for one in ensemble.members] == pytest.approx(table.mean(axis=0))
    assert [one.scale for one in ensemble.members] == pytest.approx(table.std(axis=0))
    assert (good.better, bad.better, good.title) == ("higher", "lower", "Good")
    assert (good.coefficient, bad.coefficient) == pytest.approx((1, -1))
    assert (good.missing, good.distinct, bad.distinct) == (0, 12, 12)
    assert (good.pin.judge, bad.pin.metric) == ("green@v1", "ran_errors")
    told = ensemble.out_of_fold
    folds = np.array([row.out_of_fold for row in rows])
    points = np.array([row.points for row in rows])
    assert set(folds[:, 0]) == {1, 2, 3, 4}
    for place, kept in ((1, told.mean), (2, told.regression), (3, told.best)):
        tau = kendalltau(folds[:, place], points).statistic
        assert kept.tau_b.value == pytest.approx(tau)
        rank = spearmanr(folds[:, place], points).statistic
        assert kept.spearman.value == pytest.approx(rank)
        r = np.corrcoef(folds[:, place], points)[0, 1]
        assert kept.pearson.value == pytest.approx(r)
    for place, sign in ((0, 1), (1, -1)):
        tau = kendalltau(sign * table[:, place], points).statistic
        assert told.members[place].tau_b.value == pytest.approx(tau)
    assert told.of(EnsembleMethod.MEAN) is told.mean
    assert told.of(EnsembleMethod.REGRESSION) is told.regression
    for method, kept in zip(EnsembleMethod, told.against, strict=True):
        assert told.beside(method) is kept and kept.method is method
        apart = told.of(method).tau_b.value - told.best.tau_b.value
        assert kept.difference.value == pytest.approx(apart)
    assert (told.folds, told.seed, told.resamples) == (4, 0, 100)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"unit,points,good,bad", b"unit,points,bad,good"),
        (b"unit,points,good,bad", b"unit,points,good,bad,more"),
        (b"\n1,", b"\n1.5,"),
        (b"\n1,", b"\none,"),
        (b"\n1,", b"\n1,nan,"),
        (b"\n1,", b"\n1\n1,"),
        (b"unit,", b"\xff,"),
    ],
)
def test_rows_of_another_form_are_refused(old, new):
    """Even where the file says that they are its own."""
    ensemble, rows = made(pairs=12, folds=0)
    version = EnsembleVersion(
        name="mix", number=3, digest="", ensemble=ensemble, rows=rows
    )
    raw, table = ensemble_files(version)
    path = Path("release.zip")
    same = parse_ensemble("mix", 3, raw, table, path)
    assert (same.ref, same.digest, same.rows) == ("mix@v3", digest_bytes(raw), rows)
    assert same.ensemble == ensemble
    odd = table.replace(old, new, 1)
    assert odd != table
    with pytest.raises(DataError) as refused:
        parse_ensemble("mix", 3, raw, odd, path)
    assert str(refused.value) == (
        "release.zip: its rows are not those that it was fitted on."
    )
    forged = raw.replace(digest_bytes(table).encode(), digest_bytes(odd).encode())
    with pytest.raises(DataError, match=r"release\.zip cannot be read\. Restore it"):
        parse_ensemble("mix", 3, forged, odd, path)


def test_a_judge_is_found_among_the_members_by_its_digest(workspace):
    """A metric has none of its own."""
    kept = keep(workspace, pairs=12, folds=0)
    assert judge_pins(kept, "a" * 64) == [kept.ensemble.members[0].pin]
    assert judge_pins(kept, "b" * 64) == judge_pins(kept, "") == []


@pytest.mark.parametrize(
    "change",
    [
        lambda told: {"members": told.members[:1]},
        lambda told: {"chosen": (*told.chosen[:-1], "other")},
        lambda told: {"against": told.against[:1]},
    ],
)
def test_results_of_other_members_are_refused(change):
    """They would be shown beside names that they are not of."""
    ensemble, _ = made(pairs=12)
    told = ensemble.out_of_fold
    odd = told.model_copy(update=change(told))
    data = ensemble.model_dump()
    with pytest.raises(ValueError, match="out_of_fold is not of these members"):
        Ensemble.model_validate({**data, "out_of_fold": odd.model_dump()})
    twice = (*data["members"], data["members"][0])
    with pytest.raises(ValueError, match="a member stands twice"):
        Ensemble.model_validate({**data, "members": twice})


def test_pairs_are_fitted_in_the_order_of_their_values():
    """By unit, then by points, then by members; what is missing comes first."""
    units = np.array(["b", "a", "b", "a", "c"])
    points = np.array([2.0, 3.0, 1.0, 3.0, 9.0])
    values = np.array([[1.0, 5], [2, 4], [3, 3], [np.nan, 6], [0, 0]])
    numbers, order = fit_order(units, points, values)
    # The least points are in unit b.
    assert numbers.tolist() == [0, 1, 0, 1, 2]
    assert order.tolist() == [2, 0, 3, 1, 4]
