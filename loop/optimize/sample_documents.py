"""A drawn sample as JSON, as CSV and as a page; ids and numbers, never case text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loop import __version__
from loop.documents.tables import format_rows
from loop.documents.templates import render_template, shipped_templates
from loop.optimize.sample import EVEN, CaseSample
from loop.optimize.unread import PARTS
from loop.stats.weighted import effective_size


def sample_data(found: CaseSample) -> dict[str, Any]:
    """Return a sample for ``--json``: what it was drawn by, and every drawn case."""
    weighed = found.weighed
    return {
        "cohort": weighed.cohort.name,
        "cohort_digest": weighed.cohort.digest,
        "population": len(weighed.cohort.cases),
        "size": weighed.size,
        "seed": found.seed,
        "even": EVEN,
        "run": weighed.run,
        "prompt": weighed.prompt,
        "engine": weighed.engine,
        "between": list(weighed.between),
        "fitted_on": weighed.fitted_on,
        "uncertain_answers": weighed.policy.value,
        "dev_cases": weighed.dev_cases,
        "dev_failing": weighed.dev_failing,
        "lift": weighed.lift,
        "least_chance": float(weighed.chances.min()),
        "most_chance": float(weighed.chances.max()),
        "effective": sample_effective(found),
        "parts": [{**one._asdict(), "means": PARTS[one.name]} for one in weighed.parts],
        "drawn": _rows(found),
    }


def _rows(found: CaseSample) -> list[Mapping[str, object]]:
    """Return one row per drawn case."""
    return [
        {
            "case_id": one.case_id,
            "chance": one.chance,
            "weight": one.weight,
            "fails": one.fails,
            **one.parts,
        }
        for one in found.drawn
    ]


def sample_effective(found: CaseSample) -> float:
    """Return how many cases drawn at random say as much as the drawn ones (Kish)."""
    drawn = {one.case_id for one in found.drawn}
    kept = [case_id in drawn for case_id in found.weighed.cohort.case_ids]
    return effective_size(found.weighed.chances[kept])


def render_sample_csv(found: CaseSample) -> str:
    """Return one row per drawn case, safe to open in a spreadsheet."""
    return format_rows(_rows(found))


def render_sample_list(found: CaseSample) -> str:
    """Return the drawn case ids, one a line."""
    return "".join(f"{one.case_id}\n" for one in found.drawn)


def render_sample_html(found: CaseSample, *, purpose: str) -> str:
    """Return the sample as one HTML page, with what each part was worth.

    Parameters
    ----------
    purpose
        ``"reading"`` or ``"review"``.
    """
    variables = {
        "weighed": found.weighed,
        "found": found,
        "purpose": purpose,
        "words": PARTS,
        "even": EVEN,
        "effective": sample_effective(found),
        "version": __version__,
    }
    return render_template(shipped_templates(), "sample.html.jinja", variables)
