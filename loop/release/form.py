"""The form of ``release.json``: what documents are made of and `verify` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from loop.core.digests import canonical_json
from loop.core.errors import DataError
from loop.core.yaml_files import check_model
from loop.release.statement import Hex, Time, read_canonical

FACTS = "release.json"
FORMAT = "ranloop-release/1"

Verdict = Literal["PASS", "FAIL", "INSUFFICIENT"]
Count = Annotated[int, Field(ge=0, le=10**8)]
OneOrMore = Annotated[int, Field(ge=1, le=10**8)]
Share = Annotated[float, Field(ge=0, le=1)]
Slug = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]


class _ReleaseModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Release(_ReleaseModel):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}-v[1-9][0-9]*$")]
    prompt: Slug
    version: OneOrMore
    ref: str
    digest: Hex
    parent: Hex | None
    parent_ref: str
    author: str
    time: str
    why: str
    contract: str
    plan: Literal["joint", "per_label"]
    labels: list[str]
    languages: list[str]


class _Frozen(_ReleaseModel):
    time: Time
    actor: str
    role: str
    meaning: str
    why: str
    objections: list[str]
    override: str


class _Supersedes(_ReleaseModel):
    name: str
    statement_sha256: Hex
    ref: str


class _Engine(_ReleaseModel):
    name: str
    parameters: dict[str, Any]
    identity: dict[str, Any]
    digest: Hex


class _Protocol(_ReleaseModel):
    digest: Hex
    registered: str
    late: bool
    content: dict[str, Any]


class _Cohort(_ReleaseModel):
    name: str
    role: str
    source: str
    licence: str
    citation: str
    language: str
    digest: Hex
    cases: Count
    synthetic: bool
    patients_known: bool | Count
    reference: OneOrMore | None
    reference_digest: Hex | None
    readers: Count | None
    need: Count | None
    not_coded: bool | Count | None


class _ReleaseRate(_ReleaseModel):
    value: Share | None
    low: Share | None
    high: Share | None


class _Kappa(_ReleaseModel):
    value: float | None
    low: float | None
    high: float | None
    note: str


class _Average(_ReleaseModel):
    name: str
    value: Share | None
    low: Share | None
    high: Share | None
    labels: Count


class _Excluded(_ReleaseModel):
    uncertain_reference: Count
    no_majority: Count
    missing: Count
    uncertain_predicted: Count
    unparsed: Count
    failed: Count
    not_asked: Count


class _Gate(_ReleaseModel):
    verdict: Verdict
    reasons: list[str]
    needs: str


class _Label(_ReleaseModel):
    label: str
    name: str
    tp: Count
    fp: Count
    fn: Count
    tn: Count
    n: Count
    excluded: _Excluded
    not_coded: Count
    accuracy: _ReleaseRate
    sensitivity: _ReleaseRate
    specificity: _ReleaseRate
    kappa: _Kappa
    kappa_bootstrap: _Kappa
    f1: Share | None
    gate: _Gate


class _Method(_ReleaseModel):
    unit: str
    units: Count
    known: Count
    resamples: Count
    seed: int


class _Evaluation(_ReleaseModel):
    cohort: str
    role: str
    run: str
    created: str
    cases: Count
    not_run: Count
    statuses: dict[str, Count]
    policy: str
    verdict: Verdict
    registered_late: bool
    labels: list[_Label]
    macro: _Average
    supported: _Average
    micro: _Average
    method: _Method
    signature: str
    counts_digest: Hex
    notes: list[str]


class _Claimed(_ReleaseModel):
    label: str
    p: Share | None
    p_holm: Share | None
    certified: bool | None


class _ReleaseClaim(_ReleaseModel):
    kind: Literal["all", "subset"]
    alpha: Share
    verdict: Verdict
    cohort: str
    labels: list[_Claimed]


class _Selection(_ReleaseModel):
    tried: Count
    apparent: float | None
    corrected: float | None
    low: float | None
    high: float | None
    expected_drop: float | None
    note: str


class _CeilingLabel(_ReleaseModel):
    label: str
    readers: float | None
    model: float | None
    difference: float | None
    low: float | None
    high: float | None


class _Ceiling(_ReleaseModel):
    readers: Count | None
    labels: list[_CeilingLabel]
    note: str


class _Opening(_ReleaseModel):
    number: OneOrMore
    budget: Count
    time: Time
    actor: str
    why: str
    prompt: str


class _Separation(_ReleaseModel):
    checked: list[str]
    remarks: list[str]


class _ChangedLabel(_ReleaseModel):
    label: str
    added: Count | list[str]
    removed: Count | list[str]
    changed: Count | list[str]


class _Worse(_ReleaseModel):
    label: str
    before: float | None
    after: float | None
    lost: Count
    gained: Count
    low: float | None
    high: float | None


class _Change(_ReleaseModel):
    previous: str
    from_ref: str
    classes: list[str]
    labels: list[_ChangedLabel]
    diff_digest: str
    improved: list[str]
    unchanged: list[str]
    worse: list[_Worse]
    rollback: str


class _Past(_ReleaseModel):
    ref: str
    digest: str
    time: str
    author: str
    why: str
    verdicts: Count
    status: str
    macro_f1: float | None


class _Reading(_ReleaseModel):
    readers: Count | None
    blind: Count | None
    votes: Count | None
    kappa: dict[str, Any] | None


class _Compute(_ReleaseModel):
    seconds: float | None
    tokens: Count | None
    platform: str
    python: str
    packages: dict[str, str]


class _Head(_ReleaseModel):
    seq: OneOrMore
    head: Hex


class _Tool(_ReleaseModel):
    ranloop: str


class _Facts(_ReleaseModel):
    format: Literal["ranloop-release/1"]
    release: _Release
    frozen: _Frozen
    supersedes: _Supersedes | None
    engine: _Engine
    protocol: _Protocol
    cohorts: list[_Cohort]
    evaluations: list[_Evaluation]
    claim: _ReleaseClaim
    selection: _Selection | None
    ceiling: _Ceiling | None
    openings: list[_Opening]
    development_only: bool
    separation: _Separation
    change: _Change
    history: list[_Past]
    reading: _Reading | None
    compute: _Compute
    ledger: _Head
    tool: _Tool


def format_facts(facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of ``release.json``: canonical JSON and a line end.

    Raises
    ------
    DataError
        A field is missing, unknown or of the wrong kind; names it.
    """
    check_model(dict(facts), _Facts, FACTS)
    return canonical_json(facts) + b"\n"


def parse_facts(raw: bytes) -> Mapping[str, Any]:
    """Return the content of ``release.json``.

    Raises
    ------
    DataError
        It is not spelled as `format_facts` does, or a field is wrong; names it.
    """
    if not raw.endswith(b"\n"):
        raise DataError(f"{FACTS} is cut off. Take the release anew from its maker.")
    data = read_canonical(raw[:-1], FACTS)
    check_model(data, _Facts, FACTS)
    if not isinstance(data, dict):
        raise DataError(f"{FACTS} is no object. Take the release anew from its maker.")
    return data
