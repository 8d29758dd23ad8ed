"""Every event asks who it is for, and a bug tells nobody's text."""

import asyncio
import logging
import time
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from gradio.state_holder import SessionState, StateHolder

from loop.core.errors import DataError
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths
from loop.core.people.users import Right, User, UserRole
from loop.release.keys import make_key
from loop.ui.app import build_workbench
from loop.ui.context import AppContext
from loop.ui.pages.revise.page import SEE_DRAFT
from loop.ui.wiring import EventRegistry, GuardedBlocks, guard
from tests.ui.conftest import awaited, in_a_loop


class Entrance:
    """An access that knows one user."""

    sign_in = True

    def __init__(self, *roles):
        self.user = User(name="Dr. A", roles=roles)

    def user_of(self, request):
        """Return the user."""
        return self.user

    def require(self, request, right):
        """Return the user, if their roles grant `right`."""
        self.user.actor(right)
        return self.user

    def session_id(self, request):
        """Return an id."""
        return "0"


NOWHERE = WorkspacePaths(Path("/nowhere"))


def context_for(*roles, workspace=NOWHERE, store=None):
    """Return a context whose every visitor is one user with `roles`."""
    return AppContext(
        workspace=workspace, store=store, access=Entrance(*roles), now=lambda: None
    )


def call(handler, *values, roles=(UserRole.REVIEWER,), right=Right.SEE, data=None):
    """Call `handler` as Gradio would."""
    event = SimpleNamespace(_data=data)
    return guard(context_for(*roles), handler, right)(None, event, *values)


def test_a_handler_learns_who_asks_and_in_which_role():
    """The history names the role that permitted the act."""
    visit = call(lambda visit: visit, roles=(UserRole.READER, UserRole.EDITOR))
    assert (visit.user.name, visit.actor.role) == ("Dr. A", "editor")


def test_whoever_has_a_key_here_signs_what_they_do(workspace):
    """As on the command line: the key is found by the name they signed in with."""
    key = make_key(workspace, "Dr. A", "reviewer", Actor(name="Admin"))
    context = context_for(UserRole.REVIEWER, workspace=workspace)
    visit = guard(context, lambda visit: visit, Right.JUDGE)(
        None, SimpleNamespace(_data=None)
    )
    assert visit.actor.signer.keyid == key.keyid


def test_whoever_lacks_the_right_is_refused_before_anything_happens():
    """A reader who calls the review queue by hand gets nothing."""
    done = []
    with pytest.raises(gr.Error, match="takes the role"):
        call(lambda visit: done.append(1), roles=(UserRole.READER,))
    assert not done


def test_a_refusal_comes_in_its_own_words_and_as_text():
    """Messages are shown as HTML by the front end."""

    def refuse(visit):
        raise DataError("no case <b>x</b>. Correct it.")

    with pytest.raises(gr.Error) as refusal:
        call(refuse)
    assert refusal.value.message == "no case &lt;b&gt;x&lt;/b&gt;. Correct it."
    assert refusal.value.print_exception is False


def test_a_bug_is_logged_by_its_place_and_never_by_its_values(caplog):
    """Values may be clinical text; a place in the code never is."""

    def break_down(visit, text):
        raise KeyError(text)

    with caplog.at_level(logging.ERROR), pytest.raises(gr.Error) as told:
        call(break_down, "small left effusion")
    said = caplog.text + told.value.message
    assert "effusion" not in said
    assert "KeyError" in caplog.text
    assert "test_wiring.py" in caplog.text


def send(values, *, name="take", roles=(UserRole.REVIEWER,), **sent):
    """Return what an event answers that takes one text and one choice."""

    async def asked():
        registry = EventRegistry(context_for(*roles))
        with GuardedBlocks(registry) as blocks:
            menu, box = gr.Dropdown(["a"]), gr.Textbox()
            registry.on(
                menu.input,
                lambda visit, *values: None,
                right=Right.JUDGE,
                name="take",
                inputs=[menu, box],
            )
        function = next(one for one in blocks.fns.values() if one.api_name == name)
        return await blocks.process_api(function, values, **sent)

    return awaited(asked)


def test_a_value_that_is_not_offered_is_refused_and_printed_nowhere(capfd, caplog):
    """Gradio checks values before any handler, and would print what does not fit."""
    named = {"path": "small left effusion", "meta": {"_type": "gradio.FileData"}}
    for values in (
        ["small left effusion", ""],
        [named, ""],
        ["a", [named]],
        ["a", [["small left effusion"]]],
        ["a"],
        [],
    ):
        with pytest.raises(gr.Error) as told:
            send(values)
        assert told.value.print_exception is False
        said = "".join([told.value.message, caplog.text, *capfd.readouterr()])
        assert "effusion" not in said


def test_the_right_is_asked_before_a_value_is_looked_at():
    """A choice that does not fit says so only to those who may choose."""
    with pytest.raises(gr.Error, match="does not offer"):
        send(["no such choice", ""])
    with pytest.raises(gr.Error, match="takes the role"):
        send(["no such choice", ""], roles=(UserRole.READER,))


def test_an_event_that_was_not_connected_by_the_wire_is_open_to_nobody():
    """Whatever Gradio itself adds to a page."""
    registry = EventRegistry(context_for(UserRole.ADMIN))
    with pytest.raises(DataError, match="no such function"):
        registry.admit("load", None)


def test_an_output_that_stays_as_it_is_is_not_made_anew():
    """Gradio would make the component again; what is shown is the same either way."""

    async def asked():
        registry = EventRegistry(context_for(UserRole.REVIEWER))
        with GuardedBlocks(registry) as blocks:
            kept, box, where, menu = gr.HTML(), gr.HTML(), gr.State(0), gr.Dropdown()
            registry.on(
                box.click,
                lambda visit: [gr.skip(), "new", 7, gr.Dropdown(choices=["a"])],
                right=Right.SEE,
                name="take",
                outputs=[kept, box, where, menu],
            )
        (function,) = blocks.fns.values()
        state = SessionState(blocks)
        answer = await blocks.process_api(
            function,
            [],
            state,
            gr.Request(),
            event_data=gr.EventData(None, {}),
        )
        return answer["data"], state[where._id], state[kept._id] is kept

    shown, place, same = awaited(asked)
    assert shown[:3] == [gr.skip(), "new", None]
    assert shown[3]["choices"] == [["a", "a"]]
    assert place == 7
    assert same


def test_events_of_a_tab_that_read_its_state_come_one_after_the_other():
    """Each goes on from where the one before it has led; other tabs wait for none."""

    def go_on(visit, place):
        time.sleep(0.02)
        return place + 1, ""

    async def asked():
        registry = EventRegistry(context_for(UserRole.REVIEWER))
        with GuardedBlocks(registry) as blocks:
            place, box = gr.State(0), gr.HTML()
            registry.on(
                box.click,
                go_on,
                right=Right.SEE,
                name="go_on",
                inputs=[place],
                outputs=[place, box],
            )
        (function,) = blocks.fns.values()
        states = {tab: SessionState(blocks) for tab in ("mine", "other")}

        def press(tab):
            return blocks.process_api(
                function,
                [None],
                states[tab],
                gr.Request(),
                session_hash=tab,
                event_data=gr.EventData(None, {}),
            )

        await asyncio.gather(*(press("mine") for _ in range(5)), press("other"))
        return [state[place._id] for state in states.values()]

    assert awaited(asked) == [5, 1]


def test_what_gradio_keeps_for_a_tab_goes_when_the_tab_is_given_up():
    """A copy of every component, about 360 kB."""
    holder = StateHolder()

    def opened():
        with GuardedBlocks(EventRegistry(context_for(UserRole.REVIEWER))) as blocks:
            gr.HTML()
        holder.set_blocks(blocks)
        return blocks

    blocks = in_a_loop(opened)
    assert holder["mine"] is holder["mine"]
    assert holder["other"]
    blocks.forget("mine")
    blocks.forget("never opened")
    assert list(holder.session_data) == ["other"]


def test_no_message_says_where_the_workspace_lies():
    """Files are named from there on; what somebody has typed stays as it is."""
    path = NOWHERE.root / "labels" / "taxonomy.yaml"

    def refuse(visit):
        raise DataError(f"{path}, line 3: wrong. Correct it.")

    with pytest.raises(gr.Error) as told:
        call(refuse)
    assert told.value.message == "labels/taxonomy.yaml, line 3: wrong. Correct it."

    async def asked():
        registry = EventRegistry(context_for(UserRole.REVIEWER))
        with GuardedBlocks(registry) as blocks:
            box = gr.Textbox()
            registry.on(
                box.input,
                lambda visit: [f"wrong: {path}", gr.HTML(f"{path}"), f"my {path}"],
                right=Right.SEE,
                name="take",
                outputs=[gr.HTML(), gr.HTML(), box],
            )
        (function,) = blocks.fns.values()
        event = gr.EventData(None, {})
        return await blocks.process_api(
            function, [], request=gr.Request(), event_data=event
        )

    panel, update, typed = awaited(asked)["data"]
    assert panel == "wrong: labels/taxonomy.yaml"
    assert update["value"] == "labels/taxonomy.yaml"
    assert typed == f"my {path}"


def test_data_of_an_event_that_is_no_object_is_no_data():
    """The browser may send anything."""
    assert call(lambda visit: visit.data, data="act") == {}
    assert call(lambda visit: visit.data, data={"act": "open"}) == {"act": "open"}


def test_two_connections_cannot_have_one_name():
    """A name stands for one right."""

    def connect_twice():
        registry = EventRegistry(context_for(UserRole.ADMIN))
        with gr.Blocks():
            button = gr.Button("x")
            registry.on(button.click, print, right=None, name="one")
            registry.on(button.click, print, right=None, name="one")

    with pytest.raises(ValueError, match="one"):
        in_a_loop(connect_twice)


def test_every_event_of_the_workbench_is_guarded():
    """An event that was connected past the registry would be open to everyone."""
    blocks, registry = in_a_loop(lambda: build_workbench(context_for(UserRole.ADMIN)))
    for function in blocks.fns.values():
        if function.fn is None:
            continue
        assert function.fn.__qualname__ == "guard.<locals>.guarded", function.api_name
        assert function.api_name in registry.rights
        assert not function.queue


def test_a_draft_is_moved_to_after_each_event_that_opens_one():
    """It stands below the list that was clicked, often out of sight."""
    blocks, _ = in_a_loop(lambda: build_workbench(context_for(UserRole.ADMIN)))
    after = [one.trigger_after for one in blocks.fns.values() if one.js == SEE_DRAFT]
    names = [blocks.fns[place].api_name for place in after]
    assert sorted(names) == ["revise_begin", "revise_open", "revise_rebase"]


def test_a_visitor_of_what_is_open_to_all_acts_in_their_first_role():
    """No right was asked, so none says which of their roles permits it."""
    roles = (UserRole.READER, UserRole.EDITOR)
    visit = call(lambda visit: visit, roles=roles, right=None)
    assert visit.actor.role == "reader"


def test_what_a_page_names_can_be_opened_on_another():
    """Panels with links are connected, each under its own name."""
    _, registry = in_a_loop(lambda: build_workbench(context_for(UserRole.ADMIN)))
    links = {name for name in registry.rights if name.startswith("go_from_")}
    panels = (
        "jobs_ended",
        "overview",
        "revise_said",
        "revise_check",
        "revise_verdicts",
        "revise_proposals",
    )
    assert links == {f"go_from_{panel}" for panel in panels}


def test_no_page_is_shown_before_it_is_chosen():
    """Gradio shows a hidden tab when it is told to, and never hides one again."""
    blocks, _ = in_a_loop(lambda: build_workbench(context_for(UserRole.ADMIN)))
    pages = next(one for one in blocks.blocks.values() if one.elem_id == "pages")
    assert {one.visible for one in pages.children} == {False}
