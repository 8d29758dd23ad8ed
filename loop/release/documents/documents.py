"""Every document of a release, as the bytes of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from loop.documents.templates import render_template, shipped_templates
from loop.release.documents.card import card_figures, card_tally, release_card
from loop.release.documents.change_record import change_record
from loop.release.documents.checklist import (
    CHECKLISTS,
    checklist_document,
    read_checklist,
)
from loop.release.documents.parts import AUTHOR, ReleaseDocument
from loop.release.documents.spreadsheet import evaluation_table
from loop.release.facts import ReleaseFacts
from loop.release.statement import Approval


def render_documents(
    facts: ReleaseFacts,
    approvals: Sequence[Approval] = (),
    templates: Path | None = None,
) -> Mapping[str, bytes]:
    """Return file names with their content: card, table, checklists, change record.

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
    card = release_card(facts, approvals)
    texts = {
        "card.md": _markdown(folder, card),
        "card.html": _page(folder, card, facts),
        **{
            f"{name.replace('_', '-')}.md": _markdown(
                folder, checklist_document(facts, read_checklist(name))
            )
            for name in CHECKLISTS
        },
        "change-record.md": _markdown(folder, change_record(facts, approvals)),
    }
    # A lone surrogate cannot be written in UTF-8; it is spelled out.
    written = {
        name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()
    }
    return {**written, "evaluation.csv": evaluation_table(facts)}


def _markdown(folder: Path, document: ReleaseDocument) -> str:
    variables = {"document": document, "author": AUTHOR}
    return render_template(folder, "release_document.md.jinja", variables)


def _page(folder: Path, card: ReleaseDocument, facts: ReleaseFacts) -> str:
    variables = {
        "document": card,
        "author": AUTHOR,
        "verdict": facts.claim.verdict.value,
        "figures": card_figures(facts),
        "tally": card_tally(facts),
    }
    return render_template(folder, "release_card.html.jinja", variables)
