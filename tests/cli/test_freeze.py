"""The verbs ``freeze`` and ``withdraw`` as people type them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from loop.cli import freeze
from loop.cli.main import app
from loop.release.freeze import Frozen
from tests.release.ready import make_ready
from tests.release.small import make_small, typed

pytestmark = pytest.mark.slow


@pytest.fixture
def ready(workspace, tmp_path):
    """Make a workspace whose version passes on both cohorts."""
    return make_ready(workspace, tmp_path)


def call(ready, *words, code=0, env=None):
    """Run a command in the workspace and return what it printed."""
    done = CliRunner().invoke(
        app, [*words, "--workspace", str(ready.workspace.root)], env=env
    )
    assert done.exit_code == code, done.output
    return done


FREEZE = (
    *("freeze", "tiny", "--cohort", "dev", "--holdout", "held"),
    *("--why", "first release", "--actor", "Dr Approver"),
)


def test_freeze_then_verify_then_withdraw(ready):
    """What was released holds, and after its withdrawal is not in force."""
    said = call(ready, *FREEZE).stdout
    assert "claim (subset) on held: PASS, 2 of 21 labels certified" in said
    assert "holdout opening 1 of 3" in said
    assert "released tiny@v1 as tiny-v1" in said
    assert "tiny-v1: holds" in call(ready, "verify", "tiny-v1").stdout
    told = call(ready, "history", "tiny").stdout
    assert "frozen by Dr Approver: first release" in told
    words = ("withdraw", "tiny-v1", "--why", "misread", "--actor", "Dr Approver")
    assert "tiny-v1 is withdrawn" in call(ready, *words).stdout
    assert "misread" in call(ready, "verify", "tiny-v1", code=100).stdout
    assert "withdrawn by Dr Approver: misread" in call(ready, "history", "tiny").stdout


def test_a_gate_exits_with_100_and_says_what_to_do(workspace, tmp_path):
    """In words and as JSON; nothing is released."""
    ready = make_ready(workspace, tmp_path, wrong=(60, 0))
    workspace.protocol.write_text("accuracy: 0.95\nkappa: 0.8\n")
    done = call(ready, *FREEZE, code=100)
    assert "objection: the gate on dev says FAIL" in done.stdout
    assert "--override REASON" in done.stdout
    data = json.loads(call(ready, *FREEZE, "--json", code=100).stdout)
    assert data["released"] is False
    assert data["claim"]["verdict"] == "FAIL"
    assert not (workspace.releases / "tiny-v1").exists()


def test_a_holdout_that_was_opened_in_vain_is_told_of(workspace, tmp_path):
    """An opening is spent; the way on spends no other."""
    ready = make_ready(workspace, tmp_path, wrong=(0, 60))
    workspace.protocol.write_text("accuracy: 0.95\nkappa: 0.8\nmin_positives: 10\n")
    said = call(ready, *FREEZE, "--override", "go on", code=100).stdout
    assert "held has been opened for tiny-v1, and that counts" in said
    assert "an override answers what is known" in said and "REASON" not in said
    assert "claim (all) on held: FAIL\n" in said
    again = call(ready, *FREEZE, "--override", "knowing this").stdout
    assert "holdout opening 1 of 3" in again


def test_a_passphrase_is_taken_from_the_environment_only_where_nobody_can_type(ready):
    """And is asked for by name when it is missing."""
    env = {"RANLOOP_KEY_PASSPHRASE": "long and secret words"}
    words = ("key", "new", "Dr Approver", "--role", "approver", "--replace")
    call(ready, *words, "--why", "a passphrase", env=env)
    refused = call(ready, *FREEZE, code=1)
    assert "the key of Dr Approver has a passphrase" in str(refused.exception)
    assert "secret" not in refused.output + str(refused.exception)
    assert "released tiny@v1" in call(ready, *FREEZE, env=env).stdout


def test_a_second_signer_is_named_with_what_it_means(ready):
    """``--sign`` takes a name and a meaning."""
    call(ready, "key", "new", "Dr Reviewer", "--role", "reviewer")
    done = call(ready, *FREEZE, "--sign", "Dr Reviewer", code=2)
    assert "NAME:MEANING" in done.output
    call(ready, *FREEZE, "--sign", "Dr Reviewer:review")
    said = call(ready, "verify", "tiny-v1").stdout
    assert "Dr Reviewer (reviewer), review" in said
    card = (ready.workspace.releases / "tiny-v1/card.md").read_text()
    assert "| Dr Approver | approver | approval |" in card
    assert "| Dr Reviewer | reviewer | review |" in card


def test_a_release_needs_a_reason(ready):
    """An empty one is a mistake of typing, not of the workspace."""
    done = call(ready, *FREEZE, "--why", " ", code=2)
    assert "--why needs a reason" in done.output


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Return what the small release says of itself."""
    return typed(make_small(tmp_path_factory.mktemp("small")).facts)


def frozen(made, /, **changes):
    """Return what a freeze came to that made the small release."""
    told = {
        "name": "tiny-v1",
        "folder": Path("releases/tiny-v1"),
        "objections": (),
        "claim": made.claim,
        "facts": made,
        **changes,
    }
    return Frozen(**told)


CLAIM = "claim (all) on locked: {}\n"
STOPPED = {"folder": None, "facts": None, "objections": ("one", "two")}


def test_a_release_is_told_with_what_it_opened(facts, capsys):
    """And where it lies, and how anybody can check it."""
    freeze._show(frozen(facts), "locked", overridden=False)
    (opening,) = facts.openings
    whole = (
        CLAIM.format(facts.claim.verdict.value)
        + f"holdout opening 1 of 3: {opening.time}, {opening.actor}, for tiny@v1\n"
        + "\n{} tiny@v1 as tiny-v1: releases/tiny-v1\n"
        + "check it anywhere: ranloop verify releases/tiny-v1 --key PUBLIC_KEY\n"
    )
    assert capsys.readouterr().out == whole.format("released")
    freeze._show(frozen(facts, completed=True), "locked", overridden=False)
    assert capsys.readouterr().out == whole.format("completed")


def test_a_release_on_development_data_and_against_objections_says_so(facts, capsys):
    """Each objection first, and the reason beside the release."""
    told = facts.frozen.model_copy(update={"override": "known"})
    changes = {"development_only": True, "openings": [], "frozen": told}
    one = frozen(
        facts, facts=facts.model_copy(update=changes), objections=("one", "two")
    )
    freeze._show(one, "", overridden=True)
    assert capsys.readouterr().out == (
        "objection: one\nobjection: two\n"
        + CLAIM.format(facts.claim.verdict.value)
        + "DEVELOPMENT DATA ONLY: no holdout was opened\n"
        "override: known\n"
        "\nreleased tiny@v1 as tiny-v1: releases/tiny-v1\n"
        "check it anywhere: ranloop verify releases/tiny-v1 --key PUBLIC_KEY\n"
    )


OPENED = (
    "locked has been opened for tiny-v1, and that counts. What it showed is kept: the "
    "same command does not open it again.\n"
)
KNOWN = (
    "tiny-v1 was not released. Improve the version, or release it against this by the "
    "same command with --override REASON, which stays on its card.\n"
)
NEWS = (
    "tiny-v1 was not released yet: an override answers what is known, and what the "
    "holdout showed is news. Improve the version, or give the same command again: its "
    "reason then stays on the card.\n"
)


@pytest.mark.parametrize(
    ("holdout", "overridden", "words"),
    [
        ("locked", False, OPENED + KNOWN),
        ("locked", True, OPENED + NEWS),
        ("other", False, KNOWN),
        ("", False, KNOWN),
    ],
)
def test_a_freeze_that_was_stopped_says_what_was_spent(
    facts, capsys, holdout, overridden, words
):
    """A holdout is opened at most once for it."""
    freeze._show(frozen(facts, **STOPPED), holdout, overridden=overridden)
    assert capsys.readouterr().out == (
        "objection: one\nobjection: two\n"
        + CLAIM.format(facts.claim.verdict.value)
        + "\n"
        + words
    )


def test_a_claim_on_some_labels_says_how_many_it_certifies(facts):
    """Of all that it is on; a claim on all has one verdict."""
    verdict = facts.claim.verdict
    assert freeze._claimed(facts.claim) == verdict.value
    first, *rest = facts.claim.labels
    labels = [first.model_copy(update={"certified": True}), *rest]
    labels.append(first.model_copy(update={"certified": None}))
    some = facts.claim.model_copy(update={"kind": "subset", "labels": labels})
    told = f"{verdict}, 1 of {len(labels)} labels certified"
    assert freeze._claimed(some) == told


def test_what_a_freeze_came_to_is_whole_as_json(facts):
    """With its entry in the ledger; null where it was stopped."""
    assert freeze._data(frozen(facts)) == {
        "release": "tiny-v1",
        "released": True,
        "folder": "releases/tiny-v1",
        "objections": [],
        "claim": facts.claim.model_dump(),
        "seq": None,
        "completed": False,
        "facts": facts.model_dump(),
    }
    entry = SimpleNamespace(seq=7)
    stopped = freeze._data(frozen(facts, **STOPPED, entry=entry))
    assert stopped == {
        "release": "tiny-v1",
        "released": False,
        "folder": None,
        "objections": ["one", "two"],
        "claim": facts.claim.model_dump(),
        "seq": 7,
        "completed": False,
        "facts": None,
    }
