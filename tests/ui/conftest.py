"""A served workbench on a synthetic workspace, and a real browser to drive it."""

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import TimeoutError as BrowserTimeout
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import WorkspacePaths
from loop.core.people.roster import add_user, users_path
from loop.core.people.users import UserRole
from tests.ui.forked import serving

PASSWORD = "correct horse battery"
PEOPLE = {
    "Dr Reader": (UserRole.READER,),
    "Dr Second Reader": (UserRole.READER,),
    "Dr Reviewer": (UserRole.REVIEWER,),
    "Dr Other Reviewer": (UserRole.REVIEWER,),
    "Dr Editor": (UserRole.EDITOR,),
    "Dr Approver": (UserRole.APPROVER,),
    "Admin": (UserRole.ADMIN,),
}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = {"width": 1280, "height": 800}
TABLET = {"width": 820, "height": 1180}
DRAWN = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
FADED = "!document.getAnimations().some((one) => one instanceof CSSTransition)"


@pytest.fixture(scope="session")
def demo_root(tmp_path_factory):
    """Make the demo's workspace once: version 1 was run, its cases wait for review."""
    root = tmp_path_factory.mktemp("demo") / "ws"
    made = CliRunner().invoke(app, ["demo", str(root), "--rounds", "0", "--json"])
    assert made.exit_code == 0, made.output
    return root


@pytest.fixture
def demo(demo_root, tmp_path):
    """Return a copy of the demo's workspace that a test may change."""
    root = tmp_path / "ws"
    shutil.copytree(demo_root, root)
    return WorkspacePaths(root)


@pytest.fixture(scope="session")
def peopled(demo_root, tmp_path_factory):
    """Return a demo with users, made once: hashing passwords is slow on purpose."""
    root = tmp_path_factory.mktemp("peopled") / "ws"
    shutil.copytree(demo_root, root)
    workspace = WorkspacePaths(root)
    add_people(workspace)
    return workspace


@pytest.fixture
def people(demo, peopled):
    """Give the workspace one user of each role, all with the same password."""
    shutil.copy2(users_path(peopled), users_path(demo))


def add_people(workspace):
    """Add one user of each role, all with the same password."""
    for name, roles in PEOPLE.items():
        add_user(workspace, name, roles, PASSWORD)


@pytest.fixture
def served(demo, people):
    """Serve a fresh demo with users: everyone signs in."""
    with serving(demo) as url:
        yield url


@pytest.fixture
def served_alone(demo):
    """Serve a fresh demo without users: one person on this machine, no sign-in."""
    with serving(demo) as url:
        yield url


@pytest.fixture(scope="session")
def shared(peopled):
    """Serve one demo with users for all tests that only look."""
    with serving(peopled) as url:
        yield url


@pytest.fixture(scope="session")
def shared_alone(demo_root, tmp_path_factory):
    """Serve one demo without users for all tests that only look."""
    root = tmp_path_factory.mktemp("alone") / "ws"
    shutil.copytree(demo_root, root)
    with serving(WorkspacePaths(root)) as url:
        yield url


@pytest.fixture(scope="session")
def chromium():
    """Start Debian's Chromium once for all tests, without its windows if it can."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium):
    """Return a function that opens a page in a browser session of its own.

    What the page asks of the network, logs as an error or throws is kept on it as
    `page.asked`, `page.complaints`; what is not answered yet as `page.pending`.
    """
    with ExitStack() as stack:

        def make(size=DESKTOP, **options):
            context = chromium.new_context(viewport=size, **options)
            stack.callback(context.close)
            # Speed has a benchmark: a busy machine is no failure.
            context.set_default_timeout(90_000)
            page = context.new_page()
            page.asked, page.pending, page.complaints = [], set(), []
            page.on("request", lambda request: page.asked.append(request.url))
            page.on("request", lambda request: page.pending.add(request))
            page.on("requestfinished", lambda request: page.pending.discard(request))
            page.on("requestfailed", lambda request: page.pending.discard(request))
            page.on("pageerror", lambda error: page.complaints.append(str(error)))
            page.on("dialog", lambda dialog: _refuse(page, dialog))
            return page

        yield make


def _refuse(page, dialog):
    """Complain of a dialog and close it: an open one holds the page for ever."""
    page.complaints.append(f"{dialog.type}: {dialog.message}")
    dialog.dismiss()


def in_a_loop(make):
    """Return what `make` makes: without an event loop Gradio leaks one of its own."""

    async def made():
        return make()

    return awaited(made)


def awaited(ask):
    """Return what the coroutine function `ask` gives, in a thread of its own.

    A browser that is driven has its own event loop in this one.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(ask())).result()


def sign_in(page, url, name, password=PASSWORD):
    """Sign `name` in and wait for the workbench."""
    page.goto(f"{url}/sign-in")
    page.fill("input[name=name]", name)
    page.fill("input[name=password]", password)
    page.click("button[type=submit]")
    page.wait_for_selector("#bar .who-name")


def open_tab(page, name):
    """Choose a page of the workbench by its tab; a narrow screen has some in a menu."""
    tab = page.locator("#pages").get_by_role("tab", name=name, exact=True)
    more = page.get_by_role("button", name="More tabs")
    listed = page.locator(".overflow-dropdown").get_by_text(name, exact=True)
    tab.or_(listed).first.wait_for(state="attached")
    for patience_ms in (3_000, 3_000, 3_000, 90_000):
        # A window that became narrow moves the tab away while one reaches for it.
        with suppress(BrowserTimeout):
            for one in [tab] if tab.count() else [more, listed]:
                one.click(timeout=patience_ms)
            return
    raise AssertionError(f"the tab {name} could not be chosen")


def press(page, *keys):
    """Press keys as a hand does: what comes faster is taken for a text."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(120)
        page.evaluate(DRAWN)


def rest(page, quiet_ms=600):
    """Wait until the page has asked the server nothing for `quiet_ms`, and drawn it.

    Gradio fills a form more than once while a page opens, and later on a busy machine.
    """
    quiet = 0
    while quiet < quiet_ms:
        before = len(page.asked)
        page.wait_for_timeout(100)
        page.evaluate(DRAWN)
        waits = any("/run/" in one.url for one in page.pending)
        quiet = 0 if waits or len(page.asked) != before else quiet + 100


def barriers(page):
    """Return what stands in a reader's way in either size, and in either theme.

    The serious and critical findings of axe-core on what is shown, and scrolling
    sideways.
    """
    found = []
    for size, scheme in ((DESKTOP, "light"), (TABLET, "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "dark => document.body.classList.contains('dark') === dark",
            arg=scheme == "dark",
        )
        # A colour that fades into another is not what people read.
        page.wait_for_function(FADED)
        found += [f"{size['width']} {scheme}: {one}" for one in serious(page)]
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > size["width"]:
            found.append(f"{size['width']} {scheme}: {width} pixels wide")
    return found


LOOKS = """(most) => {
  const count = new Map();
  for (const one of document.body.querySelectorAll('*')) {
    one.removeAttribute('data-look');
    const text = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const field = one.matches('input, select, textarea');
    if (!(text || field) || !one.getClientRects().length) continue;
    const own = getComputedStyle(one);
    const off = Boolean(one.closest(':disabled, [aria-disabled=true], [inert]'));
    const look = [own.color, own.fontSize, own.fontWeight, own.textShadow, off];
    for (let at = one; at; at = at.parentElement) {
      const { backgroundColor, backgroundImage, opacity, position, clipPath, filter } =
        getComputedStyle(at);
      look.push(backgroundColor, backgroundImage, opacity, position, clipPath, filter);
    }
    const key = JSON.stringify(look);
    count.set(key, (count.get(key) || 0) + 1);
    if (field || count.get(key) <= most) one.setAttribute('data-look', '');
  }
}"""
ALIKE = 3
"""Texts of one look whose contrast is measured; the others have the same."""

AXE = Axe(
    f"{AXE_SCRIPT};"
    "axe.configure({rules: [{id: 'color-contrast', selector: '[data-look]'}]});"
)


def serious(page):
    """Return the serious and critical findings of axe-core on what is shown."""
    page.evaluate(LOOKS, ALIKE)
    # What holds is looked at all the same, and not described: half of the time.
    only = {"resultTypes": ["violations"]}
    found = AXE.run(page, options=only).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
