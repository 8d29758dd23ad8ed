"""The sentences of a score: conventions, coverage, cautions, what systems differ by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loop.core.nouns import counted
from loop.documents.numbers import count, interval, listed, percent, share
from loop.labels.taxonomy import NO_FINDING
from loop.run.execute import Problem
from loop.score.metrics.base import Direction, Metric
from loop.score.records import (
    Coverage,
    ExtractorFacts,
    NoFinding,
    RanScore,
    SystemDifference,
    SystemScore,
    Uncertain,
)
from loop.score.scoring import Experts, ScoreDocument

_APART = 0.02
"""Shares of cells that differ by more than this are not passed over in silence."""

_OF_FINDINGS = 0.1
"""Nor are more cells than this share of the reference's findings: most cells hold none,
so that who hedges each of its errors leaves out few of all cells."""


class Cells(NamedTuple):
    """The cells of one system, each counted once."""

    decided: int
    """Present or absent on both sides: what the scores are of."""

    uncertain: int
    """Left out, because a side is uncertain."""

    unanswered: int
    """Left out, because a side has no answer, or a blank."""

    unpaired: int
    """Left out, because the reference has no candidate."""

    @property
    def total(self) -> int:
        """All cells of all references."""
        return sum(self)

    @property
    def share(self) -> float | None:
        """Share that is scored; None where there is no cell."""
        return self.decided / self.total if self.total else None


def count_cells(system: SystemScore, score: RanScore) -> Cells:
    """Return what became of every label of every reference under one system."""
    counted = [(one.counts.n, one.uncertain, one.unanswered) for one in system.labels]
    decided, uncertain, unanswered = map(sum, zip(*counted, strict=True))
    paired = decided + uncertain + unanswered
    whole = score.n_cases * len(score.labels)
    return Cells(decided, uncertain, unanswered, max(whole - paired, 0))


def scored_words(cells: Cells) -> str:
    """Return the share of cells that is scored, with its counts.

    Examples
    --------
    >>> scored_words(Cells(90, 6, 4, 0))
    '90.0 % (90 of 100)'
    """
    return f"{percent(cells.share)} ({count(cells.decided)} of {count(cells.total)})"


def unequal_coverage_sentence(score: RanScore) -> str:
    """Return a warning if systems are scored on different numbers of cells, or ""."""
    shares = [
        (found, one.system)
        for one in score.systems
        if (found := count_cells(one, score).share) is not None
    ]
    if len(shares) < 2:
        return ""
    (least, spared), (most, other) = min(shares), max(shares)
    fewer = round((most - least) * score.n_cases * len(score.labels))
    findings = max(_count_findings(one) for one in score.systems)
    if most - least <= _APART and fewer <= _OF_FINDINGS * findings:
        return ""
    again = hedges = ""
    if score.conventions.uncertain is Uncertain.EXCLUDED:
        hedges = "hedges, "
        again = " Score again with --uncertain wrong to count what is uncertain."
    return (
        f"{spared} is scored on {percent(least)} of the cells, {other} on "
        f"{percent(most)}: {counted(fewer, 'cell')} fewer, where the reference has "
        f"{counted(findings, 'finding')}. What a system {hedges}does not answer or "
        "leaves out is not held against it, neither in its rank nor in the "
        f"differences: it may owe its score to that.{again} What has no answer stays "
        "out under every option."
    )


def _count_findings(system: SystemScore) -> int:
    """Return how many scored cells of the reference are present."""
    return sum(one.counts.tp + one.counts.fn for one in system.labels)


def occurring_sentence(score: RanScore) -> str:
    """Return that means are over different labels; empty where they are not."""
    numbers = [one.effective_labels for one in score.systems]
    if score.conventions.zero_division != "skip" or len(set(numbers)) < 2:
        return ""
    return (
        f"The mean is over {min(numbers)} to {max(numbers)} of {len(score.labels)} "
        "labels, not over the same for every system: under zero_division skip a label "
        "counts for a system only if the system or the reference has it in a scored "
        "cell."
    )


FIRST = 5
"""Ids that are named before the rest is only counted."""

WAYS = {
    Direction.HIGHER: "higher is better",
    Direction.LOWER: "lower is better",
    Direction.NEITHER: "describes, does not grade",
}

_EMPTY_LABELS = {
    "skip": "is left out of the mean",
    "zero": "counts 0 in the mean",
    "one": "counts 1 in the mean",
}

_UNCERTAIN = {
    Uncertain.WRONG: "An uncertain value of a candidate is wrong where the reference "
    "decides: the label is missed or invented. An uncertain value of the reference "
    "leaves the pair out for that label, and is counted.",
    Uncertain.EXCLUDED: "An uncertain value on either side leaves the pair out for "
    "that label, and is counted.",
    Uncertain.PRESENT: "An uncertain value on either side counts as present.",
    Uncertain.ABSENT: "An uncertain value on either side counts as absent.",
}

READINGS = {
    Uncertain.WRONG: "wrong",
    Uncertain.EXCLUDED: "left out",
    Uncertain.PRESENT: "present",
    Uncertain.ABSENT: "absent",
}
"""What an uncertain value counts as, in a heading."""


def moves_sentence(score: RanScore) -> str:
    """Return by how much scores depend on what an uncertain value counts as."""
    moves = [
        (max(values) - min(values), one.system)
        for one in score.systems
        if (values := [r.ran_score for r in one.readings if r.ran_score is not None])
    ]
    if not moves:
        return "No score is defined, whatever an uncertain value counts as."
    most, system = max(moves)
    if round(most, 3) == 0:
        return "Scores are the same whatever an uncertain value counts as."
    named = f", that of {system} the most" if len(moves) > 1 else ""
    return (
        f"Between the readings of uncertain values scores move by up to {share(most)}"
        f"{named}. Compare scores under one reading only."
    )


_NO_FINDING = {
    NoFinding.RAN: "derived: present if and only if all other labels are absent",
    NoFinding.CHEXPERT: (
        "derived: present if and only if all other labels are absent, support devices "
        "excepted, which are ignored"
    ),
    NoFinding.READ: "as the label files give it",
}


def perfect_sentence(system: SystemScore, score: RanScore) -> str:
    """Return what a perfect copy of the references would score, and why."""
    rule = score.conventions.zero_division
    policy = (
        f"under zero_division {rule}, a label that neither side has "
        f"{_EMPTY_LABELS[rule]}"
    )
    if system.perfect is None:
        return (
            "A perfect copy of the references has no score here: "
            f"{policy}, and no decided cell of the references has a finding."
        )
    if system.perfect >= 1:
        more = "; that raises every score" if rule == "one" else ""
        return f"A perfect copy of the references scores 1.000: {policy}{more}."
    return (
        f"A perfect copy of the references would score only {share(system.perfect)}, "
        f"not 1: {policy}, and some labels never occur in the references. Use "
        "--zero-division skip for a score that can reach 1."
    )


def convention_sentences(score: RanScore) -> tuple[str, ...]:
    """Return every convention of the numbers as a sentence."""
    rules, total = score.conventions, len(score.labels)
    derived = NO_FINDING in score.labels
    read = "both sides read by the same extractor"
    if not score.extractor.digest:
        read = "as the files give them"
    elif score.extractor.ref.startswith("given+"):
        read = "some files giving labels and the texts of others read by the extractor"
    return (
        f"Ran Score is the mean F1 over the {total} labels (macro-F1), {read}. Pairs "
        "are joined by id, never by position.",
        f"A label that neither side ever has {_EMPTY_LABELS[rules.zero_division]} "
        f"(zero_division {rules.zero_division}); the number of labels that occur, on "
        "either side of a scored cell, is shown beside every score.",
        "Macro precision and recall are means over the same labels as the macro-F1: "
        "the precision of a label that a system never reports counts 0 there, and so "
        "does the recall of one that the references never have.",
        "Scores of single cases (per_case.csv, and the F1 of the cases to look at) are "
        "over the labels of that one case, 1 where neither side has any: their mean is "
        "not the macro-F1 of the system.",
        f"{_UNCERTAIN[rules.uncertain]} A missing answer is never read as absent: the "
        "pair is left out and counted. A system is "
        "scored only on the cells (one label of one case) that are left.",
        *([f"“No Finding” is {_NO_FINDING[rules.no_finding]}."] if derived else []),
        "A candidate without a word says nothing: no label is present"
        f"{', “No Finding” included' if derived else ''}. A reference without a "
        "candidate is not scored, and is listed.",
        f"{interval_sentence(score)} “Best in” is the share of resamples in which a "
        "system scores highest.",
    )


def interval_sentence(score: RanScore) -> str:
    """Return what was resampled for the intervals, and how often."""
    unit = "cases"
    if score.n_patients is not None:
        unit = f"the {count(score.n_patients)} patients, each with all their cases"
    return (
        f"Intervals: {100 * score.confidence:g} % percentile bootstrap, "
        f"{count(score.resamples)} resamples of {unit}, seed {score.seed}."
    )


COMPARABLE = (
    "Scores of two documents may be compared only where their signatures agree and "
    "their references are the same. Within this one, L (labels that occur) and n "
    "(cases) may differ between systems. – is not estimable."
)


def comparison_sentence(score: RanScore) -> str:
    """Return how pairs of systems were compared."""
    unit = "case" if score.n_patients is None else "patient"
    exact = score.differences and all(one.exact for one in score.differences)
    how = (
        "all exchanges were counted"
        if exact
        else f"{count(score.permutations)} random exchanges, p = (k + 1) / (B + 1), "
        "or all of them where there are no more"
    )
    return (
        "Each pair is compared on the cells that both systems and the reference "
        "decide, so a difference need not be that of the two scores above. p is of a "
        f"two-sided test that exchanges the two systems' answers {unit} by {unit} "
        f"({how}); Holm adjusts for all pairs. The interval comes from the "
        "bootstrap: near the edge the two may disagree."
    )


def floor_sentence(score: RanScore, alpha: float = 0.05) -> str:
    """Return that no sampled pair can differ; empty where one can.

    No sampled p is below ``1 / (B + 1)``, which Holm multiplies by the pairs that do
    not come before it: only exact ones can.
    """
    tested = [one for one in score.differences if one.p is not None]
    least = 1 / (score.permutations + 1)
    left = sum(not one.exact or (one.p or 0.0) >= least for one in tested)
    if all(one.exact for one in tested) or left * least < alpha:
        return ""
    return (
        f"With {count(len(tested))} pairs and {count(score.permutations)} exchanges no "
        f"sampled pair can have a Holm p below {alpha:g}: none is shown to differ, and "
        f"none is shown not to. Use --permutations {round(10 * left / alpha)}, or "
        "fewer systems."
    )


def caution_sentences(score: RanScore) -> list[str]:
    """Return what keeps the systems of a ranking from being compared as it looks."""
    every = (
        unequal_coverage_sentence(score),
        occurring_sentence(score),
        floor_sentence(score),
    )
    return [one for one in every if one]


def verdict_words(one: SystemDifference, alpha: float = 0.05) -> str:
    """Return whether a difference may be taken for one.

    Examples
    --------
    >>> from loop.stats.intervals import Estimate
    >>> gain = Estimate(0.1, 0, 0.2)
    >>> verdict_words(SystemDifference("a", "b", gain, 0.01, 0.02, True))
    'differs'
    """
    if one.p_holm is None:
        return "not tested"
    return "differs" if one.p_holm < alpha else "not distinguishable"


class Gap(NamedTuple):
    """Rows that could not be used as they are."""

    what: str
    ids: tuple[str, ...]


def coverage_problems(one: Coverage) -> tuple[Gap, ...]:
    """Return what is off with the rows of one system; empty when nothing is."""
    told = (
        Gap("references without a candidate, not scored", one.missing),
        Gap("candidates without a reference, left out", one.extra),
        Gap("repeated with the same content, used once", one.repeated),
        Gap("candidates without a word, scored as saying nothing", one.empty),
    )
    return tuple(problem for problem in told if problem.ids)


def coverage_lines(document: ScoreDocument) -> tuple[str, ...]:
    """Return what is off with the rows of all files, with the first few ids."""
    sources = document.sources
    told = (
        Gap("without a word, left out", sources.empty_references),
        Gap("repeated with the same content, used once", sources.repeated_references),
    )
    lines = [_line("references", problem) for problem in told if problem.ids]
    for one in document.score.coverage:
        lines += [_line(one.system, problem) for problem in coverage_problems(one)]
    return (*lines, *sources.notes)


def _line(name: str, problem: Gap) -> str:
    number = count(len(problem.ids))
    return f"{name}: {number} {problem.what}: {listed(problem.ids, FIRST)}"


def left_out_line(system: SystemScore, score: RanScore) -> str:
    """Return how many cells of a system are decided, and why others are not."""
    cells = count_cells(system, score)
    unpaired = f", {count(cells.unpaired)} without a candidate"
    return (
        f"{count(cells.decided)} of {count(cells.total)} cells decided on both sides; "
        f"left out: {count(cells.uncertain)} uncertain, {count(cells.unanswered)} "
        f"without a value{unpaired if cells.unpaired else ''}"
    )


def extractor_name(facts: ExtractorFacts) -> str:
    """Return what read the labels, for people.

    Examples
    --------
    >>> extractor_name(ExtractorFacts(ref="given", digest="", engine=""))
    'labels as given'
    >>> extractor_name(ExtractorFacts(ref="a@v1", digest="00", engine="rules"))
    'a@v1, engine rules'
    """
    if not facts.digest:
        return "labels as given"
    release = f", release {facts.release}" if facts.release else ""
    return f"{facts.ref}{release}, engine {facts.engine}"


def outcome_line(outcomes: Mapping[str, int]) -> str:
    """Return what became of the distinct texts, on one line.

    Examples
    --------
    >>> outcome_line({"answered": 3, "engine_failed": 1})
    '3 answered, 1 engine failed'
    """
    told = (f"{count(n)} {name.replace('_', ' ')}" for name, n in outcomes.items())
    return ", ".join(told)


def problem_line(problem: Problem) -> str:
    """Return why some texts have no answer, with a few of their cases."""
    more = ", ..." if problem.cases > len(problem.examples) else ""
    cases = ", ".join(problem.examples)
    texts = counted(problem.cases, "distinct text")
    return f"no answer for {texts}: {problem.text} ({cases}{more})"


def agreement_line(experts: Experts) -> str:
    """Return how well raters agree, on one line."""
    found = experts.agreement
    return (
        f"{len(experts.raters)} raters, {experts.scale[0]:g} to {experts.scale[1]:g} "
        f"points, {count(found.candidates)} candidates rated, "
        f"{count(found.missing)} ratings missing. Krippendorff's alpha, ordinal: "
        f"{share(found.ordinal.value)} {interval(found.ordinal)}; ICC(2,1): "
        f"{share(found.icc.value)} {interval(found.icc)} on "
        f"{count(found.complete)} candidates that all rated; tau-b of two raters, "
        f"mean: {share(found.tau_b)}"
    )


def rated_line(experts: Experts) -> str:
    """Return how many candidates have both, and what is left over."""
    return (
        f"{count(experts.rated)} scored candidates are rated, "
        f"{count(experts.unrated)} are not; {count(experts.unscored)} rated ones have "
        "no score"
    )


def range_words(metric: Metric) -> str:
    """Return the range of a metric, for example ``"0 to 1"``."""
    low = "\N{MINUS SIGN}\N{INFINITY}" if metric.low is None else f"{metric.low:g}"
    high = "\N{INFINITY}" if metric.high is None else f"{metric.high:g}"
    return f"{low} to {high}".replace("-", "\N{MINUS SIGN}")
