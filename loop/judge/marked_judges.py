"""Judges on marked pairs: their answers and cost, and the protocol's verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from loop.core.digests import digest_json
from loop.core.errors import DataError
from loop.core.ledger import Actor, Event, append_event, read_ledger
from loop.core.paths import WorkspacePaths
from loop.evaluate.protocol import JudgingRules, register_protocol
from loop.judge.counts import JudgeCounts, JudgeScore, score_counts, scores_of
from loop.judge.discrimination import MarkedPairs, PairScores
from loop.judge.judge import Judge, JudgeAnswers, JudgeFacts
from loop.judge.judge_gates import (
    JudgeAspect,
    MarkedEvidence,
    MarkedGate,
    decide_marked_gate,
)
from loop.judge.meta_evaluation import JudgeCost
from loop.prompts.catalog import read_version
from loop.run.runner import Watch
from loop.score.experts.error_counts import Empty
from loop.score.metrics.base import Direction

ACTION = "discrimination_measured"
"""What the ledger calls a verdict on marked pairs."""

_LANGUAGE = "en"


class MarkedAnswers(NamedTuple):
    """The answers of one judge about marked pairs."""

    name: str
    """Of its prompt."""

    facts: JudgeFacts
    scores: tuple[PairScores, ...]
    """Its main score first, with its flags; then the numbers that its answers give."""

    cost: JudgeCost
    """Of the distinct pairs. Seconds and tokens include those of stored answers; None
    where an engine did not count the tokens of all."""


def judge_marked_pairs(
    pairs: MarkedPairs, judge: Judge, watch: Watch | None = None
) -> MarkedAnswers:
    """Return the answers of an open judge about marked pairs: scores, flags, and cost.

    A candidate is flagged if the judge counts a significant error in it. A pair without
    a readable answer has no score and no flag.

    Raises
    ------
    EngineError
        The engine as a whole failed; its answers until then are kept.
    """
    said = judge.judge(
        pairs.references, pairs.candidates, [_LANGUAGE] * len(pairs.ids), watch
    )
    name, facts = judge.version.name, judge.facts
    scores = score_marked_pairs(name, facts, said.counts, scores_of(judge.contract))
    return MarkedAnswers(name, facts, scores, marked_cost(pairs, said))


def score_marked_pairs(
    name: str, facts: JudgeFacts, counts: JudgeCounts, scores: Sequence[JudgeScore]
) -> tuple[PairScores, ...]:
    """Return the first score of a judge with its flags, and the numbers it gives.

    A judge flags a pair in which it counts a significant error; a judge that does not
    count errors has no flags. A number that it gives for no pair is left out.

    Parameters
    ----------
    scores
        All that the judge has, its main one first.
    """
    signs = "|".join(facts.sign)
    found = []
    for place, one in enumerate(scores):
        values = score_counts(counts, one, Empty.ONE)
        if place and (not one.number or np.isnan(values).all()):
            continue
        empty = "" if one.weights is None else f"|empty:{Empty.ONE}"
        found.append(
            PairScores(
                name=f"{name}_{one.name}" if place else name,
                title=f"{one.title} of {facts.ref}",
                lower=one.direction is Direction.LOWER,
                values=values,
                signature=f"{name}_{one.name}|{signs}{empty}",
            )
        )
    if counts.categories:
        errors = counts.triples[:, 1]
        found[0] = replace(
            found[0],
            flags=np.where(np.isnan(errors), np.nan, errors > 0),
            decision="flagged where it counts a significant error",
        )
    return tuple(found)


def marked_cost(pairs: MarkedPairs, said: JudgeAnswers) -> JudgeCost:
    """Return the cost of the answers about the distinct pairs."""
    calls = said.asked + said.cached
    tokens = said.used.prompt_tokens + said.used.completion_tokens
    return JudgeCost(
        pairs=len(set(zip(pairs.references, pairs.candidates, strict=True))),
        calls=calls,
        seconds=said.seconds if calls else None,
        tokens=tokens if 0 < said.used.answers == calls else None,
    )


def hold_marked_answers(
    pairs: MarkedPairs,
    said: MarkedAnswers,
    rules: JudgingRules | None,
    *,
    confidence: float,
) -> MarkedGate | None:
    """Return the protocol's verdict on a judge; None where it claims nothing.

    Parameters
    ----------
    rules
        Section ``judging`` of the protocol; None for a protocol without one.
    confidence
        One-sided level of the limits: that of the protocol.
    """
    flags = said.scores[0].flags
    if rules is None or not rules.holds_marked_pairs or flags is None:
        return None
    evidence = MarkedEvidence(
        flags=flags,
        significant=pairs.significant,
        units=np.array(pairs.reference_ids),
    )
    return decide_marked_gate(evidence, rules, confidence=confidence)


def record_marked_gate(
    workspace: WorkspacePaths,
    pairs: MarkedPairs,
    said: MarkedAnswers,
    gate: MarkedGate,
    actor: Actor,
) -> bool:
    """Write a verdict into the ledger, once; return whether the ledger has it.

    A draft, and a version that only ships with ranloop, has no entry there, so its
    verdicts are not recorded.

    Raises
    ------
    LedgerError
        The ledger's chain is broken.
    WriteError
        The ledger cannot be written.
    """
    if not _is_committed(workspace, said.facts):
        return False
    protocol = register_protocol(workspace, actor)
    flags = said.scores[0].flags
    payload = {
        "prompt_digest": said.facts.digest,
        "engine": said.facts.engine,
        "engine_digest": said.facts.identity,
        "pairs": len(pairs.ids),
        "pairs_digest": pairs.digest,
        "flags_digest": digest_json(
            [None if np.isnan(one) else int(one) for one in _listed(flags)]
        ),
        "protocol": protocol.payload["digest"],
        "verdict": gate.verdict.value,
        "checks": {
            one.aspect.value: {
                "observed": _decimal(one.observed),
                "limit": _decimal(one.limit),
                "threshold": _decimal(one.threshold),
                "verdict": one.verdict.value,
            }
            for one in gate.checks
            if one.aspect in (JudgeAspect.DISCRIMINATION, JudgeAspect.ROBUSTNESS)
        },
    }
    wanted = digest_json(payload)
    if not any(
        entry.action == ACTION and digest_json(dict(entry.payload)) == wanted
        for entry in read_ledger(workspace.ledger)
    ):
        event = Event(
            action=ACTION,
            subject=said.facts.ref,
            reason=f"{len(pairs.ids)} marked pairs with {said.facts.engine}",
            payload=payload,
        )
        append_event(workspace.ledger, event, actor)
    return True


def _is_committed(workspace: WorkspacePaths, facts: JudgeFacts) -> bool:
    """Whether the workspace itself has the version, as it was asked."""
    try:
        version = read_version(workspace, facts.ref)
    except DataError:
        return False
    return not version.draft and version.digest == facts.digest


def _listed(flags: object) -> Sequence[float]:
    return [] if flags is None else np.asarray(flags, dtype=float).tolist()


def _decimal(value: float | None) -> str:
    """Four decimals as text: a float is not written the same everywhere."""
    return "" if value is None else f"{value:.4f}"
