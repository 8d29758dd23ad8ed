"""The verb ``judge``: say what is wrong in generated reports, pair by pair."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from loop.cli.console import (
    GATE_EXIT,
    JsonOption,
    ProgressBar,
    UnconstrainedOption,
    WorkspaceOption,
    find_place,
    note,
    own_output,
    print_json,
    print_table,
    say,
    say_wrapped,
)
from loop.cli.meta_eval import show_error_agreement
from loop.cli.score import ScoreInputs, check_given, join_given
from loop.core.files import write_atomic
from loop.core.ledger import Actor
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths, material
from loop.documents.numbers import NOT_ESTIMABLE, count, interval, share
from loop.documents.svg import as_file
from loop.documents.templates import shipped_templates, template_folder
from loop.judge.counts import JudgeScore, scores_of
from loop.judge.document import (
    FILES,
    JudgeDocument,
    JudgeOptions,
    judge_data,
    judge_systems,
    judges_data,
    notes,
    render_files,
    score_lines,
)
from loop.judge.gate_text import GATE_HEADER, judge_gate_rows
from loop.judge.grounded_phrases import (
    grounded_data,
    grounded_notes,
    judge_phrases,
    read_grounded,
)
from loop.judge.judge import (
    Judge,
    counts_errors,
    find_judge,
    is_answered_by_rules,
    list_judges,
)
from loop.judge.judge_evaluation import (
    JudgeEvaluation,
    evaluate_judge_run,
    judge_evaluation_data,
    judge_evaluation_notes,
    passes,
    record_judge_evaluation,
)
from loop.judge.pairwise import (
    PairwiseResult,
    compare_pairwise,
    is_pairwise,
    pairwise_data,
    pairwise_notes,
    pairwise_rows,
)
from loop.judge.rubric import read_rubric, with_rubric
from loop.judge.shots import (
    ShotRequest,
    add_shots,
    find_shared_pairs,
    request_shots,
    sample_cases,
)
from loop.judge.surfaces import surfaces_svg
from loop.labels.shot_pool import SYNTHETIC
from loop.labels.taxonomy import read_taxonomy
from loop.prompts.catalog import list_prompts
from loop.prompts.outputs.base import get_contract
from loop.prompts.outputs.green_sections import ParserMode
from loop.prompts.shot_records import ShotScore
from loop.prompts.version import PromptVersion
from loop.release.folder import RELEASE_NAME
from loop.release.load import ENGINE, RunRequest, engine_remark, find_request
from loop.run.asking import EngineOptions
from loop.score.documents.score_files import check_folder, write_folder
from loop.score.documents.sentences import WAYS
from loop.score.experts.documents import DAGGER
from loop.score.experts.error_counts import Empty
from loop.score.metrics.base import Direction
from loop.score.metrics.score_sheet import MetricResult
from loop.score.reading.options import ReadingOptions
from loop.score.records import Joined
from loop.stats.intervals import Estimate


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("judge")(judge)


def judge(
    name: Annotated[
        str,
        typer.Argument(
            help="Judge: green, one_pass, a version of yours, or a release (green-v2)."
        ),
    ] = "",
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Candidates, FILE or NAME=FILE each, as for score."),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", "-r", help="File of the references.")
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs", help="One file with columns id, reference, candidate[, system]."
        ),
    ] = None,
    radpref: Annotated[
        Path | None,
        typer.Option("--radpref", help="Folder of the RadPref data set."),
    ] = None,
    phrases: Annotated[
        Path | None,
        typer.Option(
            "--phrases",
            help="For radfact: phrases of both reports, with boxes or without (JSONL).",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            "-e",
            help="rules, openai:MODEL[@URL] or vllm:MODEL[@URL].",
            show_default="the release's, else rules",
        ),
    ] = None,
    parser: Annotated[
        ParserMode,
        typer.Option(
            "--parser",
            help="official: beside ours, as the published parser of GREEN reads the "
            "same answers, faults included.",
        ),
    ] = ParserMode.TOLERANT,
    empty: Annotated[
        Empty,
        typer.Option("--empty", help="What a pair without matches and errors scores."),
    ] = Empty.ONE,
    weights: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            "--weights",
            metavar="A B C",
            help="One more score: aM / (aM + bS + cI).",
            show_default=False,
        ),
    ] = None,
    rubric: Annotated[
        Path | None,
        typer.Option(
            "--rubric",
            help="YAML file with a criterion and descriptions of 1 to 5 points, for "
            "rating and rating_pairwise.",
        ),
    ] = None,
    shots: Annotated[
        str,
        typer.Option(
            "--shots",
            help="Show assessed pairs first: random:N, per_error, injected:N or "
            "assessed:N.",
        ),
    ] = "",
    pool: Annotated[
        str,
        typer.Option("--pool", help="Cohort with the role shots to choose them from."),
    ] = SYNTHETIC,
    shots_seed: Annotated[
        int, typer.Option("--shots-seed", min=0, help="Seed of the choice of shots.")
    ] = 0,
    shots_score: Annotated[
        ShotScore | None,
        typer.Option(
            "--shots-score",
            help="Score of a shot: linear is 1 - 0.15 S, inverse 1/(1 + S), rating the "
            "raters' points.",
            show_default="rating where there is one, else linear",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            min=1,
            help="Judge this many cases, drawn by --seed from those that share nothing "
            "with the shots.",
        ),
    ] = None,
    allow_unconstrained: UnconstrainedOption = False,
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Bootstrap resamples.")
    ] = 2_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    duplicates: Annotated[
        Literal["refuse", "first", "last"],
        typer.Option("--duplicates", help="What to do with an id of two contents."),
    ] = "refuse",
    encoding: Annotated[str, typer.Option("--encoding", help="Of all files.")] = "auto",
    language: Annotated[
        str, typer.Option("--language", help="Of all cases, for example en.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for documents and tables."),
    ] = None,
    list_all: Annotated[
        bool, typer.Option("--list", help="Show every judge and end.")
    ] = False,
    surfaces: Annotated[
        Path | None,
        typer.Option(
            "--surfaces",
            help="Write what scores make of matches and errors as SVG, and end.",
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge generated reports: errors by category and scores.

    References and candidates are joined by id. Answers are kept in the workspace, if
    there is one: the same pair is not asked about twice. A release is verified first,
    and asked with its engine and parameters.
    """
    place = find_place(workspace)
    if list_all:
        _show_judges(place, as_json=as_json)
        return
    if surfaces is not None:
        _write_surfaces(surfaces, place, empty)
        return
    if not name:
        raise typer.BadParameter("name a judge; `ranloop judge --list` shows all")
    asked = _request(place, name, engine)
    asking = EngineOptions(
        tell=note, allow_unconstrained=allow_unconstrained, **asked.parameters
    )
    if phrases is not None:
        _refuse_files(files, reference, pairs, radpref, out)
        _refuse_unused(
            rubric, weights, sample, shots, parser is not ParserMode.TOLERANT
        )
        _judge_phrases(place, asked, asking, phrases, resamples, seed, as_json=as_json)
        return
    given = ScoreInputs(
        reference=reference,
        candidates=tuple(files or ()),
        pairs=pairs,
        radpref=radpref,
        ratings=None,
    )
    check_given(given)
    options = _options(empty, weights, resamples, seed)
    if out is not None:
        _check_out(out, place)
    reading = ReadingOptions(
        encoding=encoding, language=language, duplicates=duplicates
    )
    request = _request_shots(shots, pool, shots_seed, shots_score)
    version = _version(place, asked, rubric, request)
    progress = ProgressBar("judge", quiet=as_json)
    if is_pairwise(version):
        _refuse_scores(version, out, weights, sample)
        _judge_pairwise(place, given, reading, version, asked.engine, asking, progress)
        return
    with progress.shown(), ExitStack() as stack:
        joined = join_given(given, read_taxonomy(material(place).labels), reading)
        joined = _draw_cases(place, version, joined, sample, seed)
        ours, *others = [
            stack.enter_context(
                Judge.open(place, version, asked.engine, asking, parser=one)
            )
            for one in dict.fromkeys((ParserMode.TOLERANT, parser))
        ]
        document = judge_systems(
            joined, ours, options, *others, watch=progress.part("pairs")
        )
        if out is not None:
            _write(document, out, place)
    if as_json:
        print_json(judge_data(document))
    else:
        _show(document)
    _require_answers(document)


def _require_answers(document: JudgeDocument) -> None:
    """End with a failure where no pair was judged."""
    if not any(one.answered for one in document.systems):
        note("no pair was judged: see above why, or `systems` of the JSON.")
        raise typer.Exit(1)


def _refuse_files(*given: object) -> None:
    """Refuse files of texts beside phrases."""
    if any(given):
        raise typer.BadParameter(
            "--phrases names the phrases of both reports: leave out other files and "
            "--out"
        )


def _refuse_unused(*given: object) -> None:
    """Refuse options that do not apply to phrases."""
    if any(given):
        raise typer.BadParameter(
            "--phrases takes no --rubric, --weights, --sample, --shots or --parser"
        )


def _judge_phrases(
    place: WorkspacePaths | None,
    asked: RunRequest,
    asking: EngineOptions,
    path: Path,
    resamples: int,
    seed: int,
    *,
    as_json: bool,
) -> None:
    """Print RadFact of phrases that are given."""
    pairs = read_grounded(path)
    progress = ProgressBar("judge", quiet=as_json)
    with progress.shown():
        found = judge_phrases(
            pairs,
            asked.prompt,
            asked.engine,
            workspace=place,
            asking=asking,
            resamples=resamples,
            seed=seed,
            watch=progress.part("pairs"),
        )
    if as_json:
        print_json(grounded_data(found))
    else:
        say(f"{counted(found.pairs, 'pair')} of phrases, judged by {found.judge}")
        say()
        print_table(
            ("share of phrases", "precision", "recall", "F1", "pairs"),
            [
                (
                    one.name,
                    *(_interval(each) for each in (one.precision, one.recall, one.f1)),
                    " + ".join(map(str, one.pairs)),
                )
                for one in found.scores
            ],
        )
        say()
        _say_notes(grounded_notes(found))
    if not found.answered:
        note("no pair was judged: see above why.")
        raise typer.Exit(1)


def _say_notes(texts: Iterable[str]) -> None:
    """Print what a reader of the numbers must know, wrapped."""
    for text in texts:
        say_wrapped("note: ", text)


def _interval(one: Estimate) -> str:
    if one.value is None:
        return NOT_ESTIMABLE
    if one.low is None:
        return share(one.value)
    return f"{share(one.value)} {interval(one)}"


def _version(
    place: WorkspacePaths | None,
    asked: RunRequest,
    rubric: Path | None,
    shots: ShotRequest | None,
) -> PromptVersion:
    """Return the version that is asked, with the rubric and shots that are given."""
    version = find_judge(place, asked.prompt)
    if rubric is not None:
        version = with_rubric(version, read_rubric(rubric))
    return version if shots is None else add_shots(place, version, shots)


def _refuse_scores(version: PromptVersion, *given: object) -> None:
    """Refuse options about scores, which a judge that compares does not give."""
    if any(one is not None for one in given):
        raise typer.BadParameter(
            f"--out, --weights and --sample: {version.ref} scores no pair; leave them "
            "out, and use --json"
        )


def _judge_pairwise(
    place: WorkspacePaths | None,
    given: ScoreInputs,
    reading: ReadingOptions,
    version: PromptVersion,
    engine: str,
    asking: EngineOptions,
    progress: ProgressBar,
) -> None:
    """Compare two systems in both orders, and print which is preferred."""
    with progress.shown():
        joined = join_given(given, read_taxonomy(material(place).labels), reading)
        watch = progress.part("pairs")
        found = compare_pairwise(joined, place, version, engine, asking, watch=watch)
    _show_pairwise(found, as_json=progress.quiet)


def _show_pairwise(found: PairwiseResult, *, as_json: bool) -> None:
    """Print which system is preferred, and what hangs on the order."""
    if as_json:
        print_json(pairwise_data(found))
    else:
        share_of, first = found.share, found.systems[0]
        say(f"{found.ref} with {found.engine}, each case in both orders")
        say()
        print_table(("answers", "n"), pairwise_rows(found))
        say()
        if share_of.value is None:
            say(share_of.note)
        else:
            say(
                f"{first} preferred in {share(share_of.value)} {interval(share_of)} of "
                "the decided cases (exact 95 % limits, over cases)"
            )
        _say_notes(pairwise_notes(found))
    if found.unanswered == len(found.case_ids):
        note("no case was compared: see above why, or `problems` of the JSON.")
        raise typer.Exit(1)


def _write_surfaces(path: Path, place: WorkspacePaths | None, empty: Empty) -> None:
    """Write how scores depend on the counts, whatever judge counts."""
    if place is not None:
        own_output(path, place)
    write_atomic(path, as_file(surfaces_svg(empty)))
    note(f"wrote {path}")


def _request(place: WorkspacePaths | None, name: str, engine: str | None) -> RunRequest:
    """Return which judge is asked, of which engine; a release is verified first."""
    named = place is not None and RELEASE_NAME.fullmatch(name) is not None
    if place is None or not named or name in list_prompts(place):
        return RunRequest(name, engine or ENGINE, {})
    found = find_request(place, release=name, engine=engine)
    if found.release is not None and found.engine != found.release.facts.engine.name:
        note(engine_remark(found.release))
    return found


def _options(
    empty: Empty,
    weights: tuple[float, float, float] | None,
    resamples: int,
    seed: int,
) -> JudgeOptions:
    try:
        return JudgeOptions(
            empty=empty, weights=weights, resamples=resamples, seed=seed
        )
    except ValueError as error:
        raise typer.BadParameter(f"--weights: {error}") from error


def _request_shots(
    shots: str, pool: str, seed: int, score: ShotScore | None
) -> ShotRequest | None:
    """Return which shots are asked for; None for none."""
    if shots:
        return request_shots(shots, pool, seed, score)
    if pool != SYNTHETIC or seed or score:
        raise typer.BadParameter(
            "--pool, --shots-seed and --shots-score need --shots: give that, too"
        )
    return None


def _draw_cases(
    place: WorkspacePaths | None,
    version: PromptVersion,
    joined: Joined,
    sample: int | None,
    seed: int,
) -> Joined:
    """Return so many cases, of those that share nothing with the shots."""
    if sample is None:
        return joined
    shared = find_shared_pairs(place, version, joined)
    return sample_cases(joined, sample, seed, shared).joined


def _check_out(out: Path, place: WorkspacePaths | None) -> None:
    """Refuse a folder that documents must not be written to."""
    if place is not None:
        own_output(out, place)
    check_folder(out, FILES)


def _write(document: JudgeDocument, out: Path, place: WorkspacePaths | None) -> None:
    """Write all documents and tables, or none of them, and say so."""
    templates = template_folder(place) if place else shipped_templates()
    if not (templates / "judge.md.jinja").is_file():
        # A workspace whose own templates are older than this document.
        templates = shipped_templates()
    write_folder(out, render_files(document, templates), FILES)
    note(f"wrote {len(FILES)} files to {out}, first of all {out / FILES[0]}")


def _show(document: JudgeDocument) -> None:
    """Print the scores, the errors by category, and what to know."""
    pairs = sum(len(one.case_ids) for one in document.systems)
    facts = document.facts
    say(f"{counted(pairs, 'pair')}, judged by {facts.ref} with {facts.engine}")
    say()
    names = [one.system or "candidates" for one in document.systems]
    official = document.official is not None
    header = ["score", "better"]
    for each in names:
        header += [each, f"{each}, published parser"] if official else [each]
    rows = []
    for line in score_lines(document):
        cells = []
        for place, one in enumerate(line.results):
            cells.append(_estimate(one))
            if official:
                cells.append(_estimate(line.official[place]))
        rows.append((line.title, line.way, *cells))
    print_table(tuple(header), rows)
    say()
    if document.categories:
        print_table(
            ("errors, significant + others", *names),
            [
                (
                    category,
                    *(
                        " + ".join(
                            count(one.total(category, significant=weight))
                            for weight in (True, False)
                        )
                        for one in document.systems
                    ),
                )
                for category in document.categories
            ],
        )
        say()
    _say_notes(notes(document))
    first = document.sheet.results[:1]
    for one in first:
        say(f"signature of {one.metric.title}, {one.system}: {one.signature}")


def _estimate(one: MetricResult | None) -> str:
    if one is None or one.estimate.value is None:
        return NOT_ESTIMABLE
    if one.estimate.low is None:
        return share(one.estimate.value)
    return f"{share(one.estimate.value)} {interval(one.estimate)}"


def _show_judges(place: WorkspacePaths | None, *, as_json: bool) -> None:
    """Print every judge that there is: version, form of its answer, what it reads."""
    judges = list_judges(place)
    if as_json:
        print_json({"judges": judges_data(judges)})
        return
    print_table(
        ("judge", "answer", "rules", "categories", "reads"),
        [
            (
                one.ref,
                one.contract,
                "yes" if is_answered_by_rules(one) else "no",
                str(len(one.labels)) if counts_errors(one) else "-",
                ", ".join(each.ref for each in one.reads) or "-",
            )
            for one in judges
        ],
    )
    say()
    for one in judges:
        say(f"{one.ref}: {get_contract(one.contract).summary}")
    say()
    named: dict[tuple[JudgeScore, ...], list[str]] = {}
    for one in judges:
        named.setdefault(scores_of(get_contract(one.contract)), []).append(one.name)
    for scores, names in named.items():
        said = ", ".join(
            each.title + (" (lower)" if each.direction is Direction.LOWER else "")
            for each in scores
        )
        line = f"{', '.join(names)}: {said or 'no score, it compares'}"
        say_wrapped("", line, hang=2)
    say("higher is better, but where it says lower; --weights adds one more of counts")


def evaluate_judge(
    place: WorkspacePaths, run: str, actor: Actor, *, as_json: bool
) -> None:
    """Hold a judge's run against experts, record it, print it; exit by its gate."""
    with ProgressBar(f"evaluate {run}", quiet=as_json).shown():
        found = evaluate_judge_run(place, run)
        record_judge_evaluation(place, found, actor)
    if as_json:
        print_json(judge_evaluation_data(found))
    else:
        _show_evaluation(found)
    if not passes(found):
        raise typer.Exit(GATE_EXIT)


def _show_evaluation(found: JudgeEvaluation) -> None:
    spec = found.run.spec
    say(
        f"{spec.prompt} on {found.cohort} with {spec.engine}, against {found.against}, "
        f"run {found.run.id}"
    )
    say()
    if found.agreement:
        print_table(
            ("score", "better", "n", "tau-b", "Spearman", "Pearson"),
            [
                (
                    one.score.title,
                    WAYS[one.score.direction],
                    str(one.found.n),
                    f"{share(one.found.tau_b.value)} {interval(one.found.tau_b)}"
                    f"{'' if one.shown else DAGGER}",
                    share(one.found.spearman.value),
                    share(one.found.pearson.value),
                )
                for one in found.agreement
            ],
            title=(
                "agreement with the mean of the raters, 95 % intervals over "
                f"{found.meta.unit}s; turned so that more is better"
            ),
        )
        say()
    for errors in found.meta.errors:
        show_error_agreement(errors)
        say()
    if found.gate is not None:
        rows = [tuple(one) for one in judge_gate_rows(found.gate)]
        print_table(tuple(GATE_HEADER), rows)
        say()
    _say_notes(judge_evaluation_notes(found))
