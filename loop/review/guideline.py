"""The annotation guideline: what readers and models are told a label means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from docx import Document
from docx.document import Document as WordDocument

from loop import __version__
from loop.core.errors import DataError
from loop.core.files import write_atomic
from loop.core.paths import WorkspacePaths
from loop.core.records import Exemplar, Guide
from loop.core.safe_text import printable
from loop.documents.templates import render_template, template_folder
from loop.labels.majority import read_rule
from loop.labels.taxonomy import NO_FINDING, Label, Taxonomy, read_taxonomy
from loop.prompts.catalog import read_version
from loop.prompts.lint import fold_phrase, is_pattern
from loop.prompts.version import PromptVersion


class GuidelineEntry(NamedTuple):
    """One label of a guideline: a page of its own where it is printed."""

    name: str
    definition: str
    lists: tuple[tuple[str, tuple[str, ...]], ...]
    """Heading and items: what counts, what does not, when it is uncertain, wordings."""

    rulings: tuple[tuple[str, str, str], ...]
    """Wording, its value, and why; from the prompt version."""

    examples: tuple[Exemplar, ...]
    in_prompt: str
    """The prompt version's definition where it is worded otherwise; else empty."""


class Guideline(NamedTuple):
    """What labels mean and how a report is read, as readers and models are told."""

    title: str
    sources: tuple[str, ...]
    """What it is made of, with digests."""

    reading: tuple[str, ...]
    """Rules of reading that hold for every label."""

    entries: tuple[GuidelineEntry, ...]


VALUES: Mapping[str, str] = {
    "present": "The report states the finding, or gives unequivocal evidence for it.",
    "absent": "The finding is negated, very unlikely, resolved, or not mentioned.",
    "uncertain": "Anything in between, such as a possible or suspected finding.",
}
"""What readers may say of a label."""


def build_guideline(
    taxonomy: Taxonomy,
    version: PromptVersion | None = None,
    *,
    no_finding_read: bool = False,
) -> Guideline:
    """Return the guideline of a taxonomy, with the examples of a prompt version.

    Parameters
    ----------
    version
        Adds wordings, rulings and examples of the labels that it asks for, and says
        where it defines a label otherwise than the taxonomy. Its lexicon is left out:
        that is for the engine `rules`.
    no_finding_read
        Whether readers label "No Finding" themselves: then its entry says so, because
        the taxonomy speaks of predictions.
    """
    sources = [f"Taxonomy version {taxonomy.version}, digest {taxonomy.digest[:12]}"]
    if version is not None:
        sources.append(f"Prompt {version.ref}, digest {version.digest[:12]}")
    return Guideline(
        title="Annotation guideline",
        sources=tuple(sources),
        reading=taxonomy.reading,
        entries=tuple(
            _entry(
                label,
                version.guide(label.id) if version else None,
                read=no_finding_read and label.id == NO_FINDING,
            )
            for label in taxonomy.labels
        ),
    )


READ_NO_FINDING = (
    "label it yourself, as the protocol says: it is not derived from your other "
    "labels, and should not contradict them"
)
"""What the guideline adds where readers label "No Finding"."""


def _entry(label: Label, guide: Guide | None, *, read: bool) -> GuidelineEntry:
    lists = [
        ("Counts", label.counts),
        ("Does not count", label.does_not_count),
        ("Uncertain", label.uncertain_when),
        ("For readers", (READ_NO_FINDING,) if read else ()),
    ]
    if guide is None:
        return GuidelineEntry(label.name, label.definition, _filled(lists), (), (), "")
    lists.append(
        ("Also called", tuple(one for one in guide.terms if not is_pattern(one)))
    )
    own = fold_phrase(guide.definition) != fold_phrase(label.definition)
    return GuidelineEntry(
        name=label.name,
        definition=label.definition,
        lists=_filled(lists),
        rulings=tuple(
            (rule.phrase, rule.value.value, rule.note)
            for rule in guide.clarifications
            if not is_pattern(rule.phrase)
        ),
        examples=guide.exemplars,
        in_prompt=guide.definition if own else "",
    )


def _filled(
    lists: list[tuple[str, tuple[str, ...]]],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((heading, items) for heading, items in lists if items)


def write_guideline(
    workspace: WorkspacePaths, out: Path, *, prompt: str | None = None
) -> Guideline:
    """Write the guideline of a workspace to a file, and return it.

    Parameters
    ----------
    out
        Its ending decides the form: ``.html``, ``.md`` or ``.docx``.
    prompt
        Prompt version whose wordings, rulings and examples are shown, for example
        ``"extractor@v7"``; None for the taxonomy alone.

    Raises
    ------
    DataError
        Another ending, or the taxonomy, the version or the protocol cannot be read.
    WriteError
        The file cannot be written.
    """
    form = _FORMS.get(out.suffix.lower())
    if form is None:
        raise DataError(
            f"{out} ends in {out.suffix or 'nothing'}. Name a file that ends in "
            f"{', '.join(_FORMS)}."
        )
    version = None if prompt is None else read_version(workspace, prompt)
    guideline = build_guideline(
        read_taxonomy(workspace.labels),
        version,
        no_finding_read=read_rule(workspace).no_finding_read,
    )
    write_atomic(out, form(guideline, template_folder(workspace)))
    return guideline


def _html(guideline: Guideline, templates: Path) -> str:
    return render_template(templates, "guideline.html.jinja", _variables(guideline))


def _markdown(guideline: Guideline, templates: Path) -> str:
    return render_template(templates, "guideline.md.jinja", _variables(guideline))


def _variables(guideline: Guideline) -> dict[str, object]:
    return {
        **guideline._asdict(),
        "values": VALUES,
        "reason": reason,
        "version": __version__,
    }


def _docx(guideline: Guideline, _templates: Path) -> bytes:
    """Return a Word document, each label on a page of its own."""
    document = Document()
    document.core_properties.title = guideline.title
    document.core_properties.author = f"ranloop {__version__}"
    document.core_properties.comments = "; ".join(guideline.sources)
    # A page that is printed alone still says of which guideline it is.
    document.sections[0].footer.paragraphs[0].text = printable(
        "; ".join((guideline.title, *guideline.sources))
    )
    document.add_heading(guideline.title, level=0)
    for source in guideline.sources:
        document.add_paragraph(printable(source))
    values = [f"{value}: {meaning}" for value, meaning in VALUES.items()]
    _add_list(document, "Values", values, level=1)
    _add_list(document, "Rules of reading", guideline.reading, level=1)
    for entry in guideline.entries:
        document.add_page_break()  # type: ignore[no-untyped-call]
        _add_entry(document, entry)
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def _add_entry(document: WordDocument, entry: GuidelineEntry) -> None:
    document.add_heading(printable(entry.name), level=1)
    document.add_paragraph(printable(entry.definition))
    if entry.in_prompt:
        document.add_paragraph(printable(f"In the prompt version: {entry.in_prompt}"))
    for heading, items in entry.lists:
        _add_list(document, heading, items, level=2)
    rulings = [
        f"{phrase}: {value}" + (f". {note}" if note else "")
        for phrase, value, note in entry.rulings
    ]
    _add_list(document, "Rulings", rulings, level=2)
    if entry.examples:
        document.add_heading("Examples", level=2)
        table = document.add_table(rows=0, cols=3, style="Table Grid")
        rows = [(one.text, one.value.value, reason(one)) for one in entry.examples]
        for row in [("Text", "Value", "Why"), *rows]:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = printable(text)


def _add_list(
    document: WordDocument, heading: str, items: Sequence[str], *, level: int
) -> None:
    if items:
        document.add_heading(heading, level=level)
    for item in items:
        document.add_paragraph(printable(item), style="List Bullet")


def reason(example: Exemplar) -> str:
    """Return why an example has its value: the reason given, or the words that say."""
    return example.why or f'"{example.evidence}"'


_FORMS: Mapping[str, Callable[[Guideline, Path], str | bytes]] = {
    ".html": _html,
    ".md": _markdown,
    ".docx": _docx,
}
