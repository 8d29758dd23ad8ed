"""The table of a release made again from the counts it ships."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any

import numpy as np

from loop.core.errors import DataError
from loop.core.yaml_files import check_model
from loop.evaluate.gates import Gate, GateVerdict, LabelEvidence, judge_all, judge_label
from loop.evaluate.protocol import Protocol
from loop.evaluate.recording import digest_counts
from loop.evaluate.results import Exclusions
from loop.release.finding import ReleaseCheck, judged
from loop.release.folder import shown
from loop.stats.agreement import cohen_kappa
from loop.stats.confusion import Confusion, average_f1, effective_labels, micro_f1
from loop.stats.intervals import Estimate, clopper_pearson

TOLERANCE = 1e-9
"""Largest difference of a number from what its counts give."""

Facts = Mapping[str, Any]


def check_numbers(facts: Facts) -> tuple[ReleaseCheck, ...]:
    """Return whether each evaluation says what its own counts say.

    Made again: accuracy, sensitivity and specificity with their exact intervals, F1,
    kappa with its asymptotic interval, macro- and micro-F1, every gate that the counts
    decide, and the overall verdict. Bootstrap limits need the cases and are taken as
    given.
    """
    try:
        protocol = check_model(
            facts["protocol"]["content"], Protocol, "protocol.content of release.json"
        )
    except DataError as error:
        return (ReleaseCheck("numbers", False, str(error)),)
    return tuple(_check_evaluation(one, protocol) for one in facts["evaluations"])


def read_confusion(label: Facts) -> Confusion:
    """Return the shipped counts of one label."""
    return Confusion(label["tp"], label["fp"], label["fn"], label["tn"])


def differs(recorded: float | None, made: float | None) -> bool:
    """Whether two numbers are not the same to `TOLERANCE`; None is only like None.

    Examples
    --------
    >>> differs(0.1 + 0.2, 0.3), differs(None, 0.0), differs(None, None)
    (False, True, False)
    """
    if recorded is None or made is None:
        return recorded is not made
    return not isclose(recorded, made, rel_tol=0.0, abs_tol=TOLERANCE)


def _check_evaluation(evaluation: Facts, protocol: Protocol) -> ReleaseCheck:
    problems = [
        f"{shown(label['label'])}: {problem}"
        for label in evaluation["labels"]
        for problem in _label_problems(label, evaluation, protocol)
    ]
    problems.extend(_whole_problems(evaluation))
    problems.extend(_average_problems(evaluation, protocol))
    check = f"numbers on {shown(evaluation['cohort'])}"
    count = len(evaluation["labels"])
    return judged(check, problems, f"{count} labels made again from their counts")


def _label_problems(
    label: Facts, evaluation: Facts, protocol: Protocol
) -> Iterator[str]:
    counts, level = read_confusion(label), protocol.confidence
    if label["n"] != counts.n:
        yield f"n is {label['n']}, its counts add up to {counts.n}"
    total = counts.n + sum(label["excluded"].values())
    if total != evaluation["cases"]:
        yield f"{total} cases are accounted for, the run has {evaluation['cases']}"
    for name, part, whole in (
        ("accuracy", counts.correct, counts.n),
        ("sensitivity", counts.tp, counts.positives),
        ("specificity", counts.tn, counts.negatives),
    ):
        yield from _share_problems(name, label[name], part, whole, level)
    if differs(label["f1"], counts.f1):
        yield "f1 is not what its counts give"
    kappa = cohen_kappa(counts, confidence=level)
    for name in ("value", "low", "high"):
        if differs(label["kappa"][name], getattr(kappa, name)):
            yield f"kappa ({name}) is not what its counts give"
    yield from _gate_problems(label, evaluation, protocol, kappa)


def _share_problems(
    name: str, rate: Facts, part: int, whole: int, level: float
) -> Iterator[str]:
    """Compare a share and its interval; without a denominator there is neither."""
    if not whole:
        nothing = rate["low"], rate["high"]
        if rate["value"] is not None or nothing not in ((None, None), (0, 1)):
            yield f"{name} has a value without a denominator"
        return
    if differs(rate["value"], part / whole):
        yield f"{name} is not what its counts give"
    low, high = clopper_pearson(part, whole, confidence=level)
    if differs(rate["low"], low) or differs(rate["high"], high):
        yield f"{name}: its interval is not what its counts give"


def _gate_problems(
    label: Facts, evaluation: Facts, protocol: Protocol, kappa: Estimate
) -> Iterator[str]:
    recorded = GateVerdict(label["gate"]["verdict"])
    made = judge_again(label, protocol, kappa).verdict
    if recorded is made:
        return
    # A limit over patients who repeat can only take a pass away, and needs the cases.
    repeated = evaluation["method"]["units"] != evaluation["cases"]
    by_patient = protocol.rule == "lower" and repeated
    if made is GateVerdict.PASS and recorded is GateVerdict.INSUFFICIENT and by_patient:
        return
    yield f"its gate says {recorded}, its counts give {made}"


def judge_again(label: Facts, protocol: Protocol, kappa: Estimate) -> Gate:
    """Return the gate of a label from its shipped counts and bootstrap limits."""
    counts, excluded = read_confusion(label), label["excluded"]
    unanswered = sum(excluded[name] for name in ("unparsed", "failed", "not_asked"))
    boot = label["kappa_bootstrap"]
    evidence = LabelEvidence(
        confusion=counts,
        kappa=kappa,
        kappa_bootstrap=Estimate(boot["value"], boot["low"], boot["high"]),
        unanswered=unanswered,
        usable=counts.n + unanswered + excluded["uncertain_predicted"],
        asked=counts.n > 0 or excluded["not_asked"] == 0,
    )
    return judge_label(evidence, protocol)


def _whole_problems(evaluation: Facts) -> Iterator[str]:
    """Compare what is said of the evaluation as a whole with its labels."""
    labels: Sequence[Facts] = evaluation["labels"]
    if len({label["label"] for label in labels}) != len(labels):
        yield "a label stands there twice"
    if sum(evaluation["statuses"].values()) != evaluation["cases"]:
        yield "the outcomes do not add up to the cases"
    verdict = judge_all(GateVerdict(label["gate"]["verdict"]) for label in labels)
    if verdict is GateVerdict.PASS and evaluation["not_run"]:
        verdict = GateVerdict.INSUFFICIENT
    if evaluation["verdict"] != verdict:
        yield f"the verdict is {evaluation['verdict']}, its gates give {verdict}"
    if evaluation["counts_digest"] != shipped_digest(labels):
        yield "the digest of the counts is not theirs"


def shipped_digest(labels: Sequence[Facts]) -> str:
    """Sha256 over the counts of every label, as the ledger records it."""
    return digest_counts(
        (label["label"], read_confusion(label), Exclusions(**label["excluded"]))
        for label in labels
    )


def _average_problems(evaluation: Facts, protocol: Protocol) -> Iterator[str]:
    rows = [tuple(read_confusion(label)) for label in evaluation["labels"]]
    counts = np.array(rows, dtype=np.int64).reshape(-1, 4)
    enough = counts[:, 0] + counts[:, 2] >= max(protocol.min_positives, 1)
    for name, chosen, mean in (
        ("macro", counts, average_f1),
        ("supported", counts[enough], average_f1),
        ("micro", counts, micro_f1),
    ):
        labels = int(effective_labels(chosen)) if len(chosen) else 0
        made = float(mean(chosen, zero_division="skip")) if labels else None
        if differs(evaluation[name]["value"], made):
            yield f"{name} F1 is not what the counts give"
        if evaluation[name]["labels"] != labels:
            yield f"{name} F1 is over {labels} labels, not as said"
