"""The prompts that ship: intact, recorded, clean, and free of private text."""

import pytest

from loop.core.ledger import read_ledger
from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Item
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import list_prompts, read_version
from loop.prompts.history import read_history
from loop.prompts.lint import has_errors
from loop.prompts.outputs.base import get_contract
from loop.prompts.render import plan_prompts
from loop.run.task_fields import lint_prompt

SHIPPED = WorkspacePaths(bundled())
HISTORY = {name: read_history(SHIPPED, name) for name in list_prompts(SHIPPED)}
VERSIONS = [row for rows in HISTORY.values() for row in rows]
NAMES = [f"{name}@v{row.number}" for name, rows in HISTORY.items() for row in rows]


@pytest.mark.parametrize("row", VERSIONS, ids=NAMES)
def test_every_shipped_version_is_what_the_ledger_recorded(row):
    """Digest, ledger entry and lineage agree."""
    assert row.problem == ""
    first = row.number == 1
    assert (row.version.parent is None) is first


@pytest.mark.parametrize("ref", NAMES)
def test_every_shipped_version_passes_lint(ref):
    """Warnings are allowed, errors are not."""
    version = read_version(SHIPPED, ref)
    found = lint_prompt(SHIPPED, version)
    assert not has_errors(found), found


def test_the_first_extractor_is_what_a_newcomer_would_write():
    """Label names and one-line definitions only: the loop starts from here."""
    version = read_version(SHIPPED, "extractor@v1")
    taxonomy = read_taxonomy(SHIPPED.labels)
    assert version.labels == taxonomy.extracted
    for guide in version.guides:
        assert guide.name == taxonomy.find(guide.label).name
        assert len(guide.definition) < 100
        assert not (guide.terms or guide.exclusions or guide.clarifications)
        assert not (guide.exemplars or guide.implies)


def test_the_extractor_puts_the_case_last():
    """Servers can reuse the whole prefix."""
    version = read_version(SHIPPED, "extractor@v1")
    contract = get_contract(version.contract)
    (prompt,) = plan_prompts(version, contract.schema)(
        Item(id="c1", variables={"text": "Clear lungs."})
    )
    assert prompt.messages[1].content.endswith("Report:\nClear lungs.\n")
    assert prompt.tail == "Clear lungs.\n"


def test_the_shipped_ledger_is_intact():
    """Its chain begins with the first version."""
    assert read_ledger(SHIPPED.ledger)[0].subject == "extractor@v1"
