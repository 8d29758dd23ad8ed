"""What a browser loads first: small, kept, and nothing of it imported in vain."""

import json
import re
import subprocess
import sys
from hashlib import sha256

import gradio as gr
import httpx
import pytest

from loop.core.people.users import UserRole
from loop.ui import loading
from loop.ui.app import build_workbench
from loop.ui.loading import weighted
from tests.ui.conftest import in_a_loop
from tests.ui.test_wiring import context_for

VISIT = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from starlette.testclient import TestClient
from loop.core.paths import WorkspacePaths
from loop.ui.access.access import Access
from loop.ui.serve import build_app, opened_context

place = WorkspacePaths(Path(sys.argv[1]))
access = Access.open(place, host="127.0.0.1", local="Dr Local")
with opened_context(place, access) as context:
    client = TestClient(build_app(context), base_url="http://127.0.0.1")
    data = {"data": [""], "session_hash": "first"}
    origin = {"origin": "http://127.0.0.1"}
    answer = client.post("/gradio_api/run/open", json=data, headers=origin)
    assert answer.status_code == 200, answer.text
heavy = ("scipy.stats", "statsmodels", "matplotlib.pyplot", "sklearn", "dspy")
print([name for name in heavy if name in sys.modules])
"""


def program_files(url):
    """Return the address of the style sheet and of the script, as the page has them."""
    return re.findall(
        r"/assets/workbench-[0-9a-f]{16}\.(?:css|js)", httpx.get(url).text
    )


@pytest.mark.slow
def test_the_first_page_weighs_less_than_half(shared_alone):
    """It holds no style, no script of ours, and no description of the functions."""
    page = httpx.get(shared_alone).content
    context = context_for(UserRole.ADMIN)
    blocks = in_a_loop(lambda: build_workbench(context)).blocks
    # What Gradio would write into it: all it knows, and our styles and scripts.
    whole = json.dumps(gr.Blocks.get_config_file(blocks), default=str)
    files = map(httpx.get, (shared_alone + one for one in program_files(shared_alone)))
    assert len(page) < (len(whole) + sum(len(one.content) for one in files)) / 2
    unread = (b"example_inputs", b"api_info_as", b"html_template", b"delete_callback")
    for word in (b"--pass-wash", b"ranloopKeys", *unread):
        assert word not in page, word


@pytest.mark.slow
def test_program_files_are_named_by_content_and_kept(shared_alone):
    """A browser asks once, and again only for another version."""
    files = program_files(shared_alone)
    assert [file.rpartition(".")[2] for file in files] == ["css", "js"]
    for file in files:
        packed = httpx.get(shared_alone + file)
        plain = httpx.get(shared_alone + file, headers={"accept-encoding": "identity"})
        assert packed.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
        assert packed.content == plain.content
        assert sha256(plain.content).hexdigest()[:16] in file
        for answer in (packed, plain):
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert "window.ranloopKeys = [" in plain.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["workbench-0.css", "..%2findex.html", "%2e%2e", "no"])
def test_only_program_files_lie_among_them(shared_alone, name):
    """What is not listed does not exist, whatever its name."""
    assert httpx.get(f"{shared_alone}/assets/{name}").status_code == 404


@pytest.mark.slow
def test_the_page_itself_is_never_packed_with_ours(shared_alone):
    """What is kept for everybody holds nothing of the workspace or a session."""
    for file in program_files(shared_alone):
        answer = httpx.get(shared_alone + file)
        assert "set-cookie" not in answer.headers
        assert "demo_dev" not in answer.text


@pytest.mark.slow
def test_a_visit_imports_no_heavy_library(demo):
    """They cost the first visitor a second, and every server a hundred megabytes."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", VISIT, str(demo.root)],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("written", "weighty"),
    [
        ("a :is(b, c), d { e: f }", ".contain a :is(b, c), "),
        (
            "a, b { c: d }",
            ".contain a, .gradio-container.gradio-container .contain b {",
        ),
        ("@media (x) { a { b: c } }", "@media (x) {\na { b: c }\n.gradio-container"),
        ("/* a { */ b { c: d }", ".contain b {"),
    ],
)
def test_rules_outweigh_those_of_components(written, weighty):
    """Each rule as written, and with the weight that Gradio's own way would give."""
    assert weighty in weighted(written)


def test_the_steps_of_an_animation_are_no_selectors():
    """They would be lost if something stood before them."""
    assert (
        weighted("@keyframes x { from { a: b } }") == "@keyframes x { from { a: b } }"
    )


def test_a_component_is_told_by_what_its_front_end_reads():
    """What is usual or empty is left out, and whatever differs from it stays."""
    told = {
        "id": 7,
        "type": "html",
        "api_info": {"a": 1},
        "skip_api": False,
        "key": None,
        "rendered_in": 3,
        "props": {
            "value": "",
            "proxy_url": "x",
            "rtl": False,
            "autofocus": True,
            "html_template": "${value}",
            "css_template": "p {}",
        },
    }
    assert loading._slim_component(told) == {
        "id": 7,
        "type": "html",
        "rendered_in": 3,
        "props": {"value": "", "autofocus": True, "css_template": "p {}"},
    }


def test_an_event_keeps_what_is_set():
    """False and None are as good as missing, where the front end takes them so."""
    event = {"id": 1, "js": None, "queue": False, "batch": False, "trigger_after": 4}
    kept = loading._without(event, loading._UNREAD_OF_EVENTS)
    assert kept == {"id": 1, "queue": False, "trigger_after": 4}


@pytest.mark.parametrize(
    ("written", "rules"),
    [
        ("", []),
        ("a { b } c { d }", [("a", " b "), ("c", " d ")]),
        (
            "@media x { a { b } c { d } } e { f }",
            [("@media x", " a { b } c { d } "), ("e", " f ")],
        ),
        ("{} a{b}", [("", ""), ("a", "b")]),
    ],
)
def test_rules_are_parted_at_their_outermost_braces(written, rules):
    """Those of a query stand within its own."""
    assert list(loading._rules(written)) == rules


def test_the_head_names_both_files():
    """Robots are asked to stay away."""
    files = loading.program_files()
    style, script = files
    assert loading.head(files) == (
        '<meta name="robots" content="noindex">'
        f'<link rel="stylesheet" href="{style.path}">'
        f'<script src="{script.path}"></script>'
    )
    assert (style.media_type, script.media_type) == ("text/css", "text/javascript")
    for file, kind in zip(files, ("css", "js"), strict=True):
        digest = sha256(file.content).hexdigest()[:16]
        assert file.path == f"/assets/workbench-{digest}.{kind}"
    assert script.content.startswith(b"window.ranloopKeys = [{")
