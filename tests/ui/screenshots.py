"""Take the pictures of the workbench from the synthetic demo.

Run ``python -m tests.ui.screenshots FOLDER`` from the repository root; every page is
taken at the size of a laptop, a tablet and a phone, in both themes. With ``--readme``
it stages and takes the four pictures of README and manual, kept in
``reports/workbench/``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import WorkspacePaths, bundled
from loop.review.verdict_files import ImportDefaults, take_file
from loop.run.store import open_store
from tests.ui.conftest import (
    DESKTOP,
    FLAGS,
    TABLET,
    add_people,
    open_tab,
    press,
    sign_in,
)
from tests.ui.forked import serving
from tests.ui.test_review_browser import MARK

PAGES = (
    *("Overview", "Review", "Readers", "Judges"),
    *("Discover", "Revise", "Versions", "Runs", "Files"),
)
PHONE = {"width": 400, "height": 800}
PAIR = "[data-case=demo-dev-037][data-label=interstitial_lung_disease]"


def main() -> None:
    """Take every picture, or those of the README and the manual."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readme", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        root = Path(scratch) / "ws"
        CliRunner().invoke(app, ["demo", str(root), "--rounds", "1", "--json"])
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        take_those = take_readme if asked.readme else take_all
        take_those(browser, WorkspacePaths(root), asked.folder)
        browser.close()


def take_all(browser: Browser, workspace: WorkspacePaths, folder: Path) -> None:
    """Take every page in every size and theme."""
    with serving(workspace) as url:
        sizes = {"laptop": DESKTOP, "tablet": TABLET, "phone": PHONE}
        for size_name, size in sizes.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport=DESKTOP, color_scheme=scheme)
                page = context.new_page()
                page.goto(url)
                page.wait_for_selector("#bar .who-name")
                for name in PAGES:
                    # On a phone some tabs are behind a menu.
                    page.set_viewport_size(DESKTOP)
                    open_tab(page, name)
                    page.set_viewport_size(size)
                    take(page, folder / f"{name.lower()}-{size_name}-{scheme}.png")
                context.close()


def take_readme(browser: Browser, workspace: WorkspacePaths, folder: Path) -> None:
    """Take the gates, a form begun, a blinded reading, and then a finished check."""
    add_people(workspace)
    with serving(workspace) as url:
        with seat(browser, url, "Dr Editor") as page:
            open_tab(page, "Overview")
            page.wait_for_selector("table.gates tbody tr")
            take(page, folder / "overview.png")
        with seat(browser, url, "Dr Reviewer") as page:
            begin_a_form(page)
            take(page, folder / "review.png")
        with seat(browser, url, "Dr Reader", scheme="dark") as page:
            begin_a_reading(page)
            take(page, folder / "readers.png")
    given = bundled() / "labels" / "demo" / "verdicts_2.yaml"
    with open_store(workspace) as store:
        take_file(workspace, store, given, ImportDefaults("Dr Reviewer", "demo_dev"))
    with serving(workspace) as url, seat(browser, url, "Dr Editor") as page:
        check_a_draft(page)
        take(page, folder / "revise.png")


@contextmanager
def seat(browser: Browser, url: str, name: str, scheme: str = "light"):
    """Give somebody who is signed in at a laptop."""
    context = browser.new_context(viewport=DESKTOP, color_scheme=scheme)
    page = context.new_page()
    sign_in(page, url, name)
    yield page
    context.close()


def begin_a_form(page: Page) -> None:
    """Say that the model is wrong; begin an exemplar with words marked in the text."""
    open_tab(page, "Review")
    page.click(PAIR)
    page.wait_for_selector(f"{PAIR}[aria-current=true]")
    for key in ("1", "a", "E"):
        press(page, key)
    page.evaluate(MARK, "Cystic fibrosis")
    press(page, "g")
    page.wait_for_timeout(500)
    press(page, "i")
    page.keyboard.type("Airway changes of known cystic fibrosis.")
    page.keyboard.press("Escape")


def begin_a_reading(page: Page) -> None:
    """Give the first values of a case; nothing of the model is shown."""
    open_tab(page, "Readers")
    page.wait_for_selector(".reading-row")
    for row, value in enumerate(("absent",) * 8 + ("present",)):
        page.locator(f".reading-row .is-{value}").nth(row).click()
        page.wait_for_timeout(200)


def check_a_draft(page: Page) -> None:
    """Build a draft of all verdicts on the wording, check it, go to what came out."""
    open_tab(page, "Revise")
    page.locator("[data-all=wording]").check()
    page.click("#revise-build")
    page.wait_for_selector("#revise-draft .diff")
    page.click("#revise-run")
    page.wait_for_selector("#revise-check .word")
    page.wait_for_timeout(500)
    page.evaluate("document.querySelector('#step-3').scrollIntoView()")


def take(page: Page, target: Path) -> None:
    """Take what is shown, once it is quiet, in few enough colours to be small."""
    page.wait_for_timeout(1500)
    with Image.open(BytesIO(page.screenshot())) as shown:
        shown.convert("RGB").quantize(256).save(target, optimize=True)


if __name__ == "__main__":
    main()
