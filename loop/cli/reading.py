"""The verb ``reading``: blinded reading, its publication as votes, adjudication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from loop.cli.cohort_report import after_votes, say_votes, votes_data
from loop.cli.console import (
    ActorOption,
    JsonOption,
    RoleOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.labels.taxonomy import NO_FINDING
from loop.review.guideline import VALUES, Guideline, build_guideline
from loop.review.reading.adjudication import Adjudicated
from loop.review.reading.adjudication import adjudicate as decide
from loop.review.reading.answer_files import (
    read_answer_file,
    read_case_list,
    read_decisions,
)
from loop.review.reading.answers import (
    ReadingSheet,
    answer_many,
    complete_case,
    defer_case,
    name_contradiction,
    open_sheet,
    read_answers,
    read_comments,
)
from loop.review.reading.assignment import (
    Assignment,
    PlanRequest,
    ReadingPlan,
    assign_cases,
    assign_sample,
    clear_plans,
    count_shared,
    read_assignment,
    read_order,
    read_plans,
)
from loop.review.reading.disputes import Dispute, Disputes, read_disputes
from loop.review.reading.publication import (
    Publication,
    Published,
    preview_publication,
    publish_readings,
)
from loop.review.reading.reader_progress import (
    ReadingProgress,
    measure_progress,
    next_case,
)
from loop.run.store import open_store

CohortArgument = Annotated[str, typer.Argument(help="Cohort that is read.")]

ReaderOption = Annotated[str, typer.Option("--reader", help="Name of the reader.")]


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    verbs = typer.Typer(
        help="Read cases blind, publish the votes, settle disputes.\n\n"
        "Holdouts may be read too: only texts are shown, and the guideline. Readers "
        "label No Finding where labels/protocol.yaml says `no_finding: read`.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    verbs.command("assign")(assign)
    verbs.command("progress")(progress)
    verbs.command("next")(next_)
    verbs.command("answer")(answer)
    verbs.command("defer")(defer)
    verbs.command("comments")(comments)
    verbs.command("publish")(publish)
    verbs.command("disputes")(disputes)
    verbs.command("adjudicate")(adjudicate)
    app.add_typer(verbs, name="reading")


def assign(
    cohort: CohortArgument,
    reader: Annotated[
        list[str], typer.Option("--reader", help="Name of a reader; may be repeated.")
    ],
    cases: Annotated[
        int | None,
        typer.Option("--cases", min=1, help="Cases per reader; default: all."),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap",
            min=0,
            help="How many of them all readers share; default: all.",
        ),
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            "--order", help="random (each reader's own) or listed (as the cohort)."
        ),
    ] = "random",
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the draw.")] = 1,
    cases_file: Annotated[
        Path | None,
        typer.Option("--cases-file", help="Draw from these case ids, one a line."),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample", help="Draw from the value sample of `ranloop sample`."
        ),
    ] = False,
    every_case: Annotated[
        bool,
        typer.Option("--every-case", help="Withdraw the assignment: all cases again."),
    ] = False,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    as_json: JsonOption = False,
) -> None:
    """Say which cases readers read, how many of them are shared, and in which order.

    An assignment takes the place of an earlier one; no answer is ever lost by it.
    """
    place, assignment = _open(workspace, cohort)
    who = acting(actor, role)
    wanted = PlanRequest(
        readers=tuple(reader),
        cases=cases,
        overlap=overlap,
        order=read_order(order),
        seed=seed,
        among=read_case_list(cases_file) if cases_file else (),
    )
    if sample:
        wanted = assign_sample(place, assignment, wanted)
    with open_store(place) as store:
        if every_case:
            clear_plans(store, assignment, reader, who)
        else:
            assign_cases(store, assignment, wanted, who)
        plans = read_plans(store, assignment)
    if as_json:
        print_json({"cohort": cohort, "plans": plans_data(plans)})
    else:
        say_plans(cohort, plans)


def progress(
    cohort: CohortArgument,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how far every reader is, and who was not blind."""
    place, assignment = _open(workspace, cohort)
    with open_store(place) as store:
        found = measure_progress(store, assignment)
    if as_json:
        print_json(progress_data(found))
    else:
        say_progress(found)


def next_(
    cohort: CohortArgument,
    reader: ReaderOption,
    case: Annotated[
        str | None, typer.Option("--case", help="This case instead of the next.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the text of the reader's next case, and the reader's own answers.

    The guideline they are given by is named with its digest; `--json` has all of it.
    """
    place, assignment = _open(workspace, cohort)
    with open_store(place) as store:
        wanted = case or next_case(store, assignment, reader)
        sheet = open_sheet(place, store, assignment, reader, wanted) if wanted else None
    if as_json:
        guideline = build_guideline(
            assignment.taxonomy, no_finding_read=assignment.no_finding_read
        )
        print_json(
            {
                "case": sheet_data(sheet) if sheet else None,
                "contradiction": name_contradiction(
                    assignment, sheet.answers if sheet else {}
                ),
                "guideline": guideline_data(guideline, assignment),
            }
        )
    elif sheet is None:
        say(f"every case of {cohort} is complete")
        say(f"next: ranloop reading publish {cohort}")
    else:
        say_sheet(sheet, assignment)


def answer(
    cohort: CohortArgument,
    file: Annotated[
        Path,
        typer.Argument(
            help="case_id,label,value; an empty value takes it back. A column "
            "guideline may hold the digest of the guideline that was used."
        ),
    ],
    reader: ReaderOption,
    rest_absent: Annotated[
        bool,
        typer.Option(
            "--rest-absent",
            help="Every other label of the cases in FILE is absent: they are complete. "
            "Not No Finding, where readers label it.",
        ),
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Save answers of one reader; the last one on a case and label counts.

    Where readers label No Finding (`no_finding: read` in labels/protocol.yaml), cases
    in which another answer contradicts it are named.
    """
    place, assignment = _open(workspace, cohort)
    answers = read_answer_file(file, assignment, reader)
    with open_store(place) as store:
        saved = answer_many(store, assignment, reader, answers)
        filled = sum(
            complete_case(store, assignment, reader, case_id)
            for case_id in (answers if rest_absent else ())
        )
        given = read_answers(store, assignment, reader)
    against = {
        case_id: name_contradiction(assignment, given.get(case_id, {}))
        for case_id in answers
    }
    against = {case_id: said for case_id, said in against.items() if said}
    unsaid = sum(
        assignment.no_finding_read and NO_FINDING not in given.get(case_id, {})
        for case_id in answers
    )
    if as_json:
        print_json(
            {
                "cases": len(answers),
                "saved": saved,
                "filled": filled,
                "guideline": assignment.guideline,
                **(
                    {"contradictions": against, "no_finding_open": unsaid}
                    if assignment.no_finding_read
                    else {}
                ),
            }
        )
        return
    say(
        f"{counted(saved, 'answer')} of {reader} on {counted(len(answers), 'case')} of "
        f"{cohort} saved"
    )
    if rest_absent:
        say(f"{counted(filled, 'other label')} of these cases marked absent")
    if unsaid:
        say(f"No Finding is open in {unsaid} of these cases: readers label it here")
    for case_id, said in against.items():
        say(f"{case_id}: {said}")


def defer(
    cohort: CohortArgument,
    case: Annotated[str, typer.Argument(help="Case to skip for now.")],
    reader: ReaderOption,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Skip a case: it comes back after all others."""
    place, assignment = _open(workspace, cohort)
    with open_store(place) as store:
        defer_case(store, assignment, reader, case)
    if as_json:
        print_json({"case": case, "deferred": True})
    else:
        say(f"{case} comes after all other cases of {reader}")


def comments(
    cohort: CohortArgument,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the readers' comments; those on a holdout stay sealed."""
    place, assignment = _open(workspace, cohort)
    with open_store(place) as store:
        found = read_comments(store, assignment)
    if as_json:
        print_json({"cohort": cohort, "comments": [one._asdict() for one in found]})
        return
    for one in found:
        say(f"{one.case_id}  {one.reader}: {one.comment}")
    if not found:
        say(f"no reader has commented on a case of {cohort}")


def publish(
    cohort: CohortArgument,
    reader: Annotated[
        list[str] | None,
        typer.Option("--reader", help="Only this reader; may be repeated."),
    ] = None,
    need: Annotated[
        int | None,
        typer.Option(
            "--need",
            min=1,
            help="Fewest equal votes, beyond over half of those who read the case; "
            "default: as recorded, else 1.",
        ),
    ] = None,
    pseudonyms: Annotated[
        bool,
        typer.Option("--pseudonyms", help="Votes and ledger name no reader."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Allow readers to lose votes that they no longer give."
        ),
    ] = False,
    why: Annotated[
        str, typer.Option("--why", help="Reason, for the ledger; needed to publish.")
    ] = "",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show which marks would change; publish none."),
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="DIGEST",
            help="Publish only what the dry run with this digest showed.",
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    as_json: JsonOption = False,
) -> None:
    """Make votes of all complete cases, and the next reference version of them.

    A mark is what over half of the readers who read that case say, so that nothing
    changes where nobody new has read.
    """
    place, assignment = _open(workspace, cohort)
    wanted = Publication(
        readers=tuple(reader or ()),
        need=need,
        pseudonymous=pseudonyms,
        replace=replace,
        reason=why,
        expected=expect,
    )
    who, do = acting(actor, role), preview_publication if dry_run else publish_readings
    with open_store(place) as store:
        published = do(place, store, assignment, wanted, who)
    if as_json:
        data = published_data(published)
        print_json({**data, **({"dry_run": True} if dry_run else {})})
    else:
        say_published(published, dry_run=dry_run)


def disputes(
    cohort: CohortArgument,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous", help="Show readers as letters, shuffled for every case."
        ),
    ] = False,
    undecided: Annotated[
        bool, typer.Option("--open", help="Only undecided disputes.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the pairs of case and label that the readers did not agree on."""
    place, assignment = _open(workspace, cohort)
    found = read_disputes(place, assignment, anonymous=anonymous)
    if undecided:
        found = replace(found, rows=tuple(r for r in found.rows if not r.decided))
    if as_json:
        print_json(disputes_data(found))
    else:
        say_disputes(found)


def adjudicate(
    cohort: CohortArgument,
    file: Annotated[
        Path,
        typer.Argument(help="case_id,label,value; no_majority leaves a pair out."),
    ],
    why: Annotated[str, typer.Option("--why", help="Reason, for the ledger.")],
    workspace: WorkspaceOption = None,
    actor: ActorOption = None,
    role: RoleOption = "reviewer",
    as_json: JsonOption = False,
) -> None:
    """Put decisions over disputed votes into the next reference version."""
    place, assignment = _open(workspace, cohort)
    decisions = read_decisions(file, assignment)
    who = acting(actor, role)
    made = decide(place, assignment, decisions, actor=who, why=why)
    if as_json:
        print_json(asdict(made))
    else:
        say_adjudicated(made)


def say_progress(progress: ReadingProgress) -> None:
    """Print one line per reader, and what does not count."""
    if progress.readers:
        print_table(
            [
                "reader",
                "given",
                "of these complete",
                "shared",
                "complete",
                "begun",
                "answers",
                "blind",
                "last answer",
            ],
            [
                [
                    one.reader,
                    str(one.given),
                    str(one.given_complete),
                    "-" if one.shared is None else str(one.shared),
                    str(one.complete),
                    str(one.begun),
                    str(one.answers),
                    "yes" if one.blind else f"{counted(one.not_blind, 'answer')} not",
                    one.last or "none",
                ]
                for one in progress.readers
            ],
        )
    else:
        say(f"no case has been read of {progress.cohort} yet")
    if any(not one.blind for one in progress.readers):
        say(
            "not blind: answered after a verdict of the same person on this cohort, so "
            "having seen a model's answers"
        )
    other = sum(one.other_guideline for one in progress.readers)
    if other:
        say(
            "counted, although given under another guideline than today's "
            f"(labels/taxonomy.yaml was changed): {counted(other, 'answer')}"
        )
    if progress.earlier:
        say(
            "kept and not counted, as given to earlier texts under this name: "
            f"{counted(progress.earlier, 'answer')}"
        )


def progress_data(progress: ReadingProgress) -> dict[str, Any]:
    """Return `progress` for ``--json``."""
    return {
        **asdict(progress),
        "readers": [{**asdict(one), "blind": one.blind} for one in progress.readers],
    }


def say_plans(cohort: str, plans: Mapping[str, ReadingPlan]) -> None:
    """Print who was given how many cases."""
    if not plans:
        say(f"no cases are assigned in {cohort}: every reader reads all")
        return
    for name, plan in plans.items():
        say(
            f"{name}: {counted(len(plan.case_ids), 'case')} of {cohort}, "
            f"{count_shared(plans, name)} of them given to another reader as well"
            + ("; of a value sample, their chances kept" if plan.chances else "")
        )
    say("everybody else reads all cases; answers given before are kept and count")
    say(f"next: ranloop reading progress {cohort}")


def plans_data(plans: Mapping[str, ReadingPlan]) -> list[dict[str, Any]]:
    """Return reading plans for ``--json``, case ids in the order of reading."""
    return [asdict(plan) for plan in plans.values()]


def say_sheet(sheet: ReadingSheet, assignment: Assignment) -> None:
    """Print a case as its reader may see it, and what names the guideline."""
    say(sheet.case_id)
    say()
    say(sheet.text)
    say()
    for label, value in sheet.answers.items():
        say(f"  {label:<28}{value.value}")
    say(f"open: {', '.join(sheet.open_labels) or 'nothing, the case is complete'}")
    if against := name_contradiction(assignment, sheet.answers):
        say(against)
    version = assignment.taxonomy.version
    say(
        f"guideline: taxonomy version {version}, digest {assignment.guideline}; "
        "`ranloop guideline --out FILE` writes it"
    )


def guideline_data(guideline: Guideline, assignment: Assignment) -> dict[str, Any]:
    """Return the guideline for ``--json``, of the labels that are asked."""
    entries = dict(zip(assignment.taxonomy.ids, guideline.entries, strict=True))
    return {
        "digest": assignment.guideline,
        "sources": list(guideline.sources),
        "values": dict(VALUES),
        "reading": list(guideline.reading),
        "labels": {
            label: {
                "name": entries[label].name,
                "definition": entries[label].definition,
                **{name: list(items) for name, items in entries[label].lists},
            }
            for label in assignment.labels
        },
    }


def sheet_data(sheet: ReadingSheet) -> dict[str, Any]:
    """Return `sheet` for ``--json``."""
    return {
        "case_id": sheet.case_id,
        "text": sheet.text,
        "answers": {label: value.value for label, value in sheet.answers.items()},
        "open_labels": list(sheet.open_labels),
    }


def say_published(published: Published, *, dry_run: bool = False) -> None:
    """Print whose readings count now, or would, and what they make."""
    if dry_run:
        say("dry run: nothing was changed; this is what publishing would make")
    for one in published.readers:
        name = one.reader if one.reader == one.published_as else "one reader"
        shown = "" if name == one.reader else f" as {one.published_as}"
        blind = "" if one.blind else "; NOT BLIND"
        say(
            f"{name}{shown}: {counted(one.complete, 'complete case')} published, "
            f"{one.begun} begun and left out{blind}; "
            f"guideline {', '.join(one.guidelines)}"
        )
    votes = published.votes
    say_votes(votes)
    again = (
        f"ranloop reading publish {votes.cohort} --why REASON --expect {votes.digest}"
    )
    say(f"next: {again if dry_run else after_votes(votes)}")


def published_data(published: Published) -> dict[str, Any]:
    """Return `published` for ``--json``; with pseudonyms no name is in it."""
    return {
        "readers": [
            {
                "reader": one.published_as,
                "complete": one.complete,
                "begun": one.begun,
                "blind": one.blind,
                "guidelines": list(one.guidelines),
            }
            for one in published.readers
        ],
        "digest": published.votes.digest,
        "votes": votes_data(published.votes),
    }


def say_disputes(disputes: Disputes) -> None:
    """Print one line per dispute, those without a majority first."""
    say(
        f"{disputes.cohort}, reference v{disputes.reference}: "
        f"{counted(len(disputes.rows), 'dispute')} in "
        f"{counted(disputes.pairs, 'pair')} of {disputes.readers} readers, "
        f"{disputes.open} open"
    )
    say(f"a majority needs {disputes.rule.words}")
    if disputes.rows:
        print_table(
            ["case", "label", "present", "absent", "uncertain", "votes", "reference"],
            [_dispute_cells(row) for row in disputes.rows],
        )
        say(f"next: ranloop reading adjudicate {disputes.cohort} FILE --why REASON")


def _dispute_cells(row: Dispute) -> list[str]:
    mark = f"{row.mark.value} (panel)" if row.decided else row.mark.value
    counts = [str(number) for number in row.counts.values()]
    return [row.case_id, row.label, *counts, row.votes_say.value, mark]


def disputes_data(disputes: Disputes) -> dict[str, Any]:
    """Return `disputes` for ``--json``."""
    return {
        **asdict(disputes),
        "need": disputes.rule.need,
        "majority": disputes.rule.words,
        "open": disputes.open,
        "rows": [
            {
                **asdict(row),
                "ballots": [ballot._asdict() for ballot in row.ballots],
            }
            for row in disputes.rows
        ],
    }


def say_adjudicated(made: Adjudicated) -> None:
    """Print what became of decisions."""
    say(
        f"reference v{made.reference} of {made.cohort}: "
        f"{counted(made.decided, 'decision')}, "
        f"{counted(made.changed, 'mark')} changed, "
        f"{counted(made.open, 'dispute')} open"
    )
    if made.own:
        say(
            f"  {made.own} of them on pairs that the adjudicator had voted on: recorded"
        )


def _open(workspace: Path | None, cohort: str) -> tuple[WorkspacePaths, Assignment]:
    place = open_workspace(workspace)
    return place, read_assignment(place, cohort)
