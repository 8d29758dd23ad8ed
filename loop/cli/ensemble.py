"""The verb ``ensemble``: several judges and metrics as one score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    note,
    open_workspace,
    own_output,
    print_json,
    print_table,
    say,
    say_wrapped,
)
from loop.core.errors import DataError
from loop.documents.numbers import NOT_ESTIMABLE, count, share, signed
from loop.judge.ensemble import EnsembleMethod
from loop.judge.ensemble_text import (
    FOLD_HEADER,
    MEMBER_HEADER,
    ensemble_data,
    ensemble_notes,
    ensemble_title,
    fold_rows,
    member_rows,
    verdict,
)
from loop.judge.ensemble_versions import (
    EnsembleVersion,
    list_ensembles,
    read_ensemble,
    refit,
)
from loop.labels.taxonomy import read_taxonomy
from loop.release.ensemble_scoring import (
    EnsembleOptions,
    ensemble_scores_data,
    fit_cohort_ensemble,
    score_joined,
    write_scores,
)
from loop.release.graders import GraderOptions
from loop.run.asking import EngineOptions
from loop.score.joining import join_pairs
from loop.score.reading.options import ReadingOptions


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    group = typer.Typer(no_args_is_help=True, help=_HELP, rich_markup_mode=None)
    group.command("fit")(fit)
    group.command("list")(list_all)
    group.command("show")(show)
    group.command("score")(score)
    app.add_typer(group, name="ensemble")


_HELP = "Make one score of several judges and metrics."


def fit(
    cohort: Annotated[
        str, typer.Option("--cohort", help="Cohort of pairs that experts rated.")
    ],
    members: Annotated[
        str,
        typer.Option(
            "--members",
            metavar="A,B",
            help="Metrics and judges; green.errors is one score, green.all are all, "
            "green=ENGINE is asked of another engine.",
        ),
    ],
    name: Annotated[
        str, typer.Option("--name", "-n", help="Name of the ensemble.")
    ] = "ensemble",
    method: Annotated[
        EnsembleMethod,
        typer.Option("--method", help="How members become one number."),
    ] = EnsembleMethod.REGRESSION,
    out_of_fold: Annotated[
        bool,
        typer.Option(
            "--out-of-fold", help="Measure it on pairs that it was not fitted on."
        ),
    ] = False,
    folds: Annotated[
        int, typer.Option("--folds", "-k", min=2, help="Folds of patients or cases.")
    ] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Bootstrap resamples.")
    ] = 2_000,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            "-e",
            help="Engine of the judges: rules, openai:MODEL[@URL], vllm:MODEL[@URL].",
        ),
    ] = "rules",
    extractor: Annotated[
        str | None,
        typer.Option(
            "--extractor",
            help="Version that reads labels, for metrics of labels.",
            show_default="the newest release, else production",
        ),
    ] = None,
    allow_unconstrained: UnconstrainedOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit an ensemble on a rated cohort, keep it and record it.

    The mean of the members, and a regression on the mean rating. Pairs of one patient,
    or else of one reference, are in one fold. Pairs of which a member says nothing are
    left out, and counted.
    """
    place = open_workspace(workspace)
    asking = EngineOptions(tell=note, allow_unconstrained=allow_unconstrained)
    options = EnsembleOptions(
        name=name,
        method=method,
        out_of_fold=out_of_fold,
        folds=folds,
        seed=seed,
        resamples=resamples,
        graders=GraderOptions(engine=engine, asking=asking, labels_by=extractor),
    )
    progress = ProgressBar("ensemble", quiet=as_json)
    with progress.shown():
        version = fit_cohort_ensemble(
            place,
            cohort,
            [one.strip() for one in members.split(",") if one.strip()],
            acting(actor, role),
            options,
            watch=progress.part("pairs"),
        )
    if as_json:
        print_json(ensemble_data(version))
        return
    _show(version)
    if version.made:
        note(f"kept as {version.ref}, digest {version.digest[:12]}, in the ledger")
    else:
        note(f"the same as {version.ref}, which is kept: nothing is recorded anew")


def _show(version: EnsembleVersion) -> None:
    told = version.ensemble
    say(ensemble_title(version))
    say()
    print_table(MEMBER_HEADER, member_rows(told))
    rows = fold_rows(told)
    if rows:
        say()
        print_table(FOLD_HEADER, rows)
    say()
    say_wrapped("", verdict(told))
    say()
    for text in ensemble_notes(told):
        say_wrapped("note: ", text)


def list_all(
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the newest version of each ensemble."""
    place = open_workspace(workspace)
    found = list_ensembles(place)
    if as_json:
        print_json(
            {
                "ensembles": [
                    {
                        "ensemble": one.ref,
                        "digest": one.digest,
                        "method": str(one.ensemble.method),
                        "members": list(one.ensemble.names),
                        "cohort": one.ensemble.fitted_on.cohort,
                        "pairs": one.ensemble.fitted_on.pairs,
                    }
                    for one in found
                ]
            }
        )
        return
    if not found:
        say("no ensemble yet; `ranloop ensemble fit` makes one")
        return
    print_table(
        ("ensemble", "method", "members", "cohort", "pairs", "tau-b out of fold"),
        [
            (
                one.ref,
                str(one.ensemble.method),
                ", ".join(one.ensemble.names),
                one.ensemble.fitted_on.cohort,
                count(one.ensemble.fitted_on.pairs),
                NOT_ESTIMABLE
                if one.ensemble.out_of_fold is None
                else share(
                    one.ensemble.out_of_fold.of(one.ensemble.method).tau_b.value
                ),
            )
            for one in found
        ],
    )


_REF = typer.Argument(metavar="NAME", help="Ensemble, or a version: ensemble@v1.")


def show(
    name: Annotated[str, _REF],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an ensemble as it was fitted, and whether its rows still give it.

    With --json everything that is needed to fit it again: values of the members and
    points of every pair, without ids and texts.
    """
    place = open_workspace(workspace)
    version = read_ensemble(place, name)
    same = refit(version)
    if as_json:
        print_json({**ensemble_data(version), "refitted_the_same": same})
    else:
        _show(version)
        on = version.ensemble.fitted_on
        say_wrapped(
            "note: ",
            f"Fitted on {on.cohort} ({on.cohort_digest[:12]}) and {on.ratings} "
            f"({on.ratings_digest[:12]}); digest {version.digest[:12]}, as recorded.",
        )
        for one in version.ensemble.members:
            of = f", {one.pin.engine} {one.pin.identity[:12]}" if one.pin.engine else ""
            prompt = one.pin.judge or one.pin.labels_by
            by = f"{prompt} {one.pin.digest[:12]}{of}" if prompt else "no prompt"
            say_wrapped("note: ", f"{one.name}: {by}; {one.pin.conventions}")
        if same:
            say_wrapped(
                "note: ",
                f"Fitted again on its {len(version.rows)} rows it is the same.",
            )
    if not same:
        raise DataError(
            f"{version.ref}: its rows give other coefficients than it has. It was "
            "made by another ranloop, or by hand. Fit it again before it is used."
        )


def score(
    name: Annotated[str, _REF],
    pairs: Annotated[
        Path,
        typer.Option(
            "--pairs",
            help="File with columns id, reference, candidate[, system, patient].",
        ),
    ],
    language: Annotated[
        str, typer.Option("--language", help="Of all cases, for example en.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV file for scores and members."),
    ] = None,
    allow_unconstrained: UnconstrainedOption = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score pairs with an ensemble, other ones than it was fitted on.

    Each member is asked as it was when the ensemble was fitted, and refused if it is
    another one by now. A pair of which a member says nothing has no score.
    """
    place = open_workspace(workspace)
    if out is not None:
        own_output(out, place)
    asking = EngineOptions(tell=note, allow_unconstrained=allow_unconstrained)
    progress = ProgressBar("ensemble", quiet=as_json)
    with progress.shown():
        joined = join_pairs(
            pairs,
            read_taxonomy(place.labels),
            options=ReadingOptions(language=language),
        )
        found = score_joined(
            place, name, joined, asking=asking, watch=progress.part("pairs")
        )
    if out is not None:
        write_scores(found, out)
        note(f"wrote {out}")
    if as_json:
        print_json(ensemble_scores_data(found))
        return
    version = found.scores.version
    say(f"{ensemble_title(version)}; scores in {version.ensemble.unit}")
    say()
    print_table(
        ("system", "pairs", "scored", "mean", "least", "most"),
        [
            (
                one.system,
                count(one.pairs),
                count(one.scored),
                *(
                    signed(value) if version.ensemble.method == "mean" else share(value)
                    for value in (one.mean, one.least, one.most)
                ),
            )
            for one in found.systems
        ],
    )
    say()
    missing = {one: n for one, n in found.scores.missing.items() if n}
    if missing:
        told = ", ".join(f"{one} {n}" for one, n in missing.items())
        say_wrapped(
            "note: ",
            f"Pairs without a readable answer have no score, by member: {told}.",
        )
    for text in found.scores.not_checked:
        say_wrapped("note: ", f"Overlap with the fitted pairs, not compared: {text}.")
    say(f"signature: {version.signature}")
