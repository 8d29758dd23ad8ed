"""Every wording that could have been chosen is counted, once."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event
from loop.evaluate.tried import WordingStatus, signed_engine, versions_tried
from loop.labels.cohort import read_cohort
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.run.store import open_store
from tests.evaluate.tried_scenes import tried_check


def count(trials, cohort="dev", **options):
    """Return what was tried, with a store of its own."""
    with open_store(trials.workspace) as store:
        return versions_tried(trials.workspace, store, "tiny", cohort, **options)


def test_versions_and_drafts_count_repeats_do_not(trials):
    """The same wording twice is one attempt; a draft is one like any other."""
    first = trials.version(1, "effusion")
    trials.version(2, "effusion", "fluid", parent=first)
    trials.version(0, "fluid", parent=first, draft="d1")
    for ref in ("tiny@v1", "tiny@v2", "tiny@draft:d1", "tiny@v1"):
        trials.run(ref)
    tried = count(trials)
    names = [one.ref for one in tried.attempts]
    assert names == ["tiny@v1", "tiny@v2", "tiny@draft:d1"]
    assert (tried.count, len(tried.runs), tried.gone) == (3, 3, ())
    assert tried.uncommitted == 1


def test_a_draft_without_a_first_draw_counts_all_the_same(trials):
    """A check over several draws asks for later ones only."""
    first = trials.version(1, "effusion")
    trials.version(0, "fluid", parent=first, draft="d1")
    trials.run("tiny@v1")
    for draw in (1, 2):
        for ref in ("tiny@v1", "tiny@draft:d1"):
            trials.run(ref, draw=draw)
    tried = count(trials)
    assert [one.ref for one in tried.attempts] == ["tiny@v1", "tiny@draft:d1"]
    assert [one.run.spec.draw for one in tried.attempts] == [0, 1]
    assert tried.elsewhere == 0


def test_a_draft_that_became_a_version_counts_once(trials):
    """Identity is the wording, not its name."""
    first = trials.version(1, "effusion")
    trials.version(0, "fluid", parent=first, draft="d1")
    trials.version(2, "fluid", parent=first)
    for ref in ("tiny@v1", "tiny@draft:d1", "tiny@v2"):
        trials.run(ref)
    assert count(trials).count == 2


def test_a_rejected_draft_without_its_run_still_counts(trials):
    """Whoever clears the store has tried it all the same; it is named."""
    first = trials.version(1, "effusion")
    run = trials.run("tiny@v1")
    gone = trials.version(0, "fluid", parent=first, draft="d1")
    trials.reject(gone, "broke anchors", check=tried_check("x1", "x2"))
    tried = count(trials)
    assert (tried.count, tried.gone) == (2, ("tiny@draft:d1",))
    assert tried.attempts[-1].standing is WordingStatus.REJECTED
    assert tried.attempts[0].run.id == run


def test_a_draft_that_was_never_run_was_not_tried(trials):
    """Lint stopped it: nobody saw its score."""
    first = trials.version(1, "effusion")
    trials.run("tiny@v1")
    draft = trials.version(0, "fluid", parent=first, draft="d1")
    trials.reject(draft, "lint found errors", check={"cohort": "dev", "runs": []})
    assert count(trials).count == 1


def test_other_engines_and_parts_of_the_cohort_are_told_apart(trials):
    """They were tried, but their scores do not compare."""
    first = trials.version(1, "effusion")
    trials.version(2, "fluid", parent=first)
    trials.run("tiny@v2", limit=5)
    trials.run("tiny@v1")
    tried = count(trials)
    assert (tried.count, tried.elsewhere) == (1, 1)
    other = trials.version(0, "base", parent=first, draft="d2")
    trials.reject(other, "no", check=tried_check("x", engine="openai:m"))
    assert count(trials).count == 1


@pytest.mark.slow
def test_scores_of_cases_that_were_replaced_do_not_count(trials):
    """Another cohort under the same name is another choice."""
    trials.version(1, "effusion")
    trials.evaluate(trials.run("tiny@v1"))
    assert count(trials).count == 1
    trials.cohort(replace=True, cases=24)
    assert count(trials).count == 0
    trials.run("tiny@v1")
    assert count(trials).count == 1


def test_the_ledger_alone_tells_what_was_evaluated_elsewhere(trials):
    """A checkout without the private store still knows how many were tried."""
    trials.version(1, "effusion")
    trials.evaluate(trials.run("tiny@v1"))
    trials.workspace.store.unlink()
    tried = count(trials)
    assert (tried.count, tried.gone, tried.engine) == (1, ("tiny@v1",), "")


def test_the_same_cases_under_another_name_are_no_fresh_start(trials):
    """The choice was made on the cases, whatever their cohort was called."""
    trials.version(1, "effusion")
    trials.evaluate(trials.run("tiny@v1"))
    trials.workspace.store.unlink()
    options = ImportOptions(name="again", role="dev", source="Synthetic", licence="-")
    path = trials.folder / "dev.csv"
    import_cohort(trials.workspace, path, options, actor=Actor(name="Dr A. Example"))
    assert count(trials, cohort="again").gone == ("tiny@v1",)


def test_a_missing_cohort_is_named(trials):
    """Not an empty count."""
    with pytest.raises(DataError, match="other"):
        count(trials, cohort="other")


def test_what_became_of_a_draft_is_what_the_ledger_says(trials):
    """Objections reject it, none leave it a draft; a commit outlasts both."""
    draft = trials.version(0, "fluid", draft="d1")

    def standing():
        (one,) = count(trials).attempts
        return one.standing

    trials.reject(draft, check=tried_check("x1"))
    assert standing() is WordingStatus.DRAFT
    trials.reject(draft, "broke anchors", check=tried_check("x1"))
    assert standing() is WordingStatus.REJECTED
    assert count(trials).uncommitted == 1
    trials.commit(draft, check=tried_check("x1"))
    trials.reject(draft, "broke anchors", check=tried_check("x1"))
    assert standing() is WordingStatus.COMMITTED
    assert (count(trials).uncommitted, count(trials).count) == (0, 1)


def told(trials, action, subject, **payload):
    """Write what happened into the ledger, with the digest of the cases."""
    event = Event(action=action, subject=subject, reason="why", payload=payload)
    append_event(trials.workspace.ledger, event, Actor(name="Dr A. Example"))


def test_candidates_of_searches_on_the_same_cases_count(trials):
    """Each search once, by key and result; others, and of other prompts, do not."""
    trials.version(1, "effusion")
    trials.run("tiny@v1")
    digest = read_cohort(trials.workspace, "dev").digest
    base = {"cohort_digest": digest, "engine": "rules", "key": "k", "result": "a"}
    told(trials, "searched", "tiny@v1", **base, candidates=5)
    told(trials, "searched", "tiny@v1", **base, candidates=5)
    told(trials, "searched", "tiny@v1", **{**base, "result": "b"}, candidates=7)
    told(trials, "searched", "tiny@v1", **{**base, "key": "l", "engine": ""})
    told(trials, "searched", "other@v1", **{**base, "key": "m"}, candidates=100)
    told(trials, "searched", "tiny@v1", **{**base, "engine": "m"}, candidates=1000)
    elsewhere = {**base, "cohort_digest": "x", "key": "n"}
    told(trials, "searched", "tiny@v1", **elsewhere, candidates=10_000)
    tried = count(trials)
    assert (tried.searches, tried.searched, tried.count) == (3, 12, 13)
    assert (tried.prompt, tried.cohort, tried.engine) == ("tiny", "dev", "rules")


def test_what_only_the_ledger_knows_counts_where_cases_and_engine_are_the_same(trials):
    """A check or a score on all cases; where the engine is not told, it counts too."""
    first = trials.version(1, "effusion")
    run = trials.run("tiny@v1")
    score = {"cohort": "dev", "run": "gone", "not_run": 0}
    signed = "acc+f1|tiny@v9:aaaaaa|{}|dev:ref1|unc:wrong"
    for number, (payload, action) in enumerate(
        (
            ({**score, "signature": signed.format("rules")}, "evaluated"),
            ({**score, "signature": signed.format("openai:m")}, "evaluated"),
            ({**score, "signature": "early"}, "evaluated"),
            ({**score, "not_run": 2, "signature": "early"}, "evaluated"),
            ({**score, "cohort": "other", "signature": "early"}, "evaluated"),
            ({**score, "run": run, "signature": "early"}, "evaluated"),
            ({"check": {"cohort": "dev", "runs": ["x"]}}, "draft_rejected"),
            ({"check": {"cohort": "dev", "runs": []}}, "draft_rejected"),
            ({"check": None}, "draft_committed"),
            ({"check": {"cohort": "dev", "runs": ["x", run]}}, "draft_committed"),
        )
    ):
        name = "digest" if action.startswith("draft") else "prompt_digest"
        told(trials, action, f"tiny@v{10 + number}", **{name: f"d{number}"}, **payload)
    tried = count(trials)
    assert tried.attempts[0].digest == first.digest
    assert tried.gone == ("tiny@v10", "tiny@v12", "tiny@v16")
    standings = [one.standing for one in tried.attempts]
    committed = WordingStatus.COMMITTED
    assert standings == [committed, committed, committed, WordingStatus.DRAFT]


def test_a_check_that_names_no_engine_counts_beside_every_engine(trials):
    """One recorded before engines were named may have been of any of them."""
    trials.version(1, "effusion")
    trials.run("tiny@v1")
    for ref, engine in (("tiny@v2", {}), ("tiny@v3", {"engine": "rules"})):
        check = {"cohort": "dev", "runs": ["x"], **engine}
        told(trials, "draft_rejected", ref, digest=ref, check=check)
    with open_store(trials.workspace) as store:
        (record,) = store.find_runs()
    other = replace(record, spec=replace(record.spec, engine="ollama:m"))
    assert count(trials).gone == ("tiny@v2", "tiny@v3")
    assert count(trials, like=other).gone == ("tiny@v2",)


def test_a_chosen_run_stands_for_its_own_wording(trials):
    """Its attempt is as old as the first run of it; the others have their newest."""
    first = trials.version(1, "effusion")
    trials.version(2, "fluid", parent=first)
    old = trials.run("tiny@v1")
    other = trials.run("tiny@v2")
    with open_store(trials.workspace) as store:
        record = store.find_runs(ids=[old])[0]
    tried = count(trials, like=record)
    assert [one.run.id for one in tried.attempts] == [old, other]
    with open_store(trials.workspace) as store:
        record = store.find_runs(ids=[other])[0]
    assert [one.run.id for one in count(trials, like=record).attempts] == [old, other]


@pytest.mark.parametrize(
    ("signature", "engine"),
    [
        ("acc+f1|p:a|rules|dev:ref1|unc:wrong", "rules"),
        ("acc+f1|p:a|rules|dev:ref1", "rules"),
        ("acc+f1|p:a|rules", ""),
        ("", ""),
    ],
)
def test_an_engine_is_named_by_the_third_part_of_a_signature(signature, engine):
    """One that is too short names none."""
    assert signed_engine(signature) == engine
