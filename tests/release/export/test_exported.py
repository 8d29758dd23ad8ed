"""What is exported is committed or released, and a release is verified first."""

from dataclasses import asdict, replace

import pytest

from loop.core.errors import DataError, EditedVersionError
from loop.core.ledger import Actor
from loop.prompts.catalog import write_version
from loop.prompts.history import move_alias
from loop.release.export.exported import _asking, file_cases, find_origin
from loop.release.facts import EngineFacts
from tests.release.export.scenes import VERSION
from tests.release.small import NAME, freeze_small
from tests.release.small import VERSION as SMALL


def test_a_version_is_asked_greedily_and_its_model_is_named(workspace):
    """Nothing is known of how it was measured."""
    found = find_origin(workspace, "extractor@v1", "Some/Model")
    assert (found.version.ref, found.release, found.engine) == ("extractor@v1", "", "")
    assert asdict(found.asking) == {
        "model": "Some/Model",
        "temperature": 0.0,
        "max_tokens": 2048,
        "seed": 0,
        "extra": {},
    }
    assert find_origin(workspace, "extractor@v1").asking.model == ""


def test_an_alias_is_resolved(workspace):
    """Production is a version."""
    move_alias(
        workspace, "extractor@v1", "production", actor=Actor(name="t"), reason="go"
    )
    assert find_origin(workspace, "extractor@production").version.number == 1


def test_a_draft_is_refused(workspace):
    """It can still change."""
    write_version(workspace, replace(VERSION, number=0, draft="d1"))
    with pytest.raises(DataError, match=r"is a draft.*Commit it first"):
        find_origin(workspace, "tiny@draft:d1")


def test_an_edited_version_is_refused(workspace):
    """What is exported is what was committed."""
    path = workspace.prompts / "extractor" / "v1" / "system.jinja"
    path.write_text(path.read_text() + "More.\n")
    with pytest.raises(EditedVersionError):
        find_origin(workspace, "extractor@v1")


@pytest.mark.slow
def test_a_release_is_verified_and_taken_from_its_own_folder(workspace):
    """With the engine that its evidence is of."""
    freeze_small(workspace)
    found = find_origin(workspace, NAME)
    assert (found.release, found.engine) == (NAME, "rules")
    assert found.version.digest == SMALL.digest
    assert found.asking.model == ""
    renamed = find_origin(workspace, NAME, "Some/Model")
    assert renamed.asking == replace(found.asking, model="Some/Model")
    assert (renamed.release, renamed.engine) == (NAME, "rules")


def test_a_release_that_does_not_hold_is_refused(workspace):
    """Nothing of it may be deployed."""
    small = freeze_small(workspace)
    card = small.folder / "card.md"
    card.write_text(card.read_text() + "Better than it is.\n")
    with pytest.raises(DataError, match="does not hold"):
        find_origin(workspace, NAME)


def test_a_release_that_is_not_there_is_refused(workspace):
    """By name."""
    with pytest.raises(DataError, match="extractor-v1"):
        find_origin(workspace, "extractor-v1")


def test_a_prompt_that_is_called_like_a_release_is_a_prompt(workspace):
    """Its name was there first."""
    write_version(workspace, replace(VERSION, name="tiny-v1"))
    assert find_origin(workspace, "tiny-v1").version.ref == "tiny-v1@v1"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai:Qwen/Qwen3-14B@http://127.0.0.1:8000/v1", "Qwen/Qwen3-14B"),
        ("vllm:Qwen/Qwen3-14B#chest", "chest"),
        ("rules", ""),
    ],
)
def test_the_model_and_settings_of_a_release_are_kept(name, model):
    """As they were measured, the fields of the engine's config included."""
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    engine = EngineFacts(
        name=name,
        parameters={"temperature": 0, "max_tokens": 900, "seed": 3},
        identity={"extra_body": extra},
        digest="0" * 64,
    )
    found = _asking(engine)
    assert (found.model, found.max_tokens, found.seed) == (model, 900, 3)
    assert isinstance(found.temperature, float)
    assert found.extra == extra


def test_what_a_release_does_not_say_is_asked_greedily():
    """Its own numbers, where it has some; a level of thinking is a further field."""
    plain = EngineFacts(name="rules", parameters={}, identity={}, digest="0" * 64)
    found = _asking(plain)
    assert (found.temperature, found.max_tokens, found.seed) == (0.0, 2048, 0)
    assert found.extra == {}
    thinking = plain.model_copy(
        update={"parameters": {"temperature": 0.5, "thinking": "low"}}
    )
    assert _asking(thinking).temperature == 0.5
    assert _asking(thinking).extra == {"reasoning_effort": "low"}


def test_a_table_has_what_the_prompt_reads(workspace, tmp_path):
    """More columns do no harm; rows without a text are counted, and texts are kept."""
    path = tmp_path / "week.csv"
    path.write_text("case_id,text,edema\nc1,Kein Ödem.,0\nc2,,1\nc3,Clear.,\n")
    source, screening = file_cases(workspace, path, VERSION)
    assert source.origin == "file week.csv"
    assert [(one.id, one.variables) for one in source.items] == [
        ("c1", {"text": "Kein Ödem."}),
        ("c3", {"text": "Clear."}),
    ]
    assert screening.excluded == {"empty": 1}
    pair = replace(VERSION, inputs=("text", "other"))
    with pytest.raises(DataError) as refused:
        file_cases(workspace, path, pair)
    assert str(refused.value) == (
        "tiny@v1 reads text, other, and week.csv has text. Name a table with these "
        "columns."
    )
