"""What a release ships of its prompt, and a stranger's prompt rendered with limits."""

import json
from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.prompts.catalog import write_folder
from loop.prompts.version import CallPlan
from loop.release import rendering
from loop.release.rendering import read_prompt, render_files, render_sandboxed
from tests.release.small import VERSION

HOSTILE = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
    "{% endfor %}",
    "memory": "{{ ('x' * 4000000000) | length }}",
    "power": "{{ (9 ** (9 ** 9)) % 7 }}",
}


def test_messages_and_schema_are_shipped_as_text():
    """What the model is sent, with a place where the text of a case goes."""
    files = render_files(VERSION)
    assert files["rendered/system.txt"] == b"- Fracture\n- Pneumothorax\n"
    assert files["rendered/user.txt"] == b"Text: {{ text }}\n"
    schema = json.loads(files["schema.json"])["joint"]
    assert set(schema["properties"]) == {"fracture", "pneumothorax"}


def test_each_call_of_a_plan_has_its_messages():
    """One call a label: two files and one schema for each."""
    files = render_files(replace(VERSION, plan=CallPlan.PER_LABEL))
    assert "rendered/fracture.system.txt" in files
    assert "rendered/pneumothorax.user.txt" in files
    assert list(json.loads(files["schema.json"])) == ["fracture", "pneumothorax"]


def test_a_prompt_is_read_from_the_bytes_that_were_checked(tmp_path):
    """The four files are enough, and nothing else is looked at."""
    write_folder(tmp_path / "v1", VERSION)
    files = {f"prompt/{path.name}": path.read_bytes() for path in tmp_path.glob("v1/*")}
    assert read_prompt(files) == VERSION
    with pytest.raises(DataError, match=r"prompt/user\.jinja does not exist"):
        read_prompt({name: files[name] for name in files if "user" not in name})


@pytest.mark.slow
def test_a_strangers_prompt_is_rendered_apart_to_the_same():
    """The limits change nothing for an honest prompt."""
    assert render_sandboxed(VERSION) == render_files(VERSION)
    with pytest.raises(DataError, match="UndefinedError"):
        render_sandboxed(replace(VERSION, system="{{ none_such }}"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_template_that_takes_too_much_is_stopped(monkeypatch, kind):
    """Time and memory have an end before anybody vouches for a prompt."""
    monkeypatch.setattr(rendering, "SECONDS", 3)
    with pytest.raises(DataError, match="does not render within"):
        render_sandboxed(replace(VERSION, system=HOSTILE[kind]))
