"""A meta-evaluation on the terminal."""

from __future__ import annotations

from textwrap import wrap

from loop.cli.console import print_table, say
from loop.report.experts import words
from loop.report.experts.words import MetaDocument
from loop.report.numbers import interval, share, signed
from loop.score.experts.comparing import MetricComparison
from loop.score.experts.counts import CountAgreement
from loop.score.experts.meta import MetaEvaluation, MetricAgreement
from loop.stats.intervals import Estimate
from loop.stats.preference import Preference

_COLUMNS = 100
_TITLE = 34


def show_meta(document: MetaDocument) -> None:
    """Print the metrics, the raters, and what must be known of the numbers."""
    result = document.result
    say(f"{document.source}: {words.extent(result)}")
    say()
    _show_metrics(result)
    if result.pairs:
        say()
        _show_pairs(result)
    say()
    _show_raters(result)
    if document.counts:
        say()
        _show_counts(result, document.counts)
    say()
    best = words.against_best(result)
    if best:
        _show_best(result)
        say()
    for text in (words.headline(result), words.ceiling(result)):
        _wrapped(text)
    for text in (*words.left_out(result), *document.notes):
        _wrapped(f"note: {text}")
    for name, reason in result.unavailable:
        _wrapped(f"note: {name} did not run: {reason}")


def _show_metrics(result: MetaEvaluation) -> None:
    raters = [f"rater {name}" for name in result.raters]
    header = ("metric", "n", "tau-b", "Spearman", "Pearson", *raters)
    print_table(
        header,
        [
            (
                _title(one),
                str(one.consensus.n),
                _full(one.consensus.tau_b),
                share(one.consensus.spearman.value),
                share(one.consensus.pearson.value),
                *(share(each.tau_b.value) for each in one.raters),
            )
            for one in result.metrics
        ],
        title=(
            f"agreement with the mean of the raters, {100 * result.confidence:g} % "
            "intervals over "
            f"{'cases' if result.patients is None else 'patients'}; "
            "right columns: tau-b with each rater"
        ),
    )
    for one in result.metrics:
        if remarks := words.remarks(one):
            _wrapped(f"  {one.metric.title}: {remarks}")


def _show_pairs(result: MetaEvaluation) -> None:
    header = ("metric", "right", "wrong", "tied", "accuracy", "right", "tied", "of")
    print_table(
        header,
        [
            (
                _title(one),
                *_pair_cells(one.preference),
                _full(one.preference.accuracy),
                str(one.unanimous.right),
                str(one.unanimous.tied),
                str(one.unanimous.right + one.unanimous.wrong + one.unanimous.tied),
            )
            for one in result.metrics
        ],
        title=(
            f"which of two candidates is better: {result.pairs} pairs by the raters' "
            "mean, less those it ties and those without a value, then the "
            f"{result.unanimous} that all raters decide alike"
        ),
    )


def _pair_cells(found: Preference) -> tuple[str, str, str]:
    return (str(found.right), str(found.wrong), str(found.tied))


def _show_raters(result: MetaEvaluation) -> None:
    found = result.agreement
    rows = [
        (f"{one.first} and {one.second}", one.correlations, share(one.same))
        for one in found.pairs
    ]
    rows += [
        (f"{one.rater} and the others", one.correlations, "") for one in found.rest
    ]
    if rows:
        print_table(
            ("raters", "n", "tau-b", "Spearman", "Pearson", "same"),
            [
                (
                    name,
                    str(one.n),
                    _full(one.tau_b),
                    share(one.spearman.value),
                    share(one.pearson.value),
                    same,
                )
                for name, one, same in rows
            ],
            title="raters among themselves",
        )
    say(
        f"Krippendorff's alpha ordinal {_full(found.ordinal)}, interval "
        f"{_full(found.interval)}; ICC(2,1) {_full(found.icc)}"
    )


def _show_counts(result: MetaEvaluation, counts: tuple[CountAgreement, ...]) -> None:
    header = ("formula", "empty", *(f"rater {name}" for name in result.raters), "mean")
    print_table(
        (*header, "right", "tied"),
        [
            (
                f"{one.name}: {one.formula}",
                "" if one.empty is None else one.empty.value,
                *(f"{share(each.tau_b.value)} n {each.n}" for each in one.raters),
                share(one.tau_b),
                str(one.unanimous.right),
                str(one.unanimous.tied),
            )
            for one in counts
        ],
        title=(
            "from the raters' own counts: tau-b with the same rater's points; right "
            f"and tied of the {counts[0].unanimous.right + _rest(counts[0])} "
            "unanimous pairs"
        ),
    )


def _rest(one: CountAgreement) -> int:
    return one.unanimous.wrong + one.unanimous.tied + one.unanimous.undefined


def _show_best(result: MetaEvaluation) -> None:
    titles = {one.metric.name: one.metric.title for one in result.metrics}
    print_table(
        ("best against", "tau-b", "p", "Holm", "Pearson", "Williams", "Holm"),
        [
            (
                titles[
                    one.worse
                    if one.better == result.metrics[0].metric.name
                    else one.better
                ][:_TITLE],
                signed(_of_first(result, one, one.tau_b.difference)),
                words.optional_p(one.tau_b.p),
                words.optional_p(one.p_tau_b),
                signed(_of_first(result, one, one.pearson)),
                words.optional_p(one.williams.p),
                words.optional_p(one.p_williams),
            )
            for one in words.against_best(result)
        ],
        title=(
            f"{titles[result.metrics[0].metric.name]} against the others; p: "
            "permutation and Williams"
        ),
    )


def _of_first(
    result: MetaEvaluation, one: MetricComparison, value: float | None
) -> float | None:
    """Return a difference as seen from the first metric: negative where it loses."""
    lost = one.better != result.metrics[0].metric.name
    return -value if lost and value is not None else value


def _title(one: MetricAgreement) -> str:
    return one.metric.title[:_TITLE]


def _full(found: Estimate) -> str:
    return f"{share(found.value)} {interval(found)}"


def _wrapped(text: str) -> None:
    for place, line in enumerate(wrap(text, _COLUMNS, break_on_hyphens=False)):
        say(("  " if place else "") + line)
