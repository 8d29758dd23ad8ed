"""A try in the workbench: a draft and its parent side by side, as a panel of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loop.core.records import Span
from loop.core.safe_text import exposed
from loop.engines.base import masked
from loop.engines.rules.engine import RulesMention
from loop.review.revise.check import CheckTarget
from loop.review.revise.tries import NotedTry
from loop.review.revise.tryout import (
    PairsTryout,
    TriedLabel,
    TriedSide,
    Tryout,
    count_answers,
)
from loop.run.aside import Heard
from loop.ui.html import show

MOST_PAIRS = 50
"""Pairs that are listed; the command line lists all."""

MOST_TRIES = 20
"""Earlier tries that are listed, the last ones."""

_LONGEST = 20_000
"""Characters of the case that are shown."""


DRAWS = 5
"""How often both are asked where a press asks for more than one draw."""


class TryTurn(NamedTuple):
    """The button that asks for a try, and asks again where something is shown."""

    id: str
    ask: str = "Try it on the cases of its verdicts"
    key: str = "t"
    form: bool = False
    """Whether a form is tried, on the case that is open, and not a draft."""


class Found(NamedTuple):
    """What a try has shown; nothing before one."""

    pairs: PairsTryout | None = None
    """The pairs that the draft is made for; None where only a case is tried."""

    case: Tryout | None = None
    """One case, or pasted words, answered by both."""

    label: str = ""
    """The label to show of that case, besides those that differ."""

    act: str = "open"
    """The event that asks for the same again."""


NOTHING = Found()


class ShownAnswer(NamedTuple):
    """What one of the two says of a label, as it is shown."""

    ref: str
    answer: str
    quotes: tuple[str, ...]
    mentions: tuple[RulesMention, ...]
    problem: str
    """Why an answer could not be read, or there is none."""


class ShownLabel(NamedTuple):
    """A label with both answers about it."""

    tried: TriedLabel
    answers: tuple[ShownAnswer, ...]


class ShownPair(NamedTuple):
    """A pair with both answers, and how often each was right."""

    pair: CheckTarget
    often: str


class ShownHeard(NamedTuple):
    """What a server has written so far about one version."""

    ref: str
    place: str
    """Which draw and which call, where there are several."""

    text: str


def render_tryout(
    found: Found = NOTHING,
    *,
    turn: TryTurn,
    said: str = "",
    asking: str = "",
    tries: Sequence[NotedTry] = (),
    now: str = "",
) -> str:
    """Return a try as HTML, or the button that asks for one.

    Parameters
    ----------
    turn
        The button; the events are ``open``, ``case``, ``one`` (a case without the
        pairs), ``text``, ``stop`` and ``close``. ``back``, with the form, takes a draft
        back to an earlier wording.
    said
        Why there is nothing to show, or nothing more.
    asking
        The engine that is being asked; empty for none.
    tries
        What was tried of the draft, the last one last; empty to say nothing of it.
    now
        Digest of the draft's wording as it stands.
    """
    pairs, case = found.pairs, found.case
    labels = case.labels if case else ()
    told = [one for one in labels if one.telling or one.label == found.label]
    told.sort(key=lambda one: one.label != found.label)
    ordered = [*pairs.failing, *pairs.broken, *pairs.targets] if pairs else ()
    return show(
        "tryout.html.jinja",
        pairs=pairs,
        ordered=[_with_counts(pairs, one) for one in dict.fromkeys(ordered) if pairs],
        most=MOST_PAIRS,
        case=case,
        turn=turn,
        act=found.act,
        label=found.label,
        again=DRAWS,
        labels=[_shown(case, one) for one in told if case],
        text=_whole(case) if case else "",
        quote=lambda span: _quote(case, span) if case else "",
        said=said,
        asking=masked(asking),
        tries=tries[: -MOST_TRIES - 1 : -1],
        wordings=len({one.digest for one in tries}),
        cases=len({case for one in tries for case in one.cases}),
        engine=masked(asked.engine) if (asked := case or pairs) else "",
        now=now,
    )


def _whole(found: Tryout) -> str:
    """Return the text that was read, of a pair both, as far as it is shown."""
    return exposed("\n\n".join(found.item.variables.values()))[:_LONGEST]


def render_heard(heard: Sequence[Heard]) -> str:
    """Return what a server has written so far, the call it writes just now last."""
    told = [
        ShownHeard(one.version, _place(one), exposed(one.text[-_LONGEST:]))
        for one in heard
    ]
    return show("heard.html.jinja", heard=told) if told else ""


def _place(heard: Heard) -> str:
    parts = [f"draw {heard.draw}"] if heard.draw else []
    parts += [f"call {heard.call} of {heard.calls}"] if heard.calls > 1 else []
    return ", ".join(parts)


def _with_counts(pairs: PairsTryout, one: CheckTarget) -> ShownPair:
    known = pairs.counts_of(one)
    if known is None:
        return ShownPair(one, "")
    return ShownPair(one, f"{known.before} to {known.after} of {known.draws}")


def _shown(found: Tryout, one: TriedLabel) -> ShownLabel:
    sides = [(found.after, one.after)]
    if found.before:
        sides.insert(0, (found.before, one.before))
    return ShownLabel(
        one,
        tuple(
            ShownAnswer(
                side.ref,
                count_answers(answers),
                tuple(dict.fromkeys(_quotes(found, side, one.label))),
                _mentions(side, one.label),
                _problems(side),
            )
            for side, answers in sides
        ),
    )


def _problems(side: TriedSide) -> str:
    told = dict.fromkeys(one.problem for one in side.outcomes if one.problem)
    return exposed("; ".join(told))


def _quotes(found: Tryout, side: TriedSide, label: str) -> list[str]:
    return [
        _quote(found, span)
        for outcome in side.outcomes
        if label in outcome.fields
        for span in outcome.fields[label].spans
    ]


def _mentions(side: TriedSide, label: str) -> tuple[RulesMention, ...]:
    known = side.rules.get(label)
    return tuple(one for one in known.mentions if one.label == label) if known else ()


def _quote(found: Tryout, span: Span) -> str:
    text = found.item.variables[span.input]
    return exposed(" ".join(text[span.start : span.end].split()))[:200]
