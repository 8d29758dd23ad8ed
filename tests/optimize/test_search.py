"""Optimizers propose, nested splits decide, drafts are made, and nothing is told twice."""

import json
import os
import stat
from dataclasses import asdict, replace

import pytest

from loop.core.errors import ConflictError, DataError, EngineError
from loop.core.ledger import read_ledger
from loop.core.records import Completion, Exemplar, Value
from loop.optimize.search import FAILING, Optimizer, SearchRequest, search_prompt
from loop.prompts.catalog import list_drafts, read_version
from loop.review.revise.draft import list_open_drafts
from loop.review.revise.draft_files import DraftOrigin, read_about
from loop.run.store import open_store
from tests.optimize.made_task import (
    ACTOR,
    SYNONYMS,
    TINY,
    StubReflector,
    make_task,
    random_cases,
)


def request(optimizer=Optimizer.GEPA, **changes):
    """Return a request to search on the made task."""
    return SearchRequest(
        **(
            {
                "prompt": "tiny",
                "cohort": "dev",
                "optimizer": optimizer,
                "reflect": "stub:any" if Optimizer(optimizer).reflects else "",
                "budget": 200,
            }
            | changes
        )
    )


def searched(workspace):
    """Return the ledger's entries of searches."""
    return [one for one in read_ledger(workspace.ledger) if one.action == "searched"]


@pytest.mark.parametrize("optimizer", [Optimizer.GEPA, Optimizer.MIPRO])
def test_a_made_task_is_improved(improvable, stub, optimizer):
    """The guide learns the names that effusions go by, and cases not seen say so."""
    result = search_prompt(improvable, request(optimizer), ACTOR)
    print(result)
    assert result.better
    assert result.gain.low > 0
    assert result.drafts
    draft = read_version(improvable, result.drafts[0])
    assert set(draft.guide("pleural_effusion").terms) & set(SYNONYMS)
    assert read_about(improvable, draft).origin is DraftOrigin.OPTIMIZER
    assert draft.parent == TINY.digest
    with open_store(improvable) as store:
        (*_, info) = list_open_drafts(improvable, store, "tiny")
    assert info.cohort == "dev"
    assert not info.behind
    (entry,) = searched(improvable)
    assert entry.payload["candidates"] == result.candidates > 0
