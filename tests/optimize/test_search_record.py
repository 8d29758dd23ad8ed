"""A search is kept so that it goes on, repeats itself, and cannot be forged."""

import os
import shutil
import stat

import pytest

from loop.core.errors import ConflictError, DataError
from loop.core.ledger import read_ledger
from loop.evaluate.tried import versions_tried
from loop.labels.cohort import read_cohort
from loop.optimize.search_record import (
    SearchSpec,
    library_versions,
    open_search,
    read_finished,
)
from loop.run.store import open_store
from tests.optimize.scenes import SEARCHER


def spec_of(**changes):
    """Return what a search depends on."""
    given = {
        "prompt": "tiny@v1",
        "prompt_digest": "a",
        "cohort": "dev",
        "cohort_digest": "b",
        "reference": 1,
        "reference_digest": "c",
        "protocol_digest": "d",
        "splits": "e",
        "engine": "rules",
        "asker": "f",
        "optimizer": "terms",
        "seed": 0,
        "budget": 10,
    }
    return SearchSpec(**{**given, **changes})


def searched(workspace):
    """Return the entries of searches."""
    return [one for one in read_ledger(workspace.ledger) if one.action == "searched"]


def test_a_killed_search_goes_on(workspace):
    """What was remembered is there; half a line of a kill is not."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.remember("proposal", "1", {"text": "ä"})
    with (folder.path / "journal.jsonl").open("ab") as stream:
        stream.write(b'["proposal","2"')
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        assert folder.result is None
        assert folder.recall("proposal", "1") == {"text": "ä"}
        assert folder.recall("proposal", "2") is None
        folder.remember("proposal", "2", 3)
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        assert folder.recall("proposal", "2") == 3


def test_a_finished_search_gives_its_result_again(workspace):
    """It tells the ledger once, and takes no more."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.finish({"best": 1}, candidates=40, asked=600)
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        assert folder.result == {"best": 1}
        with pytest.raises(ConflictError, match="is finished"):
            folder.remember("proposal", "1", 1)
    (entry,) = searched(workspace)
    assert entry.reason == "terms scored 40 candidates on dev"
    assert entry.payload["candidates"] == 40


def test_one_candidate_is_no_candidates(workspace):
    """An auditor reads the entry."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.finish({"best": 1}, candidates=1, asked=60)
    (entry,) = searched(workspace)
    assert entry.reason == "terms scored 1 candidate on dev"


def test_a_kill_before_the_entry_loses_nothing(workspace, monkeypatch):
    """The entry is made when the search is opened again."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        monkeypatch.setattr(folder, "_record", lambda data, now: None)
        folder.finish({}, candidates=1, asked=1)
    assert not searched(workspace)
    with open_search(workspace, spec_of(), SEARCHER):
        assert len(searched(workspace)) == 1


@pytest.mark.parametrize("file", ["result.json", "journal.jsonl", "search.json"])
def test_a_folder_changed_by_hand_is_refused(workspace, file):
    """Whichever file it was, and whatever digest was written beside."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.remember("proposal", "1", 1)
        folder.finish({"best": 1}, candidates=1, asked=1)
    path = folder.path / file
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    with (
        pytest.raises(DataError, match=f"{file} was changed"),
        open_search(workspace, spec_of(), SEARCHER),
    ):
        pass


def test_a_forged_result_with_its_digest_is_refused(workspace):
    """The ledger knows which result was found."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.finish({"best": 1}, candidates=1, asked=1)
    told = searched(workspace)
    (folder.path / "result.json").unlink()
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder._record = lambda data, now: None
        folder.finish({"best": 2}, candidates=1, asked=1)
    with (
        pytest.raises(DataError, match=r"result\.json was changed"),
        open_search(workspace, spec_of(), SEARCHER),
    ):
        pass
    assert searched(workspace) == told


def test_a_search_that_was_made_again_is_the_later_entry(workspace):
    """The advice to remove a folder and search again leaves two entries of one key."""
    for asked in (600, 700):
        with open_search(workspace, spec_of(), SEARCHER) as folder:
            folder.finish({"best": 1}, candidates=40, asked=asked)
        kept = (folder.path / "result.json").read_bytes()
        shutil.rmtree(folder.path)
    first, second = searched(workspace)
    assert read_finished(workspace, second) is None
    folder.path.mkdir()
    (folder.path / "result.json").write_bytes(kept)
    assert read_finished(workspace, first) is None
    assert read_finished(workspace, second)["asked"] == 700
    (folder.path / "result.json").write_bytes(kept.replace(b"700", b"800"))
    for entry in (first, second):
        with pytest.raises(DataError, match=r"result\.json was changed"):
            read_finished(workspace, entry)


def test_two_processes_do_not_make_the_same_search(workspace):
    """The second one is told so; another search is free."""
    with open_search(workspace, spec_of(), SEARCHER):
        refused = pytest.raises(ConflictError, match="under way in another process")
        with refused, open_search(workspace, spec_of(), SEARCHER):
            pass
        with open_search(workspace, spec_of(seed=1), SEARCHER):
            pass


def test_only_its_owner_may_look(workspace):
    """What a search keeps may quote cases."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.remember("proposal", "1", 1)
        for path in (folder.path.parent, folder.path):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(folder.path / "journal.jsonl").st_mode) == 0o600


def test_a_restart_forgets_an_unfinished_search_only(workspace):
    """A finished one is a fact."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.remember("proposal", "1", 1)
    with open_search(workspace, spec_of(), SEARCHER, restart=True) as folder:
        assert folder.recall("proposal", "1") is None
        folder.finish({"best": 1}, candidates=1, asked=1)
    with open_search(workspace, spec_of(), SEARCHER, restart=True) as folder:
        assert folder.result == {"best": 1}


def test_a_search_that_does_not_repeat_itself_is_told(workspace):
    """Two values for one thing cannot both be resumed."""
    with open_search(workspace, spec_of(), SEARCHER) as folder:
        folder.remember("proposal", "1", 1)
        folder.remember("proposal", "1", 1)
        with pytest.raises(ConflictError, match="does not repeat itself"):
            folder.remember("proposal", "1", 2)


def test_candidates_count_as_tried(taught):
    """A search that looked at 400 wordings tried 400, once however often it is told."""
    digest = read_cohort(taught.workspace, "dev").digest
    for seed, engine in ((0, "rules"), (1, "rules"), (2, "openai:x")):
        spec = spec_of(seed=seed, engine=engine, cohort_digest=digest)
        with open_search(taught.workspace, spec, SEARCHER) as folder:
            folder.finish({}, candidates=400, asked=1)
    spec = spec_of(cohort_digest="other cases")
    with open_search(taught.workspace, spec, SEARCHER) as folder:
        folder.finish({}, candidates=7, asked=1)
    with open_store(taught.workspace) as store:
        tried = versions_tried(taught.workspace, store, "tiny", "dev")
    assert (tried.searches, tried.searched) == (3, 1200)
    assert tried.count == 1200


def test_packages_that_are_not_there_are_left_out():
    """A version is told only of what proposes."""
    assert library_versions("numpy", "no-such-package").keys() == {"numpy"}
