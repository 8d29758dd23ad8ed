"""The card of a judge: how far it agrees with raters, and what left the vault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from loop.core.nouns import counted
from loop.documents.numbers import (
    NOT_ESTIMABLE,
    count,
    interval,
    percent,
    share,
    signed,
    significant,
)
from loop.evaluate.gates import count_verdicts
from loop.judge.gate_text import GATE_HEADER, judge_gate_row
from loop.release.documents.card import card_banners, card_header, card_verdict
from loop.release.documents.card_sections import (
    ROLES_MEAN,
    engine_section,
    late_notes,
    limits_with,
    openings_section,
    release_section,
    separation_section,
    signature_section,
    verify_section,
)
from loop.release.documents.parts import (
    DocumentColumn,
    DocumentSection,
    DocumentTable,
    FactLine,
    Figure,
    ReleaseDocument,
    change_limits,
    fact,
    outcome_words,
    rate,
    table,
    told,
)
from loop.release.folder import ROWS, ensemble_names
from loop.release.judge_facts import (
    BiasFacts,
    ErrorFacts,
    JudgeEvaluationFacts,
    JudgeReleaseFacts,
    RatedCohort,
    ShotsFacts,
)
from loop.release.statement import Approval

_DEVELOPMENT = (
    "No holdout was opened: these numbers come from pairs the judge was made on, and "
    "promise too much. They are not corrected for the choice of a version."
)
_BIAS = {
    "length": "the candidate's length in words",
    "position": "the pair's position in the cohort",
}


def judge_card(
    facts: JudgeReleaseFacts, approvals: Sequence[Approval]
) -> ReleaseDocument:
    """Return the card of a judge."""
    release, frozen = facts.release, facts.frozen
    return ReleaseDocument(
        title=f"Release {told(release.name)}",
        subtitle=(
            f"Judge {told(release.ref)} with engine {told(facts.engine.name)}, frozen "
            f"{told(frozen.time)} by {told(frozen.actor)} ({told(frozen.role)})"
        ),
        header=card_header(facts),
        banners=card_banners(facts, _DEVELOPMENT),
        intro=(
            f"Verdict of the claim: {card_verdict(facts)}.",
            judge_claim_sentence(facts),
            *_shown(facts),
        ),
        sections=_sections(facts, approvals),
    )


def _sections(
    facts: JudgeReleaseFacts, approvals: Sequence[Approval]
) -> tuple[DocumentSection, ...]:
    return (
        *(_evaluation_section(facts, one) for one in _evaluations(facts)),
        rows_section(facts),
        *_ensemble_sections(facts),
        judge_change_section(facts),
        _claim_section(facts),
        _limits_section(facts),
        _use_section(facts),
        release_section(facts),
        engine_section(facts, _no_model(facts)),
        _cohort_section(facts),
        separation_section(facts),
        openings_section(facts),
        _history_section(facts),
        signature_section(facts, approvals),
        verify_section(
            facts,
            "the agreement with raters and the gate recomputed from the rows, F1 from "
            "its counts",
        ),
    )


def _no_model(facts: JudgeReleaseFacts) -> str:
    reads = ", ".join(told(one.ref) for one in facts.reads) or "no version"
    return (
        "The engine rules is no language model: it reads both texts by the guides of "
        f"{reads}, and nothing of this prompt but which categories it asks for."
    )


def claimed_judge(facts: JudgeReleaseFacts) -> JudgeEvaluationFacts | None:
    """Return the evaluation the claim is about; None where there is none."""
    return next(
        (one for one in facts.evaluations if one.cohort == facts.claim.cohort), None
    )


def _evaluations(facts: JudgeReleaseFacts) -> list[JudgeEvaluationFacts]:
    """Return the evaluations, the one the claim is about first."""
    first = claimed_judge(facts)
    others = [one for one in facts.evaluations if one is not first]
    return others if first is None else [first, *others]


def judge_figures(facts: JudgeReleaseFacts) -> tuple[Figure, ...]:
    """Return the numbers in large letters, where the claim was judged."""
    found = claimed_judge(facts)
    if found is None:
        return ()
    agreement = found.agreement
    whole = next(iter(found.errors), None)
    answered = found.statuses.get("answered", 0)
    figures = [
        Figure(
            f"tau-b of {told(facts.score.title)}",
            share(agreement.tau_b.value),
            (
                _interval(rate(agreement.tau_b)),
                f"{counted(agreement.n, 'pair')}, {_units(found)}",
            ),
        ),
        Figure(
            "tau-b of two raters",
            share(agreement.two_raters),
            (f"with one rater {share(agreement.one_rater)}",),
        ),
    ]
    if whole is not None:
        said = (_interval(rate(whole.f1)), "significant errors")
        figures.append(Figure("F1 of errors", share(whole.f1.value), said))
    of = f"of {counted(found.cases, 'pair')}"
    return (*figures, Figure("Readable answers", f"{answered:,}", (of,)))


def _interval(text: str) -> str:
    """Return what stands behind the value of a number with its interval."""
    return text.partition(" ")[2]


def _units(found: JudgeEvaluationFacts) -> str:
    return counted(found.agreement.units, found.unit)


def judge_tally(facts: JudgeReleaseFacts) -> tuple[tuple[str, int, int], ...]:
    """Return each verdict with the checks of the gate that have it."""
    found = claimed_judge(facts)
    if found is None:
        return ()
    counts = count_verdicts(one.verdict for one in found.gate)
    return tuple((one, checks, len(found.gate)) for one, checks in counts.items())


def _rules(facts: JudgeReleaseFacts) -> dict[str, Any]:
    return dict(facts.protocol.content.get("judging") or {})


def judge_claim_sentence(facts: JudgeReleaseFacts) -> str:
    """Return the claim and how it is judged, as one sentence."""
    rules, content = _rules(facts), facts.protocol.content
    how = {
        "lower": f"by lower {percent(content.get('confidence'), 0)} limits",
        "point": "by the observed values, which shows no lower limit",
    }.get(str(rules.get("rule")), "by a rule that is not recorded")
    measure = str(rules.get("measure", "")).replace("_", "-") or "agreement"
    floors = [
        f"F1 of at least {share(floor, 2)} for {told(group).replace('_', ' ')}s"
        for group, floor in dict(rules.get("f1_floors") or {}).items()
        if floor is not None
    ]
    if rules.get("copy_test"):
        floors.append("the best score for every candidate equal to its reference")
    further = f", {', '.join(floors)}" if floors else ""
    return (
        f"Claim: on {told(facts.claim.cohort)}, {measure} of {told(facts.score.title)} "
        f"with the mean of the raters reaches {share(rules.get('threshold'), 2)}, "
        f"judged {how}, on at least {told(rules.get('min_units'))} units and with at "
        f"most {percent(rules.get('max_unanswered'))} unanswered{further}."
    )


def _shown(facts: JudgeReleaseFacts) -> Iterator[str]:
    """Yield what was found of the claim, and what is too good to be trusted."""
    found = claimed_judge(facts)
    if found is None:
        return
    yield (
        f"Found: tau-b {rate(found.agreement.tau_b)} on "
        f"{counted(found.agreement.n, 'pair')} of {_units(found)}."
    )
    for words in found.suspicious:
        yield f"Suspicious: {told(words)}."


def _evaluation_section(
    facts: JudgeReleaseFacts, found: JudgeEvaluationFacts
) -> DocumentSection:
    """Return one evaluation: gate, agreement, errors by kind, bias, repeats."""
    agreement, cohort, role = found.agreement, told(found.cohort), told(found.role)
    place = [one is found for one in facts.evaluations].index(True) + 1
    return DocumentSection(
        key=f"evaluation-{role}-{place}",
        title=f"Results on {cohort}" + ("" if role == cohort else f" ({role})"),
        lead=(
            "Scores are held against the mean of the raters, turned so that more is "
            f"better; intervals are of 95 %, over {told(found.unit)}s as units of "
            f"{counted(found.resamples, 'bootstrap resample')}, seed {found.seed}. "
            "Errors are significant ones, counted against the raters' median; which "
            "errors they are is not compared. A dash is not estimable.",
        ),
        lines=(
            fact("Verdict of the protocol", found.verdict),
            FactLine("tau-b", rate(agreement.tau_b)),
            FactLine("Spearman", rate(agreement.spearman)),
            FactLine("Pearson", rate(agreement.pearson)),
            FactLine("Pairs with score and rating", count(agreement.n)),
            FactLine("Units of these", _units(found)),
            FactLine("Mean tau-b with one rater", share(agreement.one_rater)),
            FactLine("Mean tau-b of two raters", share(agreement.two_raters)),
            FactLine("Copy test", _copies(found)),
            FactLine("Outcomes", outcome_words(found.statuses)),
            *_repeats(found),
            fact("Run", found.run),
            *([fact("Runs of all draws", ", ".join(found.runs))] if found.runs else []),
            fact("Run begun", found.created),
            fact("Conventions", found.signature),
            fact("Digest of the rows", found.rows_digest),
        ),
        tables=(_gate_table(found), *_error_table(found), *_bias_table(found.bias)),
        notes=tuple(f"Suspicious: {told(one)}." for one in found.suspicious),
    )


def _copies(found: JudgeEvaluationFacts) -> str:
    copies = found.copies
    if not copies.pairs:
        return "not made: no candidate equals its reference"
    return (
        f"{count(copies.best)} of {counted(copies.pairs, 'copy', 'copies')} have the "
        f"best score, {count(copies.unanswered)} have none"
    )


def _repeats(found: JudgeEvaluationFacts) -> Iterator[FactLine]:
    told_of = found.repeats
    if told_of is None:
        return
    yield FactLine(
        "Repeats",
        f"asked {found.draws} times, {counted(told_of.pairs, 'pair')} scored in all, "
        f"{count(told_of.incomplete)} in some only: mean standard deviation of a score "
        f"{rate(told_of.sd)}, identical counts {rate(told_of.identical)}, ICC(2,1) "
        f"{rate(told_of.icc)}; all other numbers are of the first draw",
    )


def _gate_table(found: JudgeEvaluationFacts) -> DocumentTable:
    heads = [DocumentColumn(one.capitalize()) for one in GATE_HEADER]
    rows = [
        tuple(told(cell) or NOT_ESTIMABLE for cell in judge_gate_row(one.check))
        for one in found.gate
    ]
    return DocumentTable(tuple(heads), tuple(rows))


def _error_table(found: JudgeEvaluationFacts) -> tuple[DocumentTable, ...]:
    rows = [_error_row(one) for one in found.errors]
    return table("Errors|#TP|#FP|#FN|#F1 and interval|#F1 of two raters", rows)


def _error_row(found: ErrorFacts) -> tuple[str, ...]:
    counts = (told(one) for one in (found.tp, found.fp, found.fn))
    return (told(found.name), *counts, rate(found.f1), share(found.two_raters))


def _bias_table(found: Sequence[BiasFacts]) -> tuple[DocumentTable, ...]:
    rows = [
        (
            _BIAS[one.by],
            f"{signed(one.scores.value)} {_limits(one.scores)}",
            signed(one.ratings),
            signed(None if one.difference is None else one.difference.value),
            NOT_ESTIMABLE if one.difference is None else _limits(one.difference),
        )
        for one in found
    ]
    return table(
        "Scores go with|#tau-b and interval|#Of the raters|#Difference|#Interval", rows
    )


def _limits(found: Any) -> str:
    return change_limits(found.low, found.high)


def rows_section(facts: JudgeReleaseFacts) -> DocumentSection:
    """Return which numbers of single pairs this release holds, and what that means."""
    held = [one for one in facts.evaluations if one.role == "holdout"]
    lead = [
        f"{ROWS} holds a row for each rated pair: unit, score and the mean of the "
        "raters' points, so that verify can measure the agreement again. Units are "
        "numbered by these values alone, and rows stand in that order: no id, no "
        "text, no rater and no order of a cohort can be read from them."
    ]
    if held:
        rows = sum(one.rows for one in held)
        names = ", ".join(told(one.cohort) for one in held)
        lead.append(
            f"So much of the holdout {names} left the vault: {counted(rows, 'row')} of "
            "unit, score and points, and the numbers on this card. Its ids, marked "
            "errors and the points of single raters stay sealed."
        )
        lead.append(
            "Whoever has the texts of these pairs and asks the judge again can tell by "
            "the score which row is which pair, and learn its mean points: to them the "
            "points are no longer unseen."
        )
    return DocumentSection(
        key="rows",
        title="What left the vault" if held else "Rows of single pairs",
        lead=tuple(lead),
        lines=tuple(
            FactLine(f"Rows of {told(one.cohort)} ({told(one.role)})", count(one.rows))
            for one in facts.evaluations
        ),
    )


def judge_change_section(facts: JudgeReleaseFacts) -> DocumentSection:
    """Return what agrees better or worse than before; said even where nothing was."""
    change = facts.change
    before = told(change.previous) or told(change.from_ref)
    if not before:
        lead = "Nothing to compare with: this release follows no other."
    elif change.agreement is None:
        lead = f"Nothing was compared with {before}."
    else:
        lead = f"Against {before}, on the development cohort, not on the holdout."
    scores = [*([change.agreement] if change.agreement else []), *change.f1]
    rows = [(told(one.name), share(one.before), share(one.after)) for one in scores]
    notes = []
    if change.difference is not None:
        told_of = change.difference
        notes.append(
            f"Difference of the agreement: {signed(told_of.value)} {_limits(told_of)}; "
            "each end is a one-sided limit at the protocol's confidence."
        )
    low = change.difference.low if change.difference else None
    high = change.difference.high if change.difference else None
    return DocumentSection(
        key="change",
        title="Against what came before",
        lead=(lead,),
        tables=table("Number|#Before|#After", rows),
        notes=tuple(notes),
        alarm=low is not None and high is not None and high < 0,
    )


def _ensemble_sections(facts: JudgeReleaseFacts) -> Iterator[DocumentSection]:
    """Yield how the ensembles that are released with the judge are reckoned."""
    for place, one in enumerate(facts.ensembles, 1):
        worth = "What it is worth out of fold was not measured."
        if one.tau_b is not None:
            beats = "" if one.beats else "not "
            worth = (
                f"Out of fold its tau-b with the mean of the raters is "
                f"{share(one.tau_b.value)} {interval(one.tau_b)}; it is {beats}shown "
                "to agree more than its best member."
            )
        yield DocumentSection(
            key=f"ensemble-{place}",
            title=f"Ensemble {told(one.ref)}",
            lead=(
                f"The {told(one.method)} of {counted(len(one.members), 'member')}, "
                f"fitted on {counted(one.pairs, 'pair')} of {told(one.cohort)} with "
                f"{told(one.ratings)}. {worth}",
                f"Its score, in {told(one.unit)}, is {significant(one.intercept)} "
                "plus, for each member, the coefficient times the value less the "
                "centre. A pair of which a member says nothing has none.",
            ),
            tables=table(
                "Member|#Centre|#Coefficient",
                [
                    (
                        f"{told(member.title)} ({told(member.name)})",
                        significant(member.centre),
                        significant(member.coefficient),
                    )
                    for member in one.members
                ],
            ),
            notes=(
                "Members must be the very ones that it was fitted with: "
                f"{ensemble_names(one.ref)[0]} has their digests, conventions and all "
                f"digits; {ensemble_names(one.ref)[1]} the rows, from which "
                "`ranloop verify` fits it again. It was not measured on the holdout.",
            ),
        )


def _claim_section(facts: JudgeReleaseFacts) -> DocumentSection:
    protocol = facts.protocol
    return DocumentSection(
        key="claim",
        title="Claim",
        lead=(judge_claim_sentence(facts),),
        lines=(
            fact("Verdict", facts.claim.verdict),
            FactLine(
                "Many checks",
                "all must pass: an intersection-union test, which needs no correction",
            ),
            fact("Protocol", protocol.digest),
            fact("Registered in the ledger", protocol.registered),
            FactLine("Before the runs", "no" if protocol.late else "yes"),
            fact("Section judging", _rules(facts)),
            fact("Content of the protocol", protocol.content),
        ),
    )


def _limits_section(facts: JudgeReleaseFacts) -> DocumentSection:
    notes = [
        *late_notes(facts),
        *(
            f"On {told(one.cohort)}: {outcome_words(one.statuses)}."
            for one in facts.evaluations
        ),
        "The numbers of the development cohort are optimistic: versions were written "
        "and chosen on its pairs, and nothing is corrected for that.",
        "Agreement is with these raters on these pairs; other raters, models and "
        "hospitals were not measured.",
        "The interval of an F1, biases and repeats rest on the pairs and cannot be "
        "recomputed from this folder.",
        "The checklists MI-CLEAR-LLM and TRIPOD-LLM ask about what is read out of "
        "texts, and are not filled in for a judge.",
        *(
            f"The patients of {told(one.name)} are not known: pairs with the same "
            "reference are drawn together."
            for one in facts.cohorts
            if not one.patients_known
        ),
        *map(told, facts.separation.remarks),
    ]
    return limits_with(
        "what kinds of pair it judges wrongly, and who is affected", notes
    )


def _shots_lines(shots: ShotsFacts | None) -> tuple[FactLine, ...]:
    """Return which examples the judge is shown; nothing without any."""
    if shots is None:
        return ()
    return (
        FactLine(
            "Examples in the prompt",
            f"{shots.examples} assessed pairs of the pool {told(shots.pool)} "
            f"({shots.kind}:{shots.n}, seed {shots.seed}, score {shots.score}, "
            f"{shots.digest[:12]}). Their ids and digests are in "
            "prompt/prompt.yaml; their texts are private and in no file of this "
            "release: it can be asked where that pool is. Examples of one data set may "
            "help on that one only.",
        ),
    )


def _use_section(facts: JudgeReleaseFacts) -> DocumentSection:
    labels = [told(one).replace("_", " ") for one in facts.release.labels]
    reads = [f"{one.ref} ({one.digest[:12]})" for one in facts.reads]
    score = facts.score
    weights = "none" if score.weights is None else score.weights
    return DocumentSection(
        key="use",
        title="Intended use",
        lines=(
            FactLine(
                "Task",
                "counts the errors of a generated report against a reference report: "
                f"{', '.join(labels)}",
            ),
            FactLine(
                "Score that is claimed",
                f"{told(score.title)}: {told(score.about)} "
                f"{told(score.better).capitalize()} is better.",
            ),
            fact("Weights: matched, significant, insignificant", weights),
            fact(
                "Categories of errors",
                f"version {facts.categories.version} of labels/errors.yaml",
            ),
            fact("Digest of the categories", facts.categories.digest),
            FactLine("Reads, with the engine rules", ", ".join(reads) or "nothing"),
            *_shots_lines(facts.shots),
            fact("Languages of the texts", facts.release.languages),
            FactLine("Intended use", author="the use this release is meant for"),
            FactLine(
                "Intended users", author="who uses it, and who checks its answers"
            ),
            FactLine(
                "Out of scope",
                "texts of other sources or languages than the cohorts below: nothing "
                "was measured on them; a decision about a single report or patient",
                author="uses that must be ruled out",
            ),
            FactLine("Contact", author="where to report an error"),
        ),
    )


def _cohort_section(facts: JudgeReleaseFacts) -> DocumentSection:
    lines = [line for one in facts.cohorts for line in _cohort(one)]
    lead = () if lines else ("No cohort is recorded.",)
    return DocumentSection(
        key="cohorts", title="Cohorts", lead=lead, lines=tuple(lines)
    )


def _cohort(one: RatedCohort) -> tuple[FactLine, ...]:
    name = told(one.name)
    said = [
        f"role {told(one.role)}",
        counted(one.cases, "pair"),
        counted(one.references, "reference"),
        f"language {told(one.language) or 'not recorded'}",
        "patients known" if one.patients_known else "patients not known",
        "SYNTHETIC: made-up texts" if one.synthetic else "",
    ]
    source = filter(None, map(told, (one.source, one.licence, one.citation)))
    ratings = (
        f"version {one.ratings}, {counted(one.raters, 'rater')}, {told(one.dimension)} "
        f"{told(one.scale)}"
    )
    return (
        FactLine(name, ", ".join(filter(None, said))),
        fact(f"{name}: source", "; ".join(source)),
        fact(f"{name}: digest", one.digest),
        fact(f"{name}: ratings", ratings),
        fact(f"{name}: ratings digest", one.ratings_digest),
    )


def _history_section(facts: JudgeReleaseFacts) -> DocumentSection:
    rows = [
        (
            *map(told, (one.ref, one.time, one.author, one.why)),
            told(one.verdicts),
            share(one.observed),
            told(one.measured) or NOT_ESTIMABLE,
            told(one.status),
        )
        for one in facts.history
    ]
    roles = any(one.verdict_roles for one in facts.history)
    columns = "Version|Time (UTC)|Author|Why|#Verdicts|#Agreement|Measured with|Status"
    return DocumentSection(
        key="history",
        title="History",
        lead=(
            f"Versions and drafts that are recorded: {len(rows)}. The agreement is the "
            "newest recorded one on the development cohort.",
        ),
        tables=table(columns, rows),
        notes=(f"Verdicts given by: {ROLES_MEAN}.",) if roles else (),
    )
