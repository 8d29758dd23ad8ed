"""How the page Judges looks: the list, two texts side by side, and the form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from loop.core.people.users import Right
from loop.core.records import ErrorWeight, Item, Span
from loop.prompts.outputs.base import get_contract
from loop.review.pair_verdicts import JudgedAnswer
from loop.review.reading.pair_ratings import LONGEST_WORDS, read_all_ratings
from loop.review.status import KeptVerdict
from loop.ui.html import notice, show
from loop.ui.pages.base import SAME
from loop.ui.pages.judges.state import Desk, PairRow
from loop.ui.pages.review.segments import cut_text
from loop.ui.wiring import Visit

_MATCHED = "matched"
_WEIGHTS = (
    (ErrorWeight.SIGNIFICANT.value, "significant"),
    (ErrorWeight.INSIGNIFICANT.value, "insignificant"),
)
_MOST_POINTS = 11
"""Points of a scale that are offered one by one; of a longer one they are typed."""


class JudgesOutputs(NamedTuple):
    """What the components of these names show."""

    pairs: Any = SAME
    sheet: Any = SAME
    status: Any = SAME
    publication: Any = SAME
    why: Any = SAME


class PairPage(NamedTuple):
    """One pair as a visitor may see it."""

    desk: Desk
    item: Item
    answer: JudgedAnswer | None
    """None where the judge's errors must not be seen, or not yet."""

    fields: Mapping[str, str]
    """Of the form, as far as it was begun."""


class PairText(NamedTuple):
    """One of the two texts, cut where something is marked."""

    name: str
    parts: Sequence[tuple[str, str, str]]
    """Text, numbers of the errors in it, and its class."""


class FormRow(NamedTuple):
    """One row of a list of errors that the visitor adds to."""

    number: int
    category: str = ""
    weight: str = ""
    words: str = ""


def render_closed(why: str) -> JudgesOutputs:
    """Return the page where nothing can be rated or judged, and why."""
    return JudgesOutputs(
        pairs="",
        sheet=notice(why, title="There are no pairs here"),
        status="",
        publication="",
    )


def render_status(text: str) -> str:
    """Return what became of the last act, as HTML."""
    return show("judges_status.html.jinja", text=text)


def render_list(desk: Desk, rows: Sequence[PairRow], case_id: str) -> str:
    """Return the list of pairs as HTML."""
    return show(
        "judges_list.html.jinja",
        desk=desk,
        rows=rows,
        case_id=case_id,
        waiting=sum(row.waits for row in rows),
    )


def render_pair(page: PairPage) -> str:
    """Return one pair as HTML: blind with a form, or beside the judge's errors."""
    desk, answer = page.desk, page.answer
    own = desk.ratings.get(page.item.id)
    return show(
        "judges_pair.html.jinja",
        desk=desk,
        item=page.item,
        answer=answer,
        texts=_texts(page),
        context=page.item.variables.get("context", ""),
        own=own,
        fields=page.fields,
        points=_points(desk),
        scale=desk.task.scale,
        weights=_WEIGHTS,
        values=[one.value for one in ErrorWeight],
        names={one.id: one.name for one in desk.task.categories.categories},
        categories=_asked(desk, answer),
        weighs=_weighs(desk),
        marked=_form_rows(page, "marked"),
        missed=_form_rows(page, "missed"),
        verdicts=_verdicts_shown(page),
        longest=LONGEST_WORDS,
        judgeable=answer is not None and desk.judges and not answer.problem,
    )


def render_publication(visit: Visit, desk: Desk, said: str = "") -> str:
    """Return who rated how many pairs here, for whoever may publish that."""
    if not visit.user.may(Right.IMPORT):
        return ""
    found = read_all_ratings(visit.context.store, desk.task)
    counts = {name: len(found[name]) for name in sorted(found)}
    return show(
        "judges_publish.html.jinja",
        counts=counts,
        of=len(desk.task.cohort.cases),
        said=said,
        cohort=desk.task.cohort.name,
    )


def _weighs(desk: Desk) -> bool:
    """Whether the judge tells significant errors from others."""
    return desk.version is None or get_contract(desk.version.contract).weighs


def _verdicts_shown(page: PairPage) -> tuple[KeptVerdict, ...]:
    """Return the verdicts on a pair: others' only beside one's own."""
    desk, case_id = page.desk, page.item.id
    if desk.judges and not desk.own_verdicts(case_id):
        return ()
    return desk.verdicts.get(case_id, ())


def _asked(desk: Desk, answer: JudgedAnswer | None) -> tuple[tuple[str, str], ...]:
    """Return id and name of each category that may be marked.

    Beside a judge's errors, those that it is asked for; a blind rating has all.
    """
    asked = desk.task.categories.ids
    if answer is not None and desk.version is not None:
        asked = desk.version.labels
    return tuple(
        (one.id, one.name) for one in desk.task.categories.categories if one.id in asked
    )


def _points(desk: Desk) -> tuple[str, ...]:
    """Return the points of a short scale; nothing where they are typed."""
    low, high = desk.task.scale
    if high - low >= _MOST_POINTS or low != int(low) or high != int(high):
        return ()
    return tuple(map(str, range(int(low), int(high) + 1)))


def _form_rows(page: PairPage, kind: str) -> list[FormRow]:
    """Return the rows that were begun in one list of the form."""
    numbers = {
        int(name.split(".")[1])
        for name in page.fields
        if name.startswith(f"{kind}.") and name.split(".")[1].isdecimal()
    }
    return [
        FormRow(
            number,
            *(
                page.fields.get(f"{kind}.{number}.{part}", "")
                for part in ("category", "weight", "words")
            ),
        )
        for number in sorted(numbers)
    ]


def _texts(page: PairPage) -> list[PairText]:
    """Return both texts, with what the judge lists marked where it is shown."""
    found: dict[str, dict[str, list[Span]]] = {"reference": {}, "candidate": {}}
    if page.answer is not None:
        for number, one in enumerate(page.answer.errors, 1):
            for span in one.spans:
                found[span.input].setdefault(str(number), []).append(span)
        for entry in page.answer.matched:
            for span in entry.spans:
                found[span.input].setdefault(_MATCHED, []).append(span)
    return [
        PairText(name, [_part(*one[:2]) for one in _cut(page, name, marks)])
        for name, marks in found.items()
    ]


def _cut(
    page: PairPage, name: str, marks: Mapping[str, Sequence[Span]]
) -> list[tuple[str, tuple[str, ...]]]:
    text = page.item.variables.get(name, "")
    return [(one.text, one.labels) for one in cut_text(text, marks)]


def _part(text: str, labels: Sequence[str]) -> tuple[str, str, str]:
    numbers = [one for one in labels if one != _MATCHED]
    kind = "own" if numbers else "other" if labels else ""
    return text, ", ".join(numbers), kind
