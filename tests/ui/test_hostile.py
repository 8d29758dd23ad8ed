"""What an attacker sends is refused before anything looks at it."""

import shutil
from contextlib import closing
from itertools import cycle

import pytest

from loop.core.paths import WorkspacePaths
from tests.ui.conftest import PEOPLE
from tests.ui.forked import serving
from tests.ui.hostile import (
    Trap,
    ask,
    ask_all,
    copies_of,
    functions_of,
    planted_in,
    set_traps,
    sign_in,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trapped(peopled, tmp_path_factory):
    """Serve a demo with planted files; return address, values, files."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copytree(peopled.root, folder / "ws")
    (folder / "outside").mkdir()
    workspace = WorkspacePaths(folder / "ws")
    with serving(workspace) as url:
        traps = set_traps(workspace, folder / "outside")
        yield url, traps, workspace, planted_in(workspace)


def test_no_function_touches_a_file_that_a_value_names(trapped):
    """Every function, for every role and every kind of file: refused, copied nowhere.

    An endless device or a pipe would hang the server for everybody. An editor tries
    every kind, everybody else the next one.
    """
    url, traps, workspace, planted = trapped
    others = [name for name in PEOPLE if name != "Dr Editor"]
    found = ask_all(url, traps, ("Dr Editor",))
    for name, trap in zip(others, cycle(traps), strict=False):
        found += ask_all(url, [trap], (name,))
    tries = len(traps) + len(others)
    assert len(found) == tries * len({one.function for one in found})
    assert {one.status for one in found} == {500}
    said = {one.text for one in found if "takes the role" not in one.text}
    assert len(said) == 1
    assert "does not offer" in said.pop()
    assert copies_of(workspace, planted) == []


def test_who_lacks_the_right_learns_nothing_of_the_values(trapped):
    """The right is asked first: a reader hears the same of good and of bad values."""
    url, traps, *_ = trapped
    with closing(sign_in(url, "Dr Reader")) as client:
        values = functions_of(client)["review_submit"]
        good = Trap("plain", "words")
        told = {
            ask(client, "Dr Reader", "review_submit", values, trap).text
            for trap in (good, *traps)
        }
    assert len(told) == 1
    assert "takes the role" in told.pop()


def test_a_tab_of_another_person_is_not_taken_over(trapped):
    """Where a tab is, the server keeps under a name that the browser gave it."""
    url, *_ = trapped
    with closing(sign_in(url, "Dr Editor")) as owner:
        first = ask(owner, "Dr Editor", "open", 0, Trap("none", None))
        assert first.status == 200
    with closing(sign_in(url, "Dr Other Reviewer")) as other:
        second = ask(other, "Dr Editor", "open", 0, Trap("none", None))
    assert "another person" in second.text


@pytest.mark.parametrize(
    "body",
    [
        {"data": [], "fn_index": 0, "batched": True},
        {"data": [], "fn_index": 10**6},
        {"data": [], "fn_index": -1},
        {"data": [], "session_hash": "x" * 100_000},
        {"data": [[[]]], "event_data": [[[]]]},
    ],
    ids=["batched", "no such number", "negative", "long name", "nested"],
)
def test_strange_events_are_refused_in_words(trapped, body):
    """Without a traceback and without a copy of what was sent."""
    url, *_ = trapped
    with closing(sign_in(url, "Dr Editor")) as client:
        answer = client.post("/gradio_api/run/open", json=body)
    assert answer.status_code >= 400
    assert "Traceback" not in answer.text
    assert "xxx" not in answer.text


@pytest.mark.parametrize("path", ["/gradio_api/upload", "/gradio_api/file=/etc/hosts"])
def test_the_ways_of_gradio_for_files_are_closed(trapped, path):
    """Files have one way in, and none out but the documents."""
    url, *_ = trapped
    with closing(sign_in(url, "Admin")) as client:
        assert client.get(path).status_code == 404
        assert client.post(path, content=b"x").status_code == 404
