"""What several rooms' tests need: a workspace, and the optional data folder."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from loop.core.ledger import Actor, Event, chain_event, format_entry, read_ledger
from loop.core.paths import WorkspacePaths, bundled, init_workspace

# A busy machine is no failure: tests count what is done, and bound no measured time.
settings.register_profile("ranloop", deadline=None)
settings.load_profile("ranloop")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the server that takes minutes; end with what drives a browser.

    The browser's driver has an event loop in the thread of the tests, for good. What
    drives it has a second try, which the summary names: on a busy machine a page may
    draw itself again between two steps of a test.
    """
    here = Path(__file__).parent
    for item in items:
        if "new_page" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1))
    items.sort(key=lambda item: _turn(_place(item, here)))


def _turn(place: str) -> int:
    if place == "engines/test_vllm_real.py":
        return 0
    if not place.startswith("ui/"):
        return 1
    # Where files are shared out whole, the longest must not be the last.
    return (
        2 if place in ("ui/test_review_browser.py", "ui/test_readers_browser.py") else 3
    )


def _place(item: pytest.Item, root: Path) -> str:
    return Path(os.path.relpath(item.path, root)).as_posix()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be tested: a shell's background jobs start with it ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def no_power_failure() -> Iterator[None]:
    """Let no test wait for the disk: only a power failure could lose what it wrote."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what ranloop remembers on a machine out of the home of whoever tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def shipped_workspace(target: Path) -> WorkspacePaths:
    """Make a workspace that holds all that ships: every version, release and entry."""
    made = init_workspace(target)
    for part in ("prompts", "labels", "reports/releases"):
        shutil.copytree(bundled() / part, made.root / part, dirs_exist_ok=True)
    return made


@pytest.fixture(scope="session")
def first_version(tmp_path_factory: pytest.TempPathFactory) -> WorkspacePaths:
    """Return a workspace to copy, with the first version of the shipped extractor."""
    made = shipped_workspace(tmp_path_factory.mktemp("first") / "ws")
    keep_first_version(made)
    return made


@pytest.fixture
def workspace(tmp_path: Path, first_version: WorkspacePaths) -> WorkspacePaths:
    """Make a fresh workspace in which only the extractor's first version exists."""
    root = tmp_path.resolve() / "ws"
    return WorkspacePaths(Path(shutil.copytree(first_version.root, root)))


def keep_first_version(workspace: WorkspacePaths) -> None:
    """Take back the shipped history after v1, so that tests do not depend on it."""
    for folder in workspace.prompts.glob("*/v*"):
        if folder != workspace.prompts / "extractor" / "v1":
            shutil.rmtree(folder)
            if not any(folder.parent.iterdir()):
                folder.parent.rmdir()
    shutil.rmtree(workspace.releases, ignore_errors=True)
    first = read_ledger(workspace.ledger)[0]
    # Tests that have a clock of their own set it to a later day than this one.
    event = Event(
        action=first.action,
        subject=first.subject,
        reason=first.reason,
        payload=first.payload,
    )
    actor = Actor(name=first.actor, role=first.role)
    entry = chain_event(event, actor, "2025-01-01T00:00:00Z", None)
    workspace.ledger.write_bytes(format_entry(entry))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of real reports, which the project may not ship."""
    named = os.environ.get("RANLOOP_DATA")
    if not named:
        pytest.skip("RANLOOP_DATA is not set: these reports do not ship with ranloop")
    return Path(named)


@pytest.fixture(scope="session")
def labels_folder() -> Path:
    """Return the shipped ``labels/`` folder."""
    return bundled() / "labels"
