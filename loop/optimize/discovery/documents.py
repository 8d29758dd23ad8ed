"""What `discover` found, as a page, as a table, as data and as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loop import __version__
from loop.documents.tables import format_rows
from loop.documents.templates import render_template, shipped_templates
from loop.optimize.discovery.discover import Discovery, FindingCluster

EXAMPLES: Final = 5
"""Ids named of a cluster."""

FOUND: Final = 3
"""Labels named that the prompt finds in the cases of a cluster."""

HOW: Final = (
    "Phrases are taken out of the reports without labels, guides or a model, and read "
    "as rules reads the terms of a guide: what a report denies or leaves open is "
    "counted separately. Of the reports nothing else is shown, and no phrase of few "
    "patients, no digits and no dates. Words that look like names are left out; read "
    "the draft before you pass it on."
)


def discovery_notes(found: Discovery) -> list[str]:
    """Return what a reader must know of the numbers, one sentence or two each."""
    fewest = f"at least {found.min_reports} {found.unit}s"
    holding = f"cases of {fewest}" if found.unit == "patient" else fewest
    notes = [
        f"A phrase is shown when {holding} hold it and assert it: {found.rare:,} rarer "
        "ones are not shown.",
        "A cluster is a proposal. One cluster may hold two findings, and one finding "
        "may be spread over several clusters.",
    ]
    if found.names:
        notes.append(
            f"{found.names} words that may be names are not shown: they occur next to "
            "a title, or are rarely written in lower case."
        )
    if found.beyond:
        notes.append(
            f"{found.beyond:,} phrases were left out: only the most frequent are put "
            "together. Raise the least number of cases."
        )
    if found.left_out:
        notes.append(
            f"{found.left_out:,} cases in other languages than {found.language} were "
            "not read."
        )
    if found.prompt:
        notes.append(
            f"What the prompt finds is the answer of rules with {found.prompt} about "
            "the same cases. These may be other findings of the same case."
        )
    else:
        notes.append(
            "There is no prompt for the labels: they are known by their names and "
            "aliases only."
        )
    return notes


def render_discovery_html(found: Discovery, *, templates: Path | None = None) -> str:
    """Return the clusters as one self-contained page: no network, no script.

    It holds phrases, counts and ids of cases, and no other text of theirs.

    Parameters
    ----------
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        The template is missing or wrong.
    """
    named = [one for one in found.clusters if one.covered]
    names = {one.id: one.name for one in found.clusters}
    variables = {
        "found": found,
        "sections": [
            (
                "What no label names",
                "No phrase makes a label present: the taxonomy may lack these, or mean "
                "to leave them out.",
                [_row(found, one, names) for one in found.lacking],
            ),
            (
                "What labels name",
                "At least one phrase of the cluster makes the label named present.",
                [_row(found, one, names) for one in named],
            ),
        ],
        "how": HOW,
        "notes": discovery_notes(found),
        "prompt": found.prompt or "the names of the labels",
        "version": __version__,
    }
    folder = templates or shipped_templates()
    return render_template(folder, "discovery.html.jinja", variables)


def _row(
    found: Discovery, cluster: FindingCluster, names: Mapping[str, str]
) -> dict[str, object]:
    label = {one.id: one.name for one in found.taxonomy.labels}
    return {
        "cluster": cluster,
        "others": [one.text for one in cluster.phrases if one.text != cluster.name],
        "places": cluster.places,
        "covered": [label.get(one, one) for one in cluster.covered],
        "unsettled": [label.get(one, one) for one in cluster.unsettled],
        "found": [(label.get(one, one), n) for one, n in cluster.found[:FOUND]],
        "near": names.get(cluster.near, ""),
        "examples": cluster.asserted[:EXAMPLES],
    }


def render_discovery_csv(found: Discovery) -> str:
    """Return one row per phrase, safe to open in a spreadsheet."""
    rows = [
        {
            "cluster": cluster.id,
            "cluster_name": cluster.name,
            "cluster_asserted": len(cluster.asserted),
            "cluster_hedged": cluster.hedged,
            "cluster_denied": cluster.denied,
            "no_label_found": cluster.unlabelled,
            "phrase": phrase.text,
            "asserted": phrase.asserted,
            "hedged": phrase.hedged,
            "denied": phrase.denied,
            "labels": "; ".join(phrase.labels),
            "labels_left_uncertain": "; ".join(phrase.unsettled),
        }
        for cluster in found.clusters
        for phrase in cluster.phrases
    ]
    return format_rows(rows)


def discovery_data(found: Discovery) -> dict[str, Any]:
    """Return the clusters as the object of ``--json``."""
    return {
        "cohort": found.cohort,
        "cohort_digest": found.cohort_digest,
        "language": found.language,
        "cases": found.cases,
        "left_out": found.left_out,
        "unit": found.unit,
        "min_reports": found.min_reports,
        "longest": found.longest,
        "cut": found.cut,
        "prompt": found.prompt,
        "prompt_digest": found.prompt_digest,
        "words_digest": found.words_digest,
        "cues": dict(found.cues),
        "digest": found.digest,
        "rare": found.rare,
        "names": found.names,
        "beyond": found.beyond,
        "clusters": [cluster_data(one) for one in found.clusters],
        "notes": discovery_notes(found),
    }


def cluster_data(cluster: FindingCluster) -> dict[str, Any]:
    """Return one cluster as plain data."""
    return {
        "id": cluster.id,
        "name": cluster.name,
        "asserted": len(cluster.asserted),
        "hedged": cluster.hedged,
        "denied": cluster.denied,
        "places": dict(cluster.places),
        "near": cluster.near,
        "covered_by": list(cluster.covered),
        "left_uncertain": list(cluster.unsettled),
        "found": dict(cluster.found),
        "no_label_found": cluster.unlabelled,
        "examples": list(cluster.asserted[:EXAMPLES]),
        "phrases": [
            {
                "text": one.text,
                "asserted": one.asserted,
                "hedged": one.hedged,
                "denied": one.denied,
                "labels": list(one.labels),
                "left_uncertain": list(one.unsettled),
            }
            for one in cluster.phrases
        ],
    }


TABLE: Final = ("cluster", "asserted", "hedged", "denied", "no label", "most found")


def cluster_rows(clusters: Sequence[FindingCluster]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of clusters under `TABLE`."""
    for one in clusters:
        most = ", ".join(f"{label} {n}" for label, n in one.found[:1])
        yield (
            one.name,
            str(len(one.asserted)),
            str(one.hedged),
            str(one.denied),
            str(one.unlabelled),
            most or "-",
        )
