"""What visitors do on the page Discover."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import gradio as gr

from loop.core.errors import ConflictError, DataError
from loop.core.nouns import counted
from loop.core.records import PromptTask
from loop.optimize.discovery.discover import discover_findings
from loop.optimize.discovery.kept_draft import (
    ClusterEdit,
    drop_cluster,
    edit_kept_draft,
    keep_discovery,
    leave_cluster,
    map_cluster,
    merge_cluster,
    rename_cluster,
    split_cluster,
    take_kept_draft,
)
from loop.prompts.catalog import latest_version, list_prompts
from loop.prompts.outputs.base import get_contract
from loop.ui.background import Job
from loop.ui.html import notice
from loop.ui.pages.base import SAME
from loop.ui.pages.discover.state import (
    FORMS,
    NO_FORM,
    ClusterFilter,
    ClusterForm,
    discover_key,
    drop_form,
    drop_why,
    keep_form,
    keep_listed,
    keep_why,
    open_cohort,
    read_state,
)
from loop.ui.pages.discover.view import (
    DiscoverOutputs,
    show_clusters,
    show_head,
    show_page,
    show_state,
)
from loop.ui.wiring import Visit


def refresh(visit: Visit, prompt: str | None, cohort: str | None) -> DiscoverOutputs:
    """Return the page with the clusters of a cohort, as far as they are decided."""
    return show_page(visit, cohort)


def start(visit: Visit, prompt: str | None, cohort: str | None) -> DiscoverOutputs:
    """Read the reports of a cohort in the background; what was decided stays.

    Raises
    ------
    ConflictError
        It goes on already; says who started it.
    DataError
        Labels may not be designed on the cohort.
    """
    if visit.data.get("act") != "discover":
        return DiscoverOutputs()
    name = _require_cohort(cohort)
    open_cohort(visit, name)
    context, compared = visit.context, _compared_with(visit, prompt)

    def work(job: Job) -> str:
        job.step("reading the reports")
        found = discover_findings(context.workspace, name, prompt=compared)
        carried = keep_discovery(context.workspace, found)
        said = f"{len(found.clusters)} clusters in {counted(found.cases, 'case')}."
        if carried.kept:
            said += f" Decided as they were: {carried.kept}."
        if carried.lost:
            said += f" Decided, but gone (see the earlier draft): {carried.lost}."
        if carried.reset:
            said += (
                " Reset to undecided, since their label no longer exists: "
                f"{carried.reset}."
            )
        return said

    context.jobs.start(discover_key(name), visit.actor.name, work)
    state = read_state(visit, name)
    return DiscoverOutputs(timer=gr.Timer(active=True), head=show_head(state))


def _compared_with(visit: Visit, prompt: str | None) -> str:
    """Return the newest version of a prompt that is chosen, if it asks for labels."""
    workspace = visit.context.workspace
    if not prompt or prompt not in list_prompts(workspace):
        return ""
    version = latest_version(workspace, prompt)
    asks = get_contract(version.contract).task is PromptTask.EXTRACT
    return version.ref if asks else ""


def poll(visit: Visit, prompt: str | None, cohort: str | None) -> DiscoverOutputs:
    """Show how far the reading of a cohort is, or what it came to."""
    key = discover_key(cohort or "")
    progress = visit.context.jobs.progress_of(key)
    if progress is not None and not progress.finished:
        return DiscoverOutputs(head=show_head(read_state(visit, cohort or "")))
    if progress is None or progress.error:
        return show_page(visit, cohort)
    visit.context.jobs.forget(key)
    said = notice(str(progress.result), kind="good", title="Discovered")
    return show_page(visit, cohort, said)


def look(visit: Visit, prompt: str | None, cohort: str | None) -> DiscoverOutputs:
    """List other clusters: those of a filter, or the next ones."""
    name, data = _require_cohort(cohort), visit.data
    state = read_state(visit, name)
    listed, begin = state.listed, 0
    if data.get("act") == "show":
        listed = next((o for o in ClusterFilter if o == data.get("show")), listed)
    elif data.get("act") == "page":
        said = str(data.get("start", ""))
        begin = int(said) if said.isascii() and said.isdecimal() else 0
    else:
        return DiscoverOutputs()
    keep_listed(visit, name, listed.value, min(begin, 10**6))
    return DiscoverOutputs(clusters=show_clusters(read_state(visit, name)))


def begin(visit: Visit, prompt: str | None, cohort: str | None) -> None:
    """Keep a form as far as it is filled, or forget it where it was closed."""
    form = ClusterForm.of(visit.data, visit.data.get("form"))
    name = _require_cohort(cohort)
    if form.form in FORMS:
        keep_form(visit, name, form)
    else:
        drop_form(visit, name)


def decide(visit: Visit, prompt: str | None, cohort: str | None) -> DiscoverOutputs:
    """Name, map, merge, split or drop a cluster, or leave it undecided."""
    name, context = _require_cohort(cohort), visit.context
    open_cohort(visit, name)
    form = ClusterForm.of(visit.data, visit.data.get("decide"))
    edit, said = _edit(form)
    try:
        edit_kept_draft(
            *(context.workspace, name, form.cluster),
            edit,
            visit.actor,
            seen=str(visit.data.get("seen") or ""),
            now=context.now,
        )
    except ConflictError as error:
        # The page is shown again with the reason, and with what was typed.
        if form.form in FORMS:
            keep_form(visit, name, form)
        text = notice(str(error), kind="error", title="Not done")
        return show_page(visit, name, text)
    state = read_state(visit, name)
    if state.begun.cluster == form.cluster:
        drop_form(visit, name)
        state = replace(state, begun=NO_FORM)
    return show_state(state, said)._replace(said="", why=SAME)


def _edit(form: ClusterForm) -> tuple[ClusterEdit, str]:
    """Return what was decided, and how that is said."""
    key = form.cluster
    match form.form:
        case "drop":
            return drop_cluster(key), "Dropped."
        case "leave":
            return leave_cluster(key), "Undecided again."
        case "map":
            return map_cluster(key, form.text("label")), "Mapped."
        case "merge":
            return merge_cluster(key, form.text("other")), "Merged."
        case "split":
            phrases = form.fields.get("phrase", ())
            return split_cluster(key, phrases), "Split. The part stands below it."
        case "name":
            edit = rename_cluster(
                key, form.text("name"), form.text("definition"), form.text("group")
            )
            return edit, "Part of a new label."
    raise DataError("the page knows no such decision. Load it again.")


def type_why(visit: Visit, cohort: str | None, why: str) -> None:
    """Keep the reason as far as it is written."""
    keep_why(visit, _require_cohort(cohort), why)


def take(
    visit: Visit,
    prompt: str | None,
    cohort: str | None,
    opened: str | None,
    why: str | None,
) -> DiscoverOutputs:
    """Take the draft as it was shown into the labels.

    Raises
    ------
    ConflictError
        Somebody decided something since.
    DataError
        No reason is given, or the draft cannot be taken.
    """
    name, context = _require_cohort(cohort), visit.context
    open_cohort(visit, name)
    if not (why or "").strip():
        raise DataError("give a reason first: the ledger keeps it for ever.")
    change = take_kept_draft(
        *(context.workspace, name, opened or ""),
        visit.actor,
        why=str(why),
        now=context.now,
    )
    drop_why(visit, name)
    said = notice(
        f"{_listed(change.added, 'new label')}{_listed(change.mapped, 'mapped to')}"
        "The ledger has the entry. Add a guide for each new label in a draft of the "
        "prompt, and have the cases read for it.",
        kind="good",
        title="Taken into labels/taxonomy.yaml",
    )
    return show_page(visit, name, said)


def _listed(names: Iterable[str], what: str) -> str:
    found = ", ".join(names)
    return f"{what.capitalize()}: {found}. " if found else ""


def _require_cohort(cohort: str | None) -> str:
    if not cohort:
        raise DataError("no cohort is chosen. Choose one at the top.")
    return cohort
