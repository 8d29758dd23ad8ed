"""Whether the claim of a release follows from its protocol and its gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loop.core.errors import DataError
from loop.core.yaml_files import check_model
from loop.evaluate.certify import claim_level, decide_claim
from loop.evaluate.gates import GateVerdict
from loop.evaluate.protocol import Protocol
from loop.release.finding import ReleaseCheck, judged
from loop.release.folder import shown
from loop.release.recompute import differs, read_confusion
from loop.stats.power import exact_p

Facts = Mapping[str, Any]


def check_claim(facts: Facts) -> ReleaseCheck:
    """Return whether the claim is the protocol's, and follows from the counts.

    The p-values, their adjustment by Holm, and which labels are certified are made
    again.
    """
    claim = facts["claim"]
    try:
        protocol = check_model(
            facts["protocol"]["content"], Protocol, "protocol.content of release.json"
        )
    except DataError as error:
        return ReleaseCheck("claim", False, str(error))
    good = f"{claim['kind']} on {shown(claim['cohort'])}: {claim['verdict']}"
    problems = [*_form_problems(facts, claim, protocol)]
    tested = [one for one in facts["evaluations"] if one["cohort"] == claim["cohort"]]
    if tested:
        problems.extend(_number_problems(claim, tested[0], protocol))
    else:
        problems.append("it is about a cohort without an evaluation")
    return judged("claim", problems, good)


def _form_problems(facts: Facts, claim: Facts, protocol: Protocol) -> Iterator[str]:
    """Compare the claim with the protocol, and with why it was released."""
    if claim["kind"] != protocol.claim:
        yield "it is another claim than the protocol's"
    if differs(claim["alpha"], claim_level(protocol)):
        yield "its level is not the protocol's"
    if claim["verdict"] != GateVerdict.PASS and not facts["frozen"]["override"].strip():
        yield "its gate does not pass, and no override says why it was released"
    if facts["frozen"]["objections"] and not facts["frozen"]["override"].strip():
        yield "something stood against it, and no override says why it was released"
    roles = {one["cohort"]: one["role"] for one in facts["evaluations"]}
    if not facts["development_only"] and roles.get(claim["cohort"]) != "holdout":
        yield "a holdout was evaluated, and it is not about the holdout"


def _number_problems(
    claim: Facts, evaluation: Facts, protocol: Protocol
) -> Iterator[str]:
    """Make the tests of the claim again from the counts of its cohort."""
    labels = evaluation["labels"]
    claimed = [one["label"] for one in claim["labels"]]
    if (claimed or claim["kind"] == "subset") and claimed != [
        label["label"] for label in labels
    ]:
        yield "it is not about every label of its cohort, in their order"
        return
    counts = [read_confusion(label) for label in labels]
    p_values = [exact_p(one.correct, one.n, protocol.accuracy) for one in counts]
    gates = [GateVerdict(label["gate"]["verdict"]) for label in labels]
    whole = not evaluation["not_run"]
    made = decide_claim(gates, p_values, protocol, whole=whole)
    for one, p, p_holm, certified in zip(
        claim["labels"], p_values, made.p_holm, made.certified, strict=False
    ):
        name = shown(one["label"])
        if one["p"] is not None and differs(one["p"], p):
            yield f"{name}: p is not what its counts give"
        if one["p_holm"] is not None and differs(one["p_holm"], p_holm):
            yield f"{name}: the adjusted p is not what the counts give"
        if one["certified"] not in (None, certified):
            yield f"{name}: whether it is certified is not what the counts give"
    if claim["verdict"] != made.verdict:
        yield f"its verdict is {claim['verdict']}, the gates give {made.verdict}"
