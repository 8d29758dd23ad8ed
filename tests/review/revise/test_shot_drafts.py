"""Shots come into a version as any change does: a draft, its check, a commit."""

import json

import pytest

from loop.core.ledger import read_ledger
from loop.core.records import Completion
from loop.engines import base
from loop.prompts.catalog import latest_version, read_version
from loop.run.pool_shots import injected_path, with_shots
from tests.judge.scenes import MARKED, TEXTS, as_pool, call, errors, rate


class Shown:
    """Finds what is wrong only if the prompt has examples."""

    retry_unreadable = 0

    def identity(self):
        """Return the name."""
        return {"engine": "shown"}

    def redraw(self, draw):
        """Return itself: it has no chance in it."""
        return self

    def complete(self, prompts):
        """Yield an answer for each pair."""
        known = {texts: MARKED.get(n, ()) for n, texts in enumerate(TEXTS)}
        for index, prompt in enumerate(prompts):
            read = any("Zebra" in one.content for one in prompt.messages)
            texts = tuple(
                prompt.item.variables[name] for name in ("reference", "candidate")
            )
            found = [(name, True) for name in known[texts] if read]
            yield index, Completion(errors(*found))


@pytest.fixture
def judged(workspace, tmp_path, monkeypatch):
    """Make a workspace with rated pairs, a pool and the judge ``listed``."""
    rate(workspace, tmp_path)
    assert as_pool(workspace, tmp_path).exit_code == 0
    made = call(workspace, "prompt", "new", "listed", "--from", "one_pass@v1")
    assert made.exit_code == 0, made.output
    monkeypatch.setitem(base._FACTORIES, "shown", lambda *_: Shown())
    return workspace


def begin(workspace, *words, **expected):
    """Begin a draft with shots, and return what was printed as data."""
    done = call(
        workspace, "prompt", "shots", "listed", *words, "--cohort", "rp", "--json"
    )
    assert done.exit_code == expected.get("code", 0), (done.output, done.exception)
    return json.loads(done.stdout) if done.exit_code == 0 else str(done.exception)


def test_shots_are_drafted_checked_and_committed(judged):
    """The check asks with them; the ledger has the files, and no text."""
    begun = begin(judged, "random:2", "--pool", "pool", "--why", "two examples")
    draft = read_version(judged, begun["draft"])
    assert (draft.shots.short, draft.why) == ("random:2", "two examples")
    assert not draft.shown and len(with_shots(judged, draft).shown) == 2
    checked = call(judged, "draft", "check", draft.ref, "-e", "shown", "--json")
    assert checked.stdout, (checked.output, checked.exception)
    said = json.loads(checked.stdout)
    assert said["passed"], said
    made = call(judged, "draft", "commit", draft.ref, "--why", "better")
    assert made.exit_code == 0, (made.output, made.exception)
    version = latest_version(judged, "listed")
    assert (version.ref, version.shots) == ("listed@v2", draft.shots)
    ledger = judged.ledger.read_text() + made.output + checked.output
    assert "ebra" not in ledger
    assert read_ledger(judged.ledger)[-1].payload["digest"] == version.digest
    shown = call(judged, "prompt", "show", "listed@v2", "--rendered").output
    assert "[reference of shot 1:" in shown and "ebra" not in shown
    plain = call(judged, "prompt", "show", "listed@v2").output
    assert version.shots.words in plain
    assert "shots" in call(judged, "diff", "listed@v1", "listed@v2").output
    blame = call(judged, "prompt", "show", "listed@v2", "--blame").output
    assert "shots: 2 of pool pool" in blame


def test_shots_are_taken_out_again(judged):
    """With none, the wording is that of before: nothing is left to commit."""
    begun = begin(judged, "random:2", "--pool", "pool")
    assert read_version(judged, begun["draft"]).why == (
        "shows random examples of the pool pool"
    )
    second = call(
        judged, "prompt", "shots", begun["draft"], "none", "--cohort", "rp", "--json"
    )
    assert second.exit_code == 0, second.exception
    draft = read_version(judged, json.loads(second.stdout)["draft"])
    assert draft.shots is None
    assert draft.digest == latest_version(judged, "listed").digest


def test_a_draft_with_injected_errors_keeps_its_texts_in_private(judged):
    """In one file of the pins' name, which the draft finds again."""
    begun = begin(judged, "injected:1", "--pool", "pool")
    draft = read_version(judged, begun["draft"])
    path = injected_path(judged, draft.shots)
    assert judged.private in path.parents
    (shot,) = with_shots(judged, draft).shown
    assert "Zebra" in shot.reference
    again = read_version(judged, begin(judged, "injected:1", "--pool", "pool")["draft"])
    assert again.shots == draft.shots


def test_rules_says_that_it_reads_nothing_of_them(judged):
    """A check with it can show nothing."""
    begun = begin(judged, "per_error")
    assert any("`rules` reads nothing of what is changed" in n for n in begun["notes"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("random:9", "--pool", "pool"), "gives 2 such pairs of different references"),
        (("random:1", "--pool", "rp"), "has the role dev"),
        (("random:1", "--pool", "nowhere"), "no cohort 'nowhere'"),
        (("per_error", "--pool", "pool"), "no pair with an error of the category"),
        (("odd:1",), "names no shots"),
    ],
)
def test_what_cannot_be_drafted(judged, words, why):
    """Nothing is left behind."""
    assert why in begin(judged, *words, code=1)
    drafts = judged.private / "drafts" / "listed"
    assert not drafts.exists() or not any(drafts.iterdir())


def test_a_first_version_may_have_shots(judged):
    """Committed at once, as any first version."""
    done = call(
        judged,
        *("prompt", "new", "third", "--from", "green@v1"),
        *("--shots", "injected:2", "--pool", "pool"),
    )
    assert done.exit_code == 1
    assert "references for" in str(done.exception)
    done = call(
        judged,
        *("prompt", "new", "third", "--contract", "error_list"),
        *("--shots", "injected:2"),
    )
    assert done.exit_code == 0, (done.output, done.exception)
    version = read_version(judged, "third@v1")
    assert len(with_shots(judged, version).shown) == 2
    assert call(judged, "prompt", "new", "f", "--pool", "pool").exit_code == 1
    refused = call(judged, "prompt", "new", "f", "--shots", "random:1")
    assert "judges no pairs" in str(refused.exception)
