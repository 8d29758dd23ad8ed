"""The evaluation page in a real browser: it fits the screen and asks for nothing."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loop.cli.main import app

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
    "--dump-dom",
)
PROBE = """<script>
const root = document.documentElement;
const asked = performance.getEntriesByType("resource").length;
root.dataset.probe = [root.scrollWidth > window.innerWidth, asked].join(" ");
</script></body>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's page, with a probe in place of its ban on scripts."""
    folder = tmp_path_factory.mktemp("page")
    CliRunner().invoke(app, ["demo", str(folder / "ws")])
    text = (folder / "ws" / "reports" / "evaluation.html").read_text("utf-8")
    text, banned = re.subn(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text
    )
    assert banned == 1
    probed = folder / "page.html"
    probed.write_text(text.replace("</body>", PROBE), "utf-8")
    return probed


@pytest.mark.parametrize("width", [1200, 1000, 800, 500])
def test_page_fits_the_window_and_loads_nothing(page, tmp_path, width):
    """No sideways scrolling on a desk or a phone, no request to anywhere."""
    window = (f"--window-size={width},900", f"--user-data-dir={tmp_path}")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *window, page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert 'data-probe="false 0"' in done.stdout
