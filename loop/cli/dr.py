"""The verb ``dr``: do scores fall for errors, and only for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
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
    say_wrapped,
)
from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.ledger import Actor
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
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
    DiscriminationDocument,
    HeldJudge,
    cost_rows,
    count_pairs,
    discrimination_data,
    discrimination_header,
    discrimination_notes,
    discrimination_rows,
    discrimination_svg,
    kind_rows,
    render_discrimination,
)
from loop.judge.ensemble_versions import PREFIX
from loop.judge.gate_text import GATE_HEADER, judge_gate_row
from loop.judge.marked_judges import (
    MarkedAnswers,
    hold_marked_answers,
    marked_cost,
    record_marked_gate,
    score_marked_pairs,
)
from loop.release.ensemble_scoring import score_ensemble
from loop.release.graders import (
    GradedTexts,
    Grader,
    GraderOptions,
    JudgeReading,
    judge_texts,
    measure_metrics,
    resolve_graders,
)
from loop.run.asking import EngineOptions


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("dr")(dr)


class _Graders(NamedTuple):
    """What is to be held against the pairs."""

    graders: tuple[Grader, ...]
    ensembles: tuple[str, ...]
    options: GraderOptions
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
        typer.Option(
            "--metric",
            "-m",
            help="Metric, family, judge, its score (green.errors) or ensemble:NAME; "
            "once for each.",
        ),
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
    named = list(metric or ())
    asked = _Graders(
        resolve_graders(place, [one for one in named if not one.startswith(PREFIX)]),
        tuple(dict.fromkeys(one for one in named if one.startswith(PREFIX))),
        GraderOptions(
            engine=engine,
            asking=EngineOptions(tell=note, allow_unconstrained=allow_unconstrained),
        ),
        place,
    )
    if not (named or scores):
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
        scored = _score(tested, asked)
        judged = _judge(tested, asked)
        said = [score for one in judged for score in one.scores]
        held = [*said, *scored, *own]
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


def _texts(pairs: MarkedPairs) -> GradedTexts:
    return GradedTexts(
        ids=pairs.ids, references=pairs.references, candidates=pairs.candidates
    )


def _judge(pairs: MarkedPairs, asked: _Graders) -> list[MarkedAnswers]:
    """Return what each judge says of the pairs."""
    return [
        MarkedAnswers(
            name=said.name,
            facts=said.facts,
            scores=tuple(_of_judge(said)),
            cost=marked_cost(pairs, said.answers),
        )
        for said in judge_texts(
            _texts(pairs), asked.place, asked.graders, asked.options
        )
    ]


def _score(pairs: MarkedPairs, asked: _Graders) -> list[PairScores]:
    """Return what metrics and ensembles say of the pairs, in this order."""
    texts = _texts(pairs)
    # Refused at once, and not after hours of the others, where references overlap.
    made = [_of_ensemble(pairs, texts, asked, one) for one in asked.ensembles]
    metrics = [one.metric for one in asked.graders if one.metric]
    columns = measure_metrics(texts, asked.place, metrics, asked.options)
    return [*(one.pair_scores for one in columns), *made]


def _of_judge(said: JudgeReading) -> Sequence[PairScores]:
    """Return the scores that were named, without flags; else those with its flags."""
    if said.grader.scores:
        return [one.pair_scores for one in said.columns]
    name = said.grader.name if said.grader.engine else said.name
    return score_marked_pairs(name, said.facts, said.counts, said.scores)


def _of_ensemble(
    pairs: MarkedPairs, texts: GradedTexts, asked: _Graders, name: str
) -> PairScores:
    """Return the scores of an ensemble that was not fitted on these references."""
    if asked.place is None:
        raise DataError(f"{quoted(name)}: ensembles are kept in a workspace. Name one.")
    told = replace(texts, cases=pairs.reference_ids)
    said = score_ensemble(asked.place, name, told, asking=asked.options.asking)
    for text in said.not_checked:
        note(f"{name}: overlap with the fitted pairs, not compared: {text}")
    return PairScores(
        name=name,
        title=said.version.ref,
        lower=False,
        values=said.scores,
        signature=said.version.signature,
    )


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
        f"{counted(counts.references, 'reference')}"
    )
    say()
    print_table(discrimination_header(found), discrimination_rows(found))
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
        say_wrapped("note: ", text)
    for each in found:
        say(f"signature of {each.scores.title}: {each.scores.signature}")
