"""The verb ``dr``: do scores fall for errors, and only for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Annotated, NamedTuple

import numpy as np
import typer

from loop.cli.console import (
    GATE_EXIT,
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    find_place,
    note,
    own_output,
    print_json,
    print_table,
    say,
)
from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, material
from loop.core.safe_text import quoted
from loop.documents.svg import as_file
from loop.evaluate.protocol import read_protocol
from loop.judge.discrimination import (
    MarkedPairs,
    PairScores,
    choose_threshold,
    measure_discrimination,
    read_marked_pairs,
    read_pair_scores,
    require_apart,
)
from loop.judge.discrimination_text import (
    CONVENTIONS,
    COST_HEADER,
    HEADER,
    DiscriminationDocument,
    HeldJudge,
    cost_rows,
    count_pairs,
    discrimination_data,
    discrimination_notes,
    discrimination_rows,
    discrimination_svg,
    kind_rows,
    render_discrimination,
)
from loop.judge.gate_text import GATE_HEADER, judge_gate_row
from loop.judge.judge import Judge, list_judges
from loop.judge.marked_judges import (
    MarkedAnswers,
    hold_marked_answers,
    judge_marked_pairs,
    record_marked_gate,
)
from loop.labels.taxonomy import read_taxonomy
from loop.release.extractors import ExtractorOptions, score_texts
from loop.run.asking import EngineOptions
from loop.score.joining import join_texts
from loop.score.metrics.base import Direction
from loop.score.metrics.registry import FAMILIES, METRICS

_COLUMNS = 100
_SYSTEM = "changed"


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("dr")(dr)


class _Graders(NamedTuple):
    """What is to be held against the pairs."""

    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    engine: str
    asking: EngineOptions
    place: WorkspacePaths | None


def dr(
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Folder of `ranloop inject`, or a CSV file of marked pairs."
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="Metric, family or judge; once for each."),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--scores", "-s", help="Scores of your own: columns id and one a metric."
        ),
    ] = None,
    lower: Annotated[
        list[str] | None,
        typer.Option("--lower", help="Column of --scores in which lower is better."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            "-e",
            help="Engine of the judges: rules, openai:MODEL[@URL], vllm:MODEL[@URL].",
        ),
    ] = "rules",
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="METRIC=VALUE",
            help="Flag what scores worse than this; once for each metric.",
        ),
    ] = None,
    choose_on: Annotated[
        Path | None,
        typer.Option(
            "--choose-on",
            help="Other pairs on which each threshold is chosen, of other references.",
        ),
    ] = None,
    allow_unconstrained: UnconstrainedOption = False,
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Bootstrap resamples.")
    ] = 2_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    markdown: Annotated[
        Path | None, typer.Option("--md", help="Write Markdown.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Write D against R as a figure.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
) -> None:
    """Measure whether scores fall for errors, and only for errors.

    Pairs are marked significant, where the candidate has an error that matters, or
    not, where it is reworded without harm. A judge flags a candidate that has a
    significant error; another metric needs a threshold for that, which is never chosen
    on the pairs that are tested. Where the section judging of labels/protocol.yaml has
    lower limits for discrimination or robustness, each judge is held to them: exits
    with 100 unless every one passes, and records the verdict on a committed version in
    the ledger.
    """
    place = find_place(workspace)
    outputs = [one for one in (markdown, svg) if one is not None]
    for one in outputs:
        if place is not None:
            own_output(one, place)
    tested = read_marked_pairs(pairs)
    limits = _read_thresholds(threshold or ())
    other = None if choose_on is None else read_marked_pairs(choose_on)
    if other is not None:
        require_apart(tested, other)
    asked = _sort_names(
        place,
        metric or (),
        engine,
        EngineOptions(tell=note, allow_unconstrained=allow_unconstrained),
    )
    if not (asked.metrics or asked.judges or scores):
        raise typer.BadParameter(
            "name a metric or a judge with --metric, or scores of your own with "
            "--scores"
        )
    own = [
        one
        for path in scores or ()
        for one in read_pair_scores(path, tested, lower or ())
    ]
    _check_own(own, lower or (), limits, chosen=other is not None)
    with ProgressBar("dr", quiet=as_json).shown():
        judged = _judge(tested, asked)
        said = [score for one in judged for score in one.scores]
        held = [*said, *_score(tested, asked), *own]
        chosen = {} if other is None else _choose(other, asked)
        held = [_with_threshold(one, limits, chosen) for one in held]
        _require_used(limits, held)
        found = [
            measure_discrimination(tested, one, resamples=resamples, seed=seed)
            for one in held
        ]
    document = DiscriminationDocument(
        pairs=tested,
        found=tuple(found),
        judges=tuple(_hold(place, tested, one, acting(actor, role)) for one in judged),
        resamples=resamples,
        seed=seed,
    )
    if markdown is not None:
        _write_markdown(markdown, document)
    if svg is not None:
        write_atomic(svg, as_file(discrimination_svg(found)).encode("utf-8"))
        note(f"wrote {svg}")
    if as_json:
        print_json(discrimination_data(document))
    else:
        _show(document)
    if not document.passes:
        raise typer.Exit(GATE_EXIT)


def _hold(
    place: WorkspacePaths | None, pairs: MarkedPairs, said: MarkedAnswers, actor: Actor
) -> HeldJudge:
    """Return a judge with the verdict of the workspace's protocol, recorded."""
    if place is None:
        return HeldJudge(said)
    protocol = read_protocol(place)
    gate = hold_marked_answers(
        pairs, said, protocol.judging, confidence=protocol.confidence
    )
    recorded = gate is not None and record_marked_gate(place, pairs, said, gate, actor)
    return HeldJudge(said, gate, recorded)


def _check_own(
    own: Sequence[PairScores],
    lower: Sequence[str],
    limits: Mapping[str, float],
    *,
    chosen: bool,
) -> None:
    """Refuse what is said of columns that are not there, or cannot be done."""
    names = {one.name for one in own}
    unknown = [name for name in lower if name not in names]
    if unknown:
        raise DataError(f"--scores have no column {quoted(unknown[0])}. Correct it.")
    without = [name for name in names if name not in limits]
    if chosen and without:
        raise DataError(
            f"--choose-on scores texts, and {quoted(min(without))} comes from a file "
            "of scores. Name its threshold with --threshold."
        )


def _sort_names(
    place: WorkspacePaths | None,
    names: Sequence[str],
    engine: str,
    asking: EngineOptions,
) -> _Graders:
    """Return which names are metrics, and which judges."""
    judges = {one.name for one in list_judges(place)}
    metrics, judging = [], []
    for name in dict.fromkeys(names):
        if name in METRICS or name in FAMILIES:
            metrics.append(name)
        elif name.partition("@")[0] in judges:
            judging.append(name)
        else:
            raise DataError(
                f"no metric, family or judge is called {quoted(name)}. Judges: "
                f"{', '.join(sorted(judges))}; metrics: {', '.join(METRICS)}."
            )
    return _Graders(tuple(metrics), tuple(judging), engine, asking, place)


def _judge(pairs: MarkedPairs, asked: _Graders) -> list[MarkedAnswers]:
    """Return what each judge says of the pairs."""
    found = []
    for name in asked.judges:
        with Judge.open(asked.place, name, asked.engine, asked.asking) as judge:
            found.append(judge_marked_pairs(pairs, judge))
    return found


def _score(pairs: MarkedPairs, asked: _Graders) -> list[PairScores]:
    """Return what each metric says of the pairs."""
    found = []
    if asked.metrics:
        taxonomy = read_taxonomy(material(asked.place).labels)
        joined = join_texts(
            dict(zip(pairs.ids, pairs.references, strict=True)),
            {_SYSTEM: dict(zip(pairs.ids, pairs.candidates, strict=True))},
            taxonomy,
        )
        scored = score_texts(
            joined,
            taxonomy,
            asked.place,
            metrics=asked.metrics,
            extractor=ExtractorOptions(asking=asked.asking),
        )
        for unavailable in scored.sheet.unavailable:
            raise DataError(f"{unavailable.metric}: {unavailable.reason}")
        rows = {name: place for place, name in enumerate(pairs.ids)}
        for result in scored.sheet.results:
            values = np.full(len(rows), np.nan)
            ids = scored.sheet.case_ids[result.system]
            values[[rows[name] for name in ids]] = result.per_case
            found.append(
                PairScores(
                    name=result.metric.name,
                    title=result.metric.title,
                    lower=result.metric.direction is Direction.LOWER,
                    values=values,
                    signature=result.signature,
                )
            )
    return found


def _choose(pairs: MarkedPairs, asked: _Graders) -> dict[str, float]:
    """Return the threshold of each metric, chosen on other pairs."""
    judged = [score for one in _judge(pairs, asked) for score in one.scores]
    return {
        one.name: choose_threshold(pairs, one)
        for one in (*judged, *_score(pairs, asked))
        if one.flags is None
    }


def _with_threshold(
    one: PairScores, named: Mapping[str, float], chosen: Mapping[str, float]
) -> PairScores:
    if one.name in named:
        return one.flagged_below(named[one.name], "as named")
    if one.name in chosen:
        return one.flagged_below(chosen[one.name], "chosen on other pairs")
    return one


def _read_thresholds(given: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in given:
        name, _, value = one.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            name = ""
        if not name or not np.isfinite(found.get(name, np.nan)):
            raise typer.BadParameter(
                f"--threshold {quoted(one)}: write METRIC=VALUE, such as rouge_l=0.6"
            )
    return found


def _require_used(limits: Mapping[str, float], held: Sequence[PairScores]) -> None:
    unknown = limits.keys() - {one.name for one in held}
    if unknown:
        raise DataError(
            f"--threshold names {', '.join(sorted(unknown))}, which is not measured "
            f"here. Measured are {', '.join(one.name for one in held)}."
        )


def _write_markdown(path: Path, document: DiscriminationDocument) -> None:
    write_atomic(path, render_discrimination(document).encode("utf-8"))
    note(f"wrote {path}")


def _show(document: DiscriminationDocument) -> None:
    found = document.found
    counts = count_pairs(document.pairs)
    say(
        f"{counts.significant:,} significant and {counts.harmless:,} harmless pairs of "
        f"{counts.references:,} reference{'' if counts.references == 1 else 's'}"
    )
    say()
    print_table(HEADER, discrimination_rows(found))
    say()
    rows = kind_rows(found)
    print_table(("kind", "group", *(one.scores.title for one in found)), rows)
    say()
    if document.judges:
        print_table(COST_HEADER, cost_rows(document), title="what each judge took")
        say()
    for one in document.judges:
        if one.gate is not None:
            title = f"gate of {one.said.facts.ref}: {one.gate.verdict}"
            gated = [tuple(row) for row in map(judge_gate_row, one.gate.checks)]
            print_table(tuple(GATE_HEADER), gated, title=title)
            say()
    for text in (*CONVENTIONS, *discrimination_notes(document)):
        for number, part in enumerate(wrap(text, _COLUMNS - 6)):
            say(("      " if number else "note: ") + part)
    for each in found:
        say(f"signature of {each.scores.title}: {each.scores.signature}")
