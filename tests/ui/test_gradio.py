"""What the workbench does because Gradio behaves so: a change of it is noticed here.

Each test shows a behaviour of a bare Gradio 6.31. Where one fails after an upgrade, the
place named in it can become simpler, or has to be looked at again.
"""

from importlib.metadata import version

import gradio as gr
import httpx
import pytest
from fastapi import FastAPI

from tests.ui.access.served import serving
from tests.ui.conftest import in_a_loop

pytestmark = [pytest.mark.slow, pytest.mark.external]

TYPED = (
    "(box, text) => { box.focus(); document.execCommand('insertText', false, text); }"
)


def build():
    """Return a bare front end, mounted as the workbench is."""

    def refuse(text):
        raise gr.Error("not done", print_exception=False)

    with gr.Blocks(analytics_enabled=False) as blocks:
        box, heard = gr.Textbox(elem_id="box"), gr.HTML(elem_id="heard")
        button = gr.Button("press", elem_id="press")
        menu = gr.Dropdown(["a", "b"], label="Menu", elem_id="menu")
        gr.Dropdown(["a", "b"], label="Next", elem_id="next")
        gr.Radio(["a", "b"], label="Which", elem_id="which")
        box.input(lambda text: "<p>heard</p>", box, heard, queue=False, api_name="hear")
        button.click(refuse, box, heard, queue=False, api_name="refuse")
        menu.change(lambda one: one, menu, heard, queue=False, api_name="choose")
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    gr.mount_gradio_app(app, blocks, path="/", ssr_mode=False, run_history=False)
    return app


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Serve it, with a folder of its own for what it copies."""
    folder = tmp_path_factory.mktemp("gradio")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(folder))
        patch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
        with serving(in_a_loop(build)) as port:
            yield f"http://127.0.0.1:{port}", folder


@pytest.fixture
def page(bare, new_page):
    """Open it in a browser."""
    page = new_page()
    page.goto(bare[0])
    page.wait_for_selector("#box :is(textarea, input)")
    return page


def test_the_version_is_the_one_that_was_looked_at():
    """`pyproject.toml` pins the same."""
    assert version("gradio").startswith("6.31.")


def test_a_value_that_names_a_file_is_copied_before_the_function_is_called(
    bare, tmp_path
):
    """From anywhere on the server: `GuardedBlocks.process_api` lets none through."""
    url, folder = bare
    secret = tmp_path / "secret.txt"
    secret.write_text("planted")
    value = {"path": str(secret), "meta": {"_type": "gradio.FileData"}}
    httpx.post(f"{url}/gradio_api/run/hear", json={"data": [value]})
    copies = [one for one in folder.rglob("*") if one.is_file()]
    assert [one.read_text() for one in copies] == ["planted"]


def test_nothing_is_shown_of_an_error_without_a_queue(page):
    """`refusals.js` says it instead."""
    with page.expect_response("**/gradio_api/run/**") as answer:
        page.click("#press")
    assert answer.value.status == 500
    assert answer.value.json()["error"] == "not done"
    page.wait_for_timeout(1000)
    assert "not done" not in page.inner_text("body")


def test_input_is_not_told_of_a_text_that_is_not_typed(page):
    """`typing.js` listens to the browser instead."""
    page.focus("#box :is(textarea, input)")
    page.locator("#box :is(textarea, input)").evaluate(TYPED, "dictated")
    page.wait_for_timeout(1000)
    unheard = "heard" not in page.inner_text("#heard")
    page.keyboard.type("typed")
    page.wait_for_selector("#heard:has-text('heard')")
    assert unheard


def test_each_radio_has_a_name_of_its_own(page):
    """`workbench.js` gives them that of their group."""
    page.wait_for_selector("#which input[type=radio]")
    radios = page.locator("#which input[type=radio]").all()
    assert len({one.get_attribute("name") for one in radios}) == len(radios) == 2


def test_a_menu_stays_open_when_it_is_left_with_tab(page):
    """`keys.js` closes it."""
    page.focus("#menu input")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#menu ul[role=listbox]")
    page.keyboard.press("Tab")
    page.wait_for_timeout(800)
    assert page.locator("#menu ul[role=listbox]").count() == 1
