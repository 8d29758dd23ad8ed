"""A judge names by digest the extractor it reads by, in its own digest and keys."""

from dataclasses import replace

import pytest

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Clarification, ErrorWeight, Exemplar, Item, Value
from loop.engines.rules.engine import RulesEngine
from loop.prompts.catalog import read_folder, read_version, write_version
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.prompts.version import NamedVersion
from loop.run.execute import KeyMaker
from loop.run.spec import RunSpec
from loop.run.task_fields import lint_prompt

SHIPPED = WorkspacePaths(bundled())
GREEN = read_version(SHIPPED, "green@v1")


def first_key(version):
    """Return the key of the answer about one pair."""
    plan = plan_prompts(version, get_contract(version.contract).schema)
    item = Item(id="a", variables={"reference": "Effusion.", "candidate": "Edema."})
    spec = RunSpec(
        prompt=version.ref,
        prompt_digest=version.digest,
        contract="green_sections/1",
        cohort="pairs",
        cohort_digest="",
        engine="rules",
        parameters={},
    )
    return KeyMaker(spec, RulesEngine(()).identity()).key(plan(item)[0])


def test_what_it_reads_is_part_of_what_it_is():
    """Another extractor is another judge; the reference alone is only a name."""
    (named,) = GREEN.reads
    other = replace(GREEN, reads=(named._replace(digest="0" * 64),))
    assert other.digest != GREEN.digest
    assert replace(GREEN, reads=(named._replace(ref="x@v1"),)).digest == GREEN.digest
    assert replace(GREEN, reads=()).digest not in (GREEN.digest, other.digest)


def test_stored_answers_are_of_the_guides_that_were_read():
    """The messages are the same; the key is not."""
    fewer = replace(GREEN, finders=GREEN.finders[:-1])
    assert first_key(fewer) != first_key(GREEN)
    assert first_key(replace(GREEN, finders=())) != first_key(GREEN)


def test_it_is_written_and_read(workspace):
    """Only where there is something; an extractor's file stays as it was."""
    write_version(workspace, replace(GREEN, name="mine", finders=()))
    folder = workspace.prompts / "mine" / "v1"
    version, header = read_folder(folder)
    assert version.reads == GREEN.reads
    assert header.reads == {"extractor@v11": GREEN.reads[0].digest}
    assert version.finders == ()
    plain = replace(read_version(SHIPPED, "extractor@v11"), name="plain", number=1)
    write_version(workspace, plain)
    text = (workspace.prompts / "plain" / "v1" / "prompt.yaml").read_text()
    assert "reads" not in text


@pytest.mark.parametrize(
    "named",
    [NamedVersion("extractor@v99", "0" * 64), NamedVersion("extractor@v11", "0" * 64)],
)
def test_what_it_reads_must_be_there_and_the_same(workspace, named):
    """By digest: a number alone may be another version in another workspace."""
    strange = replace(GREEN, name="strange", number=0, draft="d1", reads=(named,))
    write_version(workspace, strange)
    with pytest.raises(DataError, match="neither in this workspace nor among what"):
        read_version(workspace, "strange@draft:d1")


def changed(**parts):
    """Return what lint says of a judge whose first guide is another."""
    first, *rest = GREEN.guides
    guides = (replace(first, **parts), *rest)
    return [one.what for one in lint_prompt(SHIPPED, replace(GREEN, guides=guides))]


def test_lint_holds_a_judge_against_the_categories():
    """Its words are weights, its labels are categories of errors."""
    assert lint_prompt(SHIPPED, GREEN) == []
    (said,) = changed(label="edema")
    assert said == "is no category of labels/errors.yaml that can be asked for"
    weighed = Clarification(phrase="mild for minimal", value=ErrorWeight.INSIGNIFICANT)
    assert changed(clarifications=(weighed,)) == []
    valued = Exemplar(text="Edema.", value=Value.PRESENT, evidence="Edema")
    assert any(
        "rules or exemplars say present" in one for one in changed(exemplars=(valued,))
    )


def test_an_extractor_weighs_nothing():
    """The words of one task are none of another."""
    version = read_version(SHIPPED, "extractor@v11")
    weighed = Clarification(phrase="small", value=ErrorWeight.SIGNIFICANT)
    guide = replace(version.guides[0], clarifications=(weighed,))
    found = lint_prompt(SHIPPED, replace(version, guides=(guide, *version.guides[1:])))
    assert any("say significant" in one.what for one in found)
