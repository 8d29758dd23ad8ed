"""Take the pictures of the README from the synthetic demo.

Run ``python -m tests.ui.screenshots FOLDER`` from the repository root; every page is
taken at the size of a laptop and of a tablet, in both themes. The README shows four of
them, kept in ``reports/workbench/``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.paths import Workspace
from tests.ui.conftest import DESKTOP, FLAGS, TABLET, open_tab, serving

PAGES = ("Overview", "Review", "Readers", "Revise", "Versions", "Files")


def main() -> None:
    """Take every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        root = Path(scratch) / "ws"
        CliRunner().invoke(app, ["demo", str(root), "--rounds", "1", "--json"])
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=list(FLAGS)
        )
        with serving(Workspace(root)) as url:
            take_all(browser, url, folder)
        browser.close()


def take_all(browser: Browser, url: str, folder: Path) -> None:
    """Take every page in every size and theme."""
    for size_name, size in (("laptop", DESKTOP), ("tablet", TABLET)):
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport=size, color_scheme=scheme)
            page = context.new_page()
            page.goto(url)
            page.wait_for_selector("table.gates tbody tr")
            for name in PAGES:
                take(page, name, folder / f"{name.lower()}-{size_name}-{scheme}.png")
            context.close()


def take(page: Page, name: str, target: Path) -> None:
    """Take one page, once it is quiet."""
    open_tab(page, name)
    page.wait_for_timeout(1500)
    page.screenshot(path=target)


if __name__ == "__main__":
    main()
