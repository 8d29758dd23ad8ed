"""The verb ``try``: what a draft answers, beside its parent, before any check."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from loop.cli.check import show_copies
from loop.cli.console import (
    ActorOption,
    JsonOption,
    ProgressBar,
    RoleOption,
    UnconstrainedOption,
    WorkspaceOption,
    acting,
    open_workspace,
    print_json,
    print_table,
    say,
)
from loop.cli.show import print_rules, print_text, quote_span, say_wrapped
from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.ledger import Actor
from loop.core.nouns import counted
from loop.core.paths import WorkspacePaths
from loop.core.records import Exemplar, Span, Value
from loop.review.revise.check import CheckTarget
from loop.review.revise.copies import Copy
from loop.review.revise.pasted import keep_case, keep_exemplar
from loop.review.revise.phrases import (
    NOT_KNOWN,
    PhraseRequest,
    PhraseTryout,
    TriedPart,
    phrase_data,
    try_phrase,
)
from loop.review.revise.tryout import (
    PairsTryout,
    TriedLabel,
    TriedSide,
    Tryout,
    TryRequest,
    count_answers,
    pairs_data,
    try_case,
    try_pairs,
    try_text,
    tryout_data,
)
from loop.run.aside import Heard
from loop.run.asking import EngineOptions, hold_engine
from loop.run.store import open_store


class KeepAs(StrEnum):
    """What pasted words may be kept as."""

    EXEMPLAR = "exemplar"
    CASE = "case"


_MOST = 20
"""Pairs of one kind that are listed; the others are counted, and in --json."""


def register(app: typer.Typer) -> None:
    """Add the verb to `app`."""
    app.command("try")(try_)


def try_(
    prompt: Annotated[
        str, typer.Argument(help="Draft or version, e.g. extractor@draft:ID.")
    ],
    case: Annotated[str, typer.Option("--case", help="Id of a dev case.")] = "",
    text: Annotated[
        Path | None,
        typer.Option("--text", help="File with one text, kept nowhere; - for stdin."),
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="All pairs of its verdicts, and the pinned ones."),
    ] = False,
    phrase: Annotated[
        str,
        typer.Option(
            "--phrase", help="What words could become in the guide of --label."
        ),
    ] = "",
    engine: Annotated[
        str, typer.Option("--engine", "-e", help="Engine that is asked.")
    ] = "rules",
    cohort: Annotated[
        str, typer.Option("--cohort", "-c", help="Dev cohort; default: the draft's.")
    ] = "",
    label: Annotated[
        str, typer.Option("--label", "-l", help="Only this label, by id.")
    ] = "",
    language: Annotated[
        str,
        typer.Option("--language", help="Language of the text, ISO 639-1, or auto."),
    ] = "auto",
    keep: Annotated[
        KeepAs | None,
        typer.Option(
            "--keep", help="Keep --text, as an exemplar of the draft or a new case."
        ),
    ] = None,
    value: Annotated[
        Value | None,
        typer.Option("--value", help="What is right about --label in what is kept."),
    ] = None,
    evidence: Annotated[
        str, typer.Option("--evidence", help="Words of an exemplar that decide.")
    ] = "",
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            min=1,
            max=100,
            help="How often to ask both, of an engine with chance.",
            show_default="once",
        ),
    ] = None,
    allow_unconstrained: UnconstrainedOption = False,
    actor: ActorOption = None,
    role: RoleOption = "editor",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try a draft on a case, pasted words, its pairs or a phrase.

    Its parent is asked the same. Nothing of it becomes a run or decides anything; the
    text is private and printed. A case of a holdout is refused for everybody.

    With --phrase nothing is asked of a server: with another engine than rules, what the
    phrase would change is an estimate by wording.

    Pasted words are kept only with --keep: as an exemplar they become part of the
    draft; as a case they go into a private table, which `cohort import` reads.
    """
    if bool(case) + (text is not None) + pairs + bool(phrase) != 1:
        raise typer.BadParameter("name one of --case, --text, --pairs and --phrase")
    if phrase:
        _require_fit(label, draws)
    wish = _read_wish(keep, value, evidence, pasted=text is not None, label=label)
    place, who = open_workspace(workspace), acting(actor, role)
    if phrase:
        wanted = PhraseRequest(prompt, label, phrase, cohort, engine)
        with open_store(place) as store:
            _show_phrase(try_phrase(place, store, wanted, who), as_json=as_json)
        return
    request = TryRequest(prompt=prompt, cohort=cohort, label=label, draws=draws)
    asking = EngineOptions(allow_unconstrained=allow_unconstrained)
    words = "" if text is None else _read(text)
    progress = ProgressBar(f"asking {engine}", quiet=as_json)
    # Elsewhere nobody reads along, and the answer is asked for whole.
    heard = _shown_below(progress) if sys.stderr.isatty() and not as_json else None
    with open_store(place) as store, hold_engine(place, engine, asking) as held:
        if pairs:
            with progress.shown():
                judged = try_pairs(place, store, request, who, engine=held)
            _show_pairs(judged, as_json=as_json)
            return
        with progress.shown():
            if case:
                found = try_case(
                    place, store, request, case, who, engine=held, heard=heard
                )
            else:
                found = try_text(
                    place,
                    store,
                    request,
                    words,
                    engine=held,
                    language=language,
                    heard=heard,
                )
    kept = _keep(place, request, words, language, wish, who) if wish else None
    if as_json:
        print_json({**tryout_data(found), "kept": kept and kept.data})
        return
    _show(found)
    if kept:
        say()
        say_wrapped(kept.words, "")
        show_copies(kept.copies)


class _KeptWords(NamedTuple):
    """What pasted words were kept as."""

    words: str
    data: Mapping[str, object]
    copies: Sequence[Copy] = ()


def _keep(
    place: WorkspacePaths,
    request: TryRequest,
    words: str,
    language: str,
    wish: _Wish,
    who: Actor,
) -> _KeptWords:
    prompt, label = request.prompt, request.label
    if wish.keep is KeepAs.CASE:
        kept = keep_case(place, prompt, label, words, wish.value, language=language)
        added = "kept as" if kept.added else "it was there; the label was added to"
        return _KeptWords(
            f"{added} {kept.case_id} in {kept.path}. A cohort is made of that table "
            "with `ranloop cohort import`.",
            {"as": "case", **kept._asdict(), "path": str(kept.path)},
        )
    example = Exemplar(text=words, value=wish.value, evidence=wish.evidence)
    made = keep_exemplar(place, prompt, label, example, who)
    return _KeptWords(
        f"kept as an exemplar of {label} in {prompt}",
        {"as": "exemplar", "copies": [one._asdict() for one in made.copies]},
        made.copies,
    )


class _Wish(NamedTuple):
    """How pasted words are to be kept."""

    keep: KeepAs
    value: Value
    evidence: str


def _require_fit(label: str, draws: int | None) -> None:
    """Refuse options that say nothing of a phrase."""
    if not label:
        raise typer.BadParameter("name with --label whose guide the phrase is for")
    if draws is not None:
        raise typer.BadParameter("nothing is drawn for --phrase: leave out --draws")


def _read_wish(
    keep: KeepAs | None,
    value: Value | None,
    evidence: str,
    *,
    pasted: bool,
    label: str,
) -> _Wish | None:
    if keep is None:
        if value is not None or evidence:
            raise typer.BadParameter("--value and --evidence are for --keep")
        return None
    if not pasted or not label or value is None:
        raise typer.BadParameter("--keep takes --text, --label and --value")
    return _Wish(keep, value, evidence)


def _shown_below(progress: ProgressBar) -> Callable[[Heard], None]:
    """Return what shows an answer while it is written, its calls one after the other.

    It goes with the bar: what is printed in the end stands alone.
    """
    asked: tuple[str, int] = ("", 0)
    calls: dict[int, str] = {}

    def show(heard: Heard) -> None:
        nonlocal asked
        if asked != heard[:2]:
            asked = heard[:2]
            calls.clear()
        calls[heard.call] = heard.text
        progress.label = f"asking {heard.version}"
        progress.below = "\n".join(calls[call] for call in sorted(calls))

    return show


def _read(file: Path) -> str:
    if str(file) != "-":
        return read_text(file)
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError("the text on stdin is not UTF-8. Convert it first.") from error


def _show(found: Tryout) -> None:
    labels = found.labels
    what = f"case {found.item.id} of {found.cohort}" if found.cohort else "pasted words"
    beside = f", beside {found.before.ref}" if found.before else ""
    say_wrapped(f"{what}: {found.after.ref}{beside}, {found.engine}", "")
    if found.chance and len(found.after.outcomes) == 1:
        say_wrapped(
            "asked once; this engine may answer otherwise another time: see how far "
            "with --draws",
            "",
        )
    for side in (found.before, found.after):
        _say_problems(side)
    told = [one for one in labels if one.telling or len(labels) == 1]
    names = _name(found.after.ref, found.before.ref if found.before else "")
    say()
    if told:
        _print_labels(told, names)
    elif found.before:
        say("nothing differs, and nothing is known to be wrong")
    else:
        say("nothing is found in it")
    for one in told:
        _print_answers(found, one, names)
    _say_rest([one for one in labels if one not in told])
    spans = [
        span
        for one in labels
        for side in (found.before, found.after)
        for span in _spans(side, one.label)
    ]
    for name, text in found.item.variables.items():
        say()
        say(f"the {name}, evidence of both in brackets")
        own = [span for span in spans if span.input == name]
        print_text(text, own, whole=False)


def _say_problems(side: TriedSide | None) -> None:
    problems = Counter(one.problem for one in side.outcomes) if side else Counter()
    for problem, count in problems.items():
        if problem and side:
            times = f" ({count} of {len(side.outcomes)} draws)" if count > 1 else ""
            say_wrapped(f"{side.ref}: no whole answer{times}: {problem}", "")


def _name(after: str, before: str) -> tuple[str, str]:
    """Return what the two are called in a table."""
    if "@draft" in after:
        return "parent", "draft"
    return before.partition("@")[2] or "parent", after.partition("@")[2]


def _print_labels(labels: Sequence[TriedLabel], names: tuple[str, str]) -> None:
    """Print what each answers; a version without a parent alone."""
    alone = not any(one.before for one in labels)
    rows = [
        (
            one.label,
            one.expected or "not known",
            *(() if alone else (count_answers(one.before) or "none",)),
            count_answers(one.after),
            _fate(one),
        )
        for one in labels
    ]
    print_table(("label", "right is", *names[alone:], ""), rows)


def _fate(one: TriedLabel) -> str:
    """Say what the draft changes: by how many draws are right."""
    if not one.expected:
        return "differs" if one.differs else ""
    before = sum(answer == one.expected for answer in one.before)
    if one.before and one.right > before:
        return "fixed" if not one.fails else "better"
    if one.before and one.right < before:
        return "broken" if not one.right else "worse"
    return "still wrong" if one.fails else "right"


def _print_answers(found: Tryout, one: TriedLabel, names: tuple[str, str]) -> None:
    """Print the evidence of both for one label, and with `rules` why; once if alike."""
    say()
    texts = found.item.variables
    sides = [(names[1], found.after, one.after)]
    if found.before:
        sides.insert(0, (names[0], found.before, one.before))
    told = [
        (_evidence(side, one.label, texts, answers), side.rules.get(one.label), name)
        for name, side, answers in sides
    ]
    if len(told) > 1 and told[0][:2] == told[1][:2]:
        told = [(*told[0][:2], "both")]
    for words, why, name in told:
        say_wrapped(f"{one.label}, {name}: {words}", "")
        if why and "text" in texts:
            print_rules(why, one.label, texts["text"])


def _evidence(
    side: TriedSide, label: str, texts: Mapping[str, str], answers: Sequence[str]
) -> str:
    quotes = "; ".join(dict.fromkeys(_quotes(side, label, texts)))
    return f"{count_answers(answers)}, {quotes or 'without evidence'}"


def _quotes(side: TriedSide, label: str, texts: Mapping[str, str]) -> Iterable[str]:
    for outcome in side.outcomes:
        if label in outcome.fields:
            for span in outcome.fields[label].spans:
                words = quote_span(texts[span.input], span)
                yield f"[{words}] at {span.start}-{span.end}"


def _spans(side: TriedSide | None, label: str) -> list[Span]:
    found = side.outcomes if side else ()
    return [span for one in found if label in one.fields
            for span in one.fields[label].spans]  # fmt: skip


def _say_rest(labels: Sequence[TriedLabel]) -> None:
    """Name the labels that both answer alike, by their answer."""
    bare: dict[str, list[str]] = {}
    for one in labels:
        bare.setdefault(count_answers(one.after), []).append(one.label)
    if "absent" in bare:
        bare["absent"] = bare.pop("absent")
    if bare:
        say()
        say("alike" if any(one.before for one in labels) else "otherwise")
    for answer, names in bare.items():
        say_wrapped(f"{answer}: {', '.join(names)}", "  ")


def _show_pairs(found: PairsTryout, *, as_json: bool) -> None:
    if as_json:
        print_json(pairs_data(found))
        return
    draws = f", {found.draws} draws of each" if found.draws > 1 else ""
    say_wrapped(
        f"{found.prompt}, beside {found.parent}, {found.engine} on "
        f"{found.cohort}{draws}",
        "",
    )
    if found.chance and found.draws == 1:
        say_wrapped(
            "asked once; this engine may answer otherwise another time: see how far "
            "with --draws",
            "",
        )
    say()
    right = len(found.targets) - len(found.failing)
    say(f"pairs of its verdicts: {len(found.targets)}, right in {right}")
    _print_pairs(found, found.failing)
    say()
    say(f"pinned pairs: {len(found.anchors)}, {len(found.broken)} broken")
    _print_pairs(found, found.broken)
    if "@draft" in found.prompt:
        say()
        say("What else the wording changes, a check shows:")
        say(f"  ranloop draft check {found.prompt}")


def _show_phrase(found: PhraseTryout, *, as_json: bool) -> None:
    if as_json:
        print_json(phrase_data(found))
        return
    say_wrapped(
        f"'{found.phrase}' in the guide of {found.label}: {found.prompt}, "
        f"{found.engine} on {found.cohort}; the words stand in {found.holding:,} of "
        f"{counted(found.cases, 'case')}",
        "",
    )
    if found.estimated:
        say_wrapped(
            "an estimate by wording: the cases that hold the phrase and are not "
            f"answered as it would say, {_held_against(found)}; nothing was asked",
            "",
        )
    say()
    print_table(
        ("as", "changed", "become right", "become wrong", "other labels"),
        [
            (
                one.name,
                f"{len(one.changes):,}",
                NOT_KNOWN if one.gained is None else f"{one.gained:,}",
                NOT_KNOWN if one.lost is None else f"{one.lost:,}",
                f"{len(one.others):,}",
            )
            for one in found.parts
        ],
    )
    for one in found.parts:
        if one.changes or one.problem:
            _say_part(one)


def _held_against(found: PhraseTryout) -> str:
    if found.run:
        return f"by run {found.run}"
    return f"of which none is known without a run of {found.prompt} with it"


def _say_part(one: TriedPart) -> None:
    """Say which way a part changes the answers, and in which cases."""
    ways = "; ".join(f"{n:,} {old} -> {new}" for old, new, n in one.ways)
    ids = ", ".join(each.case_id for each in one.changes[:_MOST])
    more = len(one.changes) - _MOST
    say()
    say_wrapped(f"{one.name}: {ways or one.problem}", "")
    if 0 < one.unjudged < len(one.changes):
        say_wrapped(
            f"of {one.unjudged:,} it is {NOT_KNOWN} whether they are right", "  "
        )
    if ids:
        rest = f" and {more:,} more (--json lists all)" if more > 0 else ""
        say_wrapped(f"{ids}{rest}", "  ")


def _print_pairs(found: PairsTryout, pairs: Sequence[CheckTarget]) -> None:
    if not pairs:
        return
    drawn = found.draws > 1
    header = ("case", "label", "right is", *_name(found.prompt, found.parent))
    rows = []
    for one in pairs[:_MOST]:
        known = found.counts_of(one)
        row = (
            one.case_id,
            one.label,
            one.expected or "not known",
            one.before or "not there",
            one.after or "not there",
        )
        often = f"{known.before} -> {known.after} of {known.draws}" if known else ""
        rows.append((*row, often) if drawn else row)
    print_table((*header, "right in draws") if drawn else header, rows)
    if len(pairs) > _MOST:
        say(f"and {len(pairs) - _MOST} more (--json lists all)")
