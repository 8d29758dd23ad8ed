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


class _ReleaseForm(_ReleaseModel):
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


class _FrozenForm(_ReleaseModel):
    time: Time
    actor: str
    role: str
    meaning: str
    why: str
    objections: list[str]
    override: str


class _SupersedesForm(_ReleaseModel):
    name: str
    statement_sha256: Hex
    ref: str


class _EngineForm(_ReleaseModel):
    name: str
    parameters: dict[str, Any]
    identity: dict[str, Any]
    digest: Hex


class _ProtocolForm(_ReleaseModel):
    digest: Hex
    registered: str
    late: bool
    content: dict[str, Any]


class _FrozenCohortForm(_ReleaseModel):
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


class _RateForm(_ReleaseModel):
    value: Share | None
    low: Share | None
    high: Share | None


class _KappaForm(_ReleaseModel):
    value: float | None
    low: float | None
    high: float | None
    note: str


class _AverageForm(_ReleaseModel):
    name: str
    value: Share | None
    low: Share | None
    high: Share | None
    labels: Count


class _ExcludedForm(_ReleaseModel):
    uncertain_reference: Count
    no_majority: Count
    missing: Count
    uncertain_predicted: Count
    unparsed: Count
    failed: Count
    not_asked: Count


class _GateForm(_ReleaseModel):
    verdict: Verdict
    reasons: list[str]
    needs: str


class _LabelForm(_ReleaseModel):
    label: str
    name: str
    tp: Count
    fp: Count
    fn: Count
    tn: Count
    n: Count
    excluded: _ExcludedForm
    not_coded: Count
    accuracy: _RateForm
    sensitivity: _RateForm
    specificity: _RateForm
    kappa: _KappaForm
    kappa_bootstrap: _KappaForm
    f1: Share | None
    gate: _GateForm


class _MethodForm(_ReleaseModel):
    unit: str
    units: Count
    known: Count
    resamples: Count
    seed: int


class _EvaluationForm(_ReleaseModel):
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
    labels: list[_LabelForm]
    macro: _AverageForm
    supported: _AverageForm
    micro: _AverageForm
    method: _MethodForm
    signature: str
    counts_digest: Hex
    notes: list[str]


class _ClaimedForm(_ReleaseModel):
    label: str
    p: Share | None
    p_holm: Share | None
    certified: bool | None


class _ClaimForm(_ReleaseModel):
    kind: Literal["all", "subset"]
    alpha: Share
    verdict: Verdict
    cohort: str
    labels: list[_ClaimedForm]


class _SelectionForm(_ReleaseModel):
    tried: Count
    apparent: float | None
    corrected: float | None
    low: float | None
    high: float | None
    expected_drop: float | None
    note: str


class _CeilingLabelForm(_ReleaseModel):
    label: str
    readers: float | None
    model: float | None
    difference: float | None
    low: float | None
    high: float | None


class _CeilingForm(_ReleaseModel):
    readers: Count | None
    labels: list[_CeilingLabelForm]
    note: str


class _OpeningForm(_ReleaseModel):
    number: OneOrMore
    budget: Count
    time: Time
    actor: str
    why: str
    prompt: str


class _SeparationForm(_ReleaseModel):
    checked: list[str]
    remarks: list[str]


class _ChangedLabelForm(_ReleaseModel):
    label: str
    added: Count | list[str]
    removed: Count | list[str]
    changed: Count | list[str]


class _WorseForm(_ReleaseModel):
    label: str
    before: float | None
    after: float | None
    lost: Count
    gained: Count
    low: float | None
    high: float | None


class _ChangeForm(_ReleaseModel):
    previous: str
    from_ref: str
    classes: list[str]
    labels: list[_ChangedLabelForm]
    diff_digest: str
    improved: list[str]
    unchanged: list[str]
    worse: list[_WorseForm]
    rollback: str


class _PastForm(_ReleaseModel):
    ref: str
    digest: str
    time: str
    author: str
    why: str
    verdicts: Count
    status: str
    macro_f1: float | None


class _ReadingForm(_ReleaseModel):
    readers: Count | None
    blind: Count | None
    votes: Count | None
    kappa: dict[str, Any] | None


class _ComputeForm(_ReleaseModel):
    seconds: float | None
    tokens: Count | None
    platform: str
    python: str
    packages: dict[str, str]


class _HeadForm(_ReleaseModel):
    seq: OneOrMore
    head: Hex


class _ToolForm(_ReleaseModel):
    ranloop: str


class _FactsForm(_ReleaseModel):
    format: Literal["ranloop-release/1"]
    release: _ReleaseForm
    frozen: _FrozenForm
    supersedes: _SupersedesForm | None
    engine: _EngineForm
    protocol: _ProtocolForm
    cohorts: list[_FrozenCohortForm]
    evaluations: list[_EvaluationForm]
    claim: _ClaimForm
    selection: _SelectionForm | None
    ceiling: _CeilingForm | None
    openings: list[_OpeningForm]
    development_only: bool
    separation: _SeparationForm
    change: _ChangeForm
    history: list[_PastForm]
    reading: _ReadingForm | None
    compute: _ComputeForm
    ledger: _HeadForm
    tool: _ToolForm


def format_facts(facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of ``release.json``: canonical JSON and a line end.

    Raises
    ------
    DataError
        A field is missing, unknown or of the wrong kind; names it.
    """
    check_model(dict(facts), _FactsForm, FACTS)
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
    check_model(data, _FactsForm, FACTS)
    if not isinstance(data, dict):
        raise DataError(f"{FACTS} is no object. Take the release anew from its maker.")
    return data
