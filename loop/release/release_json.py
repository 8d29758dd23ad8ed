"""``release.json`` of any form: read, written, and what the statement says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loop.core.digests import canonical_json
from loop.core.errors import DataError
from loop.core.yaml_files import check_model
from loop.release.facts import FACTS, ReleaseFacts
from loop.release.judge_facts import (
    JUDGE_FORMAT,
    JudgeEvaluationFacts,
    JudgeReleaseFacts,
    RatedCohort,
)
from loop.release.statement import read_canonical

AnyFacts = ReleaseFacts | JudgeReleaseFacts
"""Of an extractor or of a judge; ``format`` says which."""


def format_facts(facts: AnyFacts) -> bytes:
    """Return the bytes of ``release.json``: canonical JSON and a line end."""
    return canonical_json(facts.model_dump()) + b"\n"


def parse_facts(raw: bytes) -> AnyFacts:
    """Return the content of ``release.json``.

    Raises
    ------
    DataError
        It is not spelled as `format_facts` does, or a field is wrong; names it.
    """
    if not raw.endswith(b"\n"):
        raise DataError(f"{FACTS} is cut off. Take the release anew from its maker.")
    data = read_canonical(raw[:-1], FACTS)
    if isinstance(data, Mapping) and data.get("format") == JUDGE_FORMAT:
        return check_model(data, JudgeReleaseFacts, FACTS)
    return check_model(data, ReleaseFacts, FACTS)


def predicate_of(facts: AnyFacts) -> dict[str, Any]:
    """Return what the statement says of a release, taken from its ``release.json``.

    Small on purpose: what a reader of the statement alone must know, and enough to
    tell that it belongs to these facts.
    """
    release, claim = facts.release, facts.claim
    return {
        "release": release.name,
        "prompt": {"ref": release.ref, "digest": release.digest},
        "contract": release.contract,
        "engine": {"name": facts.engine.name, "digest": facts.engine.digest},
        "protocol": facts.protocol.digest,
        "cohorts": [
            {
                "name": one.name,
                "role": one.role,
                "digest": one.digest,
                **(
                    {"ratings_digest": one.ratings_digest}
                    if isinstance(one, RatedCohort)
                    else {"reference_digest": one.reference_digest}
                ),
            }
            for one in facts.cohorts
        ],
        "gates": [
            {
                "cohort": one.cohort,
                "run": one.run,
                **(
                    {"rows_digest": one.rows_digest}
                    if isinstance(one, JudgeEvaluationFacts)
                    else {"counts_digest": one.counts_digest}
                ),
                "verdict": one.verdict.value,
            }
            for one in facts.evaluations
        ],
        "claim": {
            "kind": claim.kind,
            "verdict": claim.verdict.value,
            "cohort": claim.cohort,
        },
        "development_only": facts.development_only,
        "override": facts.frozen.override,
        "ledger": {"seq": facts.ledger.seq, "head": facts.ledger.head},
        "tool": facts.tool.ranloop,
    }
