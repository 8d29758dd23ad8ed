"""The release card: what is released, on which evidence, and what nobody may miss."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import floor

from loop.core.nouns import counted
from loop.documents.numbers import NOT_ESTIMABLE, interval, share
from loop.documents.svg import Axis, percent_axis, tick_labels
from loop.evaluate.documents import ForestMark
from loop.evaluate.gates import count_verdicts
from loop.release.documents.card_sections import (
    ceiling_section,
    claim_section,
    claim_sentence,
    cohort_section,
    engine_section,
    history_section,
    left_out_sentences,
    limits_section,
    openings_section,
    release_section,
    separation_section,
    shown_sentence,
    signature_section,
    tried_section,
    use_section,
    verify_section,
    worse_section,
)
from loop.release.documents.parts import (
    Banner,
    DocumentColumn,
    DocumentSection,
    DocumentTable,
    FactLine,
    Figure,
    Forest,
    LabelRow,
    ReleaseDocument,
    WithInterval,
    claimed,
    fact,
    outcomes,
    rate,
    told,
)
from loop.release.facts import (
    AverageFacts,
    EvaluationFacts,
    LabelFacts,
    MethodFacts,
    ReleaseFacts,
)
from loop.release.release_json import AnyFacts
from loop.release.statement import Approval

_DEVELOPMENT = "DEVELOPMENT DATA ONLY"


def release_card(facts: ReleaseFacts, approvals: Sequence[Approval]) -> ReleaseDocument:
    """Return the card; what got worse comes first, whatever else it says."""
    release, frozen = facts.release, facts.frozen
    engine, who = told(facts.engine.name), told(frozen.actor)
    return ReleaseDocument(
        title=f"Release {told(release.name)}",
        subtitle=(
            f"Prompt version {told(release.ref)} with engine {engine}, frozen "
            f"{told(frozen.time)} by {who} ({told(frozen.role)})"
        ),
        header=card_header(facts),
        banners=card_banners(facts, _development(facts)),
        intro=(
            f"Verdict of the claim: {card_verdict(facts)}.",
            claim_sentence(facts),
            *filter(None, [shown_sentence(facts)]),
            *left_out_sentences(facts),
        ),
        sections=_sections(facts, approvals),
    )


def _sections(
    facts: ReleaseFacts, approvals: Sequence[Approval]
) -> tuple[DocumentSection, ...]:
    return (
        worse_section(facts),
        *(_evaluation_section(facts, one) for one in _evaluations(facts)),
        claim_section(facts),
        limits_section(facts),
        use_section(facts),
        release_section(facts),
        engine_section(facts),
        cohort_section(facts),
        separation_section(facts),
        openings_section(facts),
        tried_section(facts),
        ceiling_section(facts),
        history_section(facts),
        signature_section(facts, approvals),
        verify_section(facts),
    )


def _evaluations(facts: ReleaseFacts) -> list[EvaluationFacts]:
    """Return the evaluations, the one the claim is about first."""
    first = claimed(facts)
    others = [one for one in facts.evaluations if one is not first]
    return others if first is None else [first, *others]


def card_banners(facts: AnyFacts, development: str) -> tuple[Banner, ...]:
    """Return what stands above everything else, for ever.

    Parameters
    ----------
    development
        What is said where no holdout was opened.
    """
    banners = []
    override = told(facts.frozen.override)
    verdict = facts.claim.verdict.value
    if override:
        against = "; ".join(told(one) for one in facts.frozen.objections)
        banners.append(
            Banner(
                "OVERRIDE",
                f"Frozen by override (verdict of the claim: {verdict}). "
                + (f"Against: {against}. " if against else "")
                + f"Reason given by {told(facts.frozen.actor)}: {override}",
            )
        )
    if facts.development_only:
        banners.append(Banner(_DEVELOPMENT, development))
    made_up = [one for one in facts.cohorts if one.synthetic]
    if made_up:
        names = ", ".join(told(one.name) for one in made_up)
        said = f"Made-up texts in {names}: their numbers say nothing of real ones."
        banners.append(Banner("SYNTHETIC COHORT", said))
    return tuple(banners)


def _development(facts: ReleaseFacts) -> str:
    """Return the warning with the estimate corrected for the choice of a version."""
    warning = (
        "No holdout was opened: these numbers come from cases the prompt was made on, "
        "and promise too much."
    )
    selection = facts.selection
    if selection is None or selection.corrected is None:
        return f"{warning} No estimate corrected for the choice of a version is known."
    limits = "" if selection.low is None else f" {interval(selection)}"
    tried = counted(selection.tried, "version") or "the versions"
    return (
        f"{warning} Macro-F1 corrected for the choice among {tried} tried: "
        f"{share(selection.corrected)}{limits} (apparent "
        f"{share(selection.apparent)})."
    )


def card_verdict(facts: AnyFacts) -> str:
    """Return the verdict of the claim, and whether it was overridden."""
    verdict = facts.claim.verdict.value
    return f"{verdict}, overridden" if told(facts.frozen.override) else verdict


def card_figures(facts: ReleaseFacts) -> tuple[Figure, ...]:
    """Return the numbers in large letters: the averages where the claim was judged."""
    evaluation = claimed(facts)
    if evaluation is None:
        return ()
    answered = evaluation.statuses.get("answered")
    return (
        _average_figure("Macro-F1", evaluation.macro),
        _average_figure("Macro-F1, supported", evaluation.supported),
        _average_figure("Micro-F1", evaluation.micro),
        Figure(
            "Readable answers",
            share(None) if answered is None else f"{answered:,}",
            (
                f"of {counted(evaluation.cases, 'case')}"
                + (f", {evaluation.draws} draws" if evaluation.draws > 1 else ""),
            ),
        ),
    )


def _average_figure(term: str, record: AverageFacts) -> Figure:
    labels = counted(record.labels, "label")
    return Figure(term, share(record.value), (interval(record), labels))


def card_tally(facts: ReleaseFacts) -> tuple[tuple[str, int, int], ...]:
    """Return each verdict with its labels and those of the claim, where it was judged.

    Labels that the reference cannot judge are no labels of the claim.
    """
    evaluation = claimed(facts)
    if evaluation is None:
        return ()
    of = len(evaluation.comparable)
    counts = count_verdicts(one.gate.verdict for one in evaluation.labels)
    return tuple((one, labels, of) for one, labels in counts.items())


def card_header(facts: AnyFacts) -> tuple[tuple[str, str], ...]:
    """Return the YAML header of the card; JSON values, which are YAML too."""
    release, frozen = facts.release, facts.frozen
    values = {
        "release": release.name,
        "prompt": release.ref,
        "prompt_digest": release.digest,
        "languages": list(release.languages),
        "labels": list(release.labels),
        "engine": facts.engine.name,
        "engine_digest": facts.engine.digest,
        "protocol_digest": facts.protocol.digest,
        "claim": facts.claim.kind,
        "verdict": facts.claim.verdict.value,
        "override": frozen.override or None,
        "development_data_only": bool(facts.development_only),
        "frozen": frozen.time,
        "ledger_head": facts.ledger.head,
        "statement": "release.dsse.json",
    }
    return tuple((key, _yaml(value)) for key, value in values.items())


def _yaml(value: object) -> str:
    """Return JSON that is YAML too, and no markup where a header is not known."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    text = json.dumps(value)
    return "".join(f"\\u{ord(one):04x}" if one in "<>&`[]" else one for one in text)


_RATES = ("Accuracy", "Sensitivity", "Specificity", "κ")
_EXCLUDED = (
    ("uncertain_reference", "Reference uncertain"),
    ("no_majority", "No majority"),
    ("missing", "No reference"),
    ("not_asked", "Not asked"),
    ("uncertain_predicted", "Answer uncertain"),
    ("unparsed", "Unparsed"),
    ("failed", "Engine failed"),
)


def _evaluation_section(
    facts: ReleaseFacts, evaluation: EvaluationFacts
) -> DocumentSection:
    """Return one evaluation: every label with intervals, verdict and counts."""
    cohort, role = told(evaluation.cohort), told(evaluation.role)
    return DocumentSection(
        key=f"evaluation-{role}-{_place(facts, evaluation)}",
        title=f"Results on {cohort}" + ("" if role == cohort else f" ({role})"),
        lead=(
            "Accuracy, sensitivity and specificity with exact (Clopper-Pearson) "
            "intervals, Cohen's kappa with its asymptotic one; a dash is not "
            "estimable. Sensitivity and specificity count the scored cases.",
            *_drawn(evaluation),
        ),
        lines=(
            fact("Verdict of the protocol", evaluation.verdict),
            FactLine("Macro-F1", _average(evaluation.macro)),
            FactLine("Macro-F1, supported labels", _average(evaluation.supported)),
            FactLine("Micro-F1", rate(evaluation.micro)),
            fact("Outcomes", outcomes(evaluation)),
            fact("Run", evaluation.run),
            *(
                [fact("Runs of all draws", ", ".join(evaluation.runs))]
                if evaluation.draws > 1
                else []
            ),
            fact("Run begun", evaluation.created),
            FactLine("Intervals of averages", _resampled(evaluation.method)),
            *_policy(facts),
            fact("Conventions", evaluation.signature),
            fact("Digest of the counts", evaluation.counts_digest),
        ),
        tables=(_rates_table(evaluation), _counts_table(evaluation)),
        forest=_forest(facts, evaluation),
    )


def _policy(facts: ReleaseFacts) -> tuple[FactLine, ...]:
    """Say what an uncertain answer counts as, where the protocol does."""
    said = facts.protocol.content.get("uncertain_answers")
    if said is None:
        return ()
    meaning = {
        "wrong": "wrong: a false negative or a false positive",
        "excluded": "excluded: left out of every rate, and counted",
    }
    return (fact("Uncertain answers", meaning.get(said, f"read as {said}")),)


def _drawn(evaluation: EvaluationFacts) -> tuple[str, ...]:
    """Say what counts and shares are of, where each case was asked several times."""
    if evaluation.draws == 1:
        return ()
    return (
        f"Every case was asked {evaluation.draws} times. Counts are of answers, shares "
        "are means over the draws; an exact interval takes the mean of a case as one "
        "answer, the bootstrap resamples units and draws.",
    )


def _place(facts: ReleaseFacts, evaluation: EvaluationFacts) -> int:
    return [one is evaluation for one in facts.evaluations].index(True) + 1


def _rates(label: LabelFacts) -> tuple[WithInterval, ...]:
    return (label.accuracy, label.sensitivity, label.specificity, label.kappa)


def _average(record: AverageFacts) -> str:
    return f"{rate(record)} over {counted(record.labels, 'label')}"


def _resampled(method: MethodFacts) -> str:
    units = counted(method.units, told(method.unit) or "unit")
    resamples = counted(method.resamples, "bootstrap resample")
    known = counted(method.known, "case")
    return f"{resamples} of {units}, patient known for {known}, seed {method.seed}"


def _rates_table(evaluation: EvaluationFacts) -> DocumentTable:
    heads = ("Label", "Verdict", *(f"#{name}" for name in _RATES), "Why")
    rows = [
        (
            told(one.name),
            told(one.gate.verdict),
            *map(rate, _rates(one)),
            _why(one) or NOT_ESTIMABLE,
        )
        for one in evaluation.labels
    ]
    return _columns(heads, rows)


def _counts_table(evaluation: EvaluationFacts) -> DocumentTable:
    labels = [(one, one.excluded.model_dump()) for one in evaluation.labels]
    shown = [
        (key, title)
        for key, title in _EXCLUDED
        if any(excluded[key] for _, excluded in labels)
    ]
    hedged = any(one.answered_uncertain for one, _ in labels)
    rows = [
        (
            told(one.name),
            *map(told, (one.n, one.tp, one.fp, one.fn, one.tn)),
            share(one.f1),
            *(told(excluded[key]) for key, _ in shown),
            told(one.not_coded),
            *(map(told, one.hedges) if hedged else ()),
        )
        for one, excluded in labels
    ]
    heads = ("n", "TP", "FP", "FN", "TN", "F1", *(title for _, title in shown))
    further = ("Uncertain of positives", "Uncertain of negatives") if hedged else ()
    columns = (*heads, "Absent as not coded", *further)
    names = ("Label", *(f"#{one}" for one in columns))
    return _columns(names, rows)


def _columns(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> DocumentTable:
    columns = (DocumentColumn(one.lstrip("#"), one.startswith("#")) for one in heads)
    return DocumentTable(tuple(columns), tuple(rows))


def _why(label: LabelFacts) -> str:
    gate = label.gate
    parts = [*map(told, gate.reasons), told(gate.needs)]
    return "; ".join(filter(None, parts))


def _forest(facts: ReleaseFacts, evaluation: EvaluationFacts) -> Forest:
    threshold = facts.protocol.content.get("accuracy")
    axis = _axis(evaluation, threshold)
    return Forest(
        low=axis.low,
        ticks=tuple(zip(map(axis.x, axis.ticks), tick_labels(axis.ticks), strict=True)),
        line=None if threshold is None else axis.x(threshold),
        names=_RATES,
        rows=tuple(_row(one, axis) for one in evaluation.labels),
    )


def _axis(evaluation: EvaluationFacts, threshold: float | None) -> Axis:
    """Return an axis up to 1 that holds every accuracy and the threshold well."""
    points = [one.accuracy.value for one in evaluation.labels]
    lowest = min([point for point in points if point is not None], default=1.0)
    wanted = min(lowest, 0.9 if threshold is None else threshold - 0.05)
    low = max(floor(wanted * 10 + 1e-9) / 10, 0.0)
    step = next(one for one in (0.05, 0.1, 0.2) if (1 - low) / one <= 5 + 1e-9)
    steps = floor((1 - low) / step + 1e-9)
    return percent_axis(
        low, 1.0, tuple(round(1 - step * k, 2) for k in range(steps, -1, -1))
    )


def _row(label: LabelFacts, axis: Axis) -> LabelRow:
    rates = tuple(
        (share(one.value), "" if one.low is None else interval(one))
        for one in _rates(label)
    )
    return LabelRow(
        told(label.name),
        told(label.gate.verdict),
        _mark(label, axis),
        rates,
        _why(label),
    )


def _mark(label: LabelFacts, axis: Axis) -> ForestMark:
    value, low, high = label.accuracy.value, label.accuracy.low, label.accuracy.high
    known = value is not None and low is not None and high is not None
    verdict = label.gate.verdict
    said = f"accuracy {rate(label.accuracy)}" if known else "accuracy not estimable"
    return ForestMark(
        verdict=verdict,
        point=axis.x(value) if known and value is not None else None,
        low=axis.x(0.0 if low is None else low),
        high=axis.x(1.0 if high is None else high),
        cut_low=low is not None and axis.cuts(low),
        title=f"{told(label.name)}: {said}, {verdict.value}",
    )
