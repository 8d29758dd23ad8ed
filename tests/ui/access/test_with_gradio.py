"""Gradio's own front end behind the gate, in a real browser: it lacks nothing."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import gradio as gr
import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI

from loop.core.people.roster import disable_user
from loop.core.people.users import PermissionRefused, Right
from loop.ui.access.gate import build_gate
from tests.ui.access.served import GOOD, Client, serving

CLICK = """element.addEventListener('click', (event) => {
  if (event.target.closest('[data-act]')) trigger('act', {name: 'x'});
});"""
RUN_COUNT = "/gradio_api/run/count"
JSON = {"Content-Type": "application/json"}
SHOWN = "document.querySelector('#{0}')?.innerText.includes('{1}')"

pytestmark = [pytest.mark.slow, pytest.mark.external]


def build_blocks(access, folder):
    """Return a front end that uses every way in which a browser asks Gradio."""

    def whose(request: gr.Request):
        return f"<p>asked by {access.user_of(request).name}</p>"

    def revise(request: gr.Request):
        try:
            return access.require(request, Right.REVISE).name
        except PermissionRefused as error:
            return f"<p>{error}</p>"

    def one_more(kept, request: gr.Request):
        return kept + 1, f"<p>{kept + 1} by {access.user_of(request).name}</p>"

    def table():
        made = folder / "table.csv"
        made.write_text("a,b\n", "utf-8")
        return str(made)

    with gr.Blocks(analytics_enabled=False, title="t") as blocks:
        kept = gr.State(0)
        count, counted = gr.Button("c", elem_id="count"), gr.HTML(elem_id="counted")
        count.click(one_more, kept, [kept, counted], queue=False, api_name="count")
        act = gr.HTML("<button data-act=x id=act>act</button>", js_on_load=CLICK)
        acted = gr.HTML(elem_id="acted")
        act.act(whose, None, acted, queue=False)
        queued, out = gr.Button("q", elem_id="queued"), gr.HTML(elem_id="out")
        queued.click(whose, None, out)
        right, may = gr.Button("r", elem_id="right"), gr.HTML(elem_id="may")
        right.click(revise, None, may, queue=False)
        file, sent = gr.File(elem_id="file"), gr.HTML(elem_id="sent")
        file.upload(lambda path: f"<p>sent {bool(path)}</p>", file, sent, queue=False)
        make, made = gr.Button("m", elem_id="make"), gr.File(elem_id="made")
        make.click(table, None, made, queue=False)
        blocks.load(whose, None, gr.HTML(elem_id="loaded"), queue=False)
    return blocks


@pytest.fixture
def url(access, tmp_path):
    """Serve that front end behind the gate and return its address."""

    async def build():
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        return gr.mount_gradio_app(
            app,
            build_blocks(access, tmp_path),
            path="/",
            auth_dependency=access.who,
            run_history=False,
            footer_links=[],
            ssr_mode=False,
            allowed_paths=[str(tmp_path)],
            theme=gr.themes.Base(font=["system-ui"], font_mono=["monospace"]),
        )

    # In a thread of its own: the browser's driver has a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        app = pool.submit(lambda: asyncio.run(build())).result()
    with serving(build_gate(app, access)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def page(chromium):
    """Open a page that keeps what it asks for and complains of."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.asked, page.complaints, page.events, page.refused = [], [], [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("request", lambda one: page.events.append(one) if one.post_data else 0)
    page.on(
        "response",
        lambda one: page.refused.append(one.url) if one.status >= 400 else 0,
    )
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on(
        "console",
        lambda said: page.complaints.append(said.text) if said.type == "error" else 0,
    )
    return page


def sign_in(page, url, name):
    """Fill in the form with the keyboard."""
    page.goto(url)
    assert page.url == f"{url}/sign-in"
    # A browser sets the focus a little after the page has loaded.
    page.wait_for_function("document.activeElement.id === 'name'")
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(GOOD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#loaded", state="attached")
    # Its own first event has been answered: from then on clicks are heard.
    wait_for(page, "loaded", f"asked by {name}")


def wait_for(page, place, text):
    """Wait until a place shows a text."""
    page.wait_for_function(SHOWN.format(place, text))


def test_everything_works_for_who_is_signed_in(page, url):
    """Events and what is kept between them; nothing from elsewhere."""
    sign_in(page, url, "editor")
    page.click("#act")
    wait_for(page, "acted", "asked by editor")
    page.click("#right")
    wait_for(page, "may", "editor")
    assert page.complaints == []
    assert [one for one in page.refused if "favicon" not in one] == []
    assert [asked for asked in page.asked if not asked.startswith(url)] == []
    kept = page.evaluate("[localStorage.length, sessionStorage.length]")
    assert kept == [0, 0]
    assert page.evaluate("document.cookie") == ""


def test_there_is_no_queue_and_no_way_for_files(page, url):
    """Gradio would give results and files to whoever knows where they are."""
    sign_in(page, url, "editor")
    page.click("#make")
    page.wait_for_selector("#made a")
    path = page.get_attribute("#made a", "href").removeprefix(url)
    assert path.startswith("/gradio_api/file=/")
    assert page.evaluate("path => fetch(path).then((one) => one.status)", path) == 404
    with page.expect_response("**/gradio_api/queue/join*") as response:
        page.click("#queued")
    assert response.value.status == 404
    with page.expect_response("**/gradio_api/upload*") as response:
        page.set_input_files(
            "#file input[type=file]",
            files=[{"name": "v.csv", "mimeType": "text/csv", "buffer": b"a,b"}],
        )
    assert response.value.status == 404


def test_what_a_tab_keeps_is_for_who_opened_it(page, url):
    """Gradio would give it to whoever comes with the name of the tab."""
    sign_in(page, url, "editor")
    page.click("#count")
    wait_for(page, "counted", "1 by editor")
    sent = [one for one in page.events if "/gradio_api/run/" in one.url]
    other = Client(int(url.rpartition(":")[2]))
    other.sign_in("reviewer")
    taken = other.post(RUN_COUNT, sent[-1].post_data.encode(), **JSON)
    assert taken.status == 403
    assert "opened by another person" in taken.text
    tab = sent[-1].post_data_json["session_hash"]
    assert other.get(f"/gradio_api/heartbeat/{tab}").status == 403
    page.click("#count")
    wait_for(page, "counted", "2 by editor")


def test_a_function_refuses_whoever_lacks_the_right(page, url):
    """In words that say what to do."""
    sign_in(page, url, "reviewer")
    page.click("#right")
    wait_for(page, "may", "takes the role editor")


def test_who_is_disabled_meets_the_form_at_the_next_click(page, url, users):
    """And their click does nothing."""
    sign_in(page, url, "reviewer")
    disable_user(users, "reviewer")
    with page.expect_response("**/gradio_api/run/**") as response:
        page.click("#act")
    assert response.value.status == 401
    page.reload()
    assert "Your session has ended." in page.inner_text("[role=alert]")


def test_signing_out_from_a_page_works(page, url):
    """A plain form in it, with whatever the browser tells of its origin."""
    sign_in(page, url, "reviewer")
    page.evaluate(
        """() => {
          const form = document.createElement('form');
          form.method = 'post'; form.action = '/sign-out';
          document.body.append(form); form.submit();
        }"""
    )
    page.wait_for_selector("text=You have signed out.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_is_accessible(chromium, url, scheme):
    """Contrast, names, order: nothing that axe-core finds, in any state."""
    page = chromium.new_page(color_scheme=scheme)
    for query in ("", "?ended=1", "?left=1"):
        page.goto(f"{url}/sign-in{query}")
        assert Axe().run(page).response["violations"] == []
    page.fill("#name", "reviewer")
    page.fill("#password", "wrong password")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]")
    assert Axe().run(page).response["violations"] == []
    page.wait_for_function("document.activeElement.id === 'password'")
