"""Every document of a release, as the bytes of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loop.documents.templates import render_template, shipped_templates
from loop.release.documents.card import card_figures, card_tally, release_card
from loop.release.documents.change_record import change_record
from loop.release.documents.checklist import (
    CHECKLISTS,
    checklist_document,
    read_checklist,
)
from loop.release.documents.judge_card import judge_card, judge_figures, judge_tally
from loop.release.documents.judge_change import judge_change_record
from loop.release.documents.parts import AUTHOR, Figure, ReleaseDocument
from loop.release.documents.spreadsheet import evaluation_table
from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.release_json import AnyFacts
from loop.release.statement import Approval


def render_documents(
    facts: AnyFacts,
    approvals: Sequence[Approval] = (),
    templates: Path | None = None,
) -> Mapping[str, bytes]:
    """Return file names with their content: card, table, checklists, change record.

    Of a judge there is a card and a change record: the checklists ask about what is
    read out of texts, and its table of rows is no document.

    The same facts give the same bytes: no clock, no folder and no order of this
    machine enters. Text in the facts is data; it is escaped in Markdown and HTML and
    cannot be a formula in the table.

    Parameters
    ----------
    facts
        The content of ``release.json``; a null is printed as not recorded.
    approvals
        Of everyone who signs; none for whoever froze it.
    templates
        Folder of templates; default: the shipped ones.

    Raises
    ------
    DataError
        A template is missing or wrong.
    """
    folder = templates or shipped_templates()
    if isinstance(facts, JudgeReleaseFacts):
        card = judge_card(facts, approvals)
        numbers = CardNumbers(judge_figures(facts), judge_tally(facts), "checks")
        return _written(
            {
                "card.md": _markdown(folder, card),
                "card.html": _page(folder, card, facts, numbers),
                "change-record.md": _markdown(
                    folder, judge_change_record(facts, approvals)
                ),
            }
        )
    card = release_card(facts, approvals)
    numbers = CardNumbers(card_figures(facts), card_tally(facts), "labels")
    texts = {
        "card.md": _markdown(folder, card),
        "card.html": _page(folder, card, facts, numbers),
        **{
            f"{name.replace('_', '-')}.md": _markdown(
                folder, checklist_document(facts, read_checklist(name))
            )
            for name in CHECKLISTS
        },
        "change-record.md": _markdown(folder, change_record(facts, approvals)),
    }
    return {**_written(texts), "evaluation.csv": evaluation_table(facts)}


def _written(texts: Mapping[str, str]) -> dict[str, bytes]:
    # A lone surrogate cannot be written in UTF-8; it is spelled out.
    return {
        name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()
    }


class CardNumbers(NamedTuple):
    """The numbers at the head of a card's page."""

    figures: tuple[Figure, ...]
    tally: tuple[tuple[str, int, int], ...]
    counted: str
    """What the tally counts."""


def _markdown(folder: Path, document: ReleaseDocument) -> str:
    variables = {"document": document, "author": AUTHOR}
    return render_template(folder, "release_document.md.jinja", variables)


def _page(
    folder: Path, card: ReleaseDocument, facts: AnyFacts, numbers: CardNumbers
) -> str:
    variables = {
        "document": card,
        "author": AUTHOR,
        "verdict": facts.claim.verdict.value,
        **numbers._asdict(),
    }
    return render_template(folder, "release_card.html.jinja", variables)
