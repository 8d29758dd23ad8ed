"""The templates of documents: found, and rendered without trusting any text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from loop.core.errors import DataError
from loop.core.paths import WorkspacePaths, bundled
from loop.core.safe_text import printable
from loop.documents import numbers


def template_folder(workspace: WorkspacePaths) -> Path:
    """Folder of the workspace's own templates, or of the shipped ones."""
    own = workspace.root / "reports" / "templates"
    return own if own.is_dir() else shipped_templates()


def shipped_templates() -> Path:
    """Folder of the templates that come with ranloop."""
    return bundled() / "reports" / "templates"


def render_template(folder: Path, name: str, variables: Mapping[str, object]) -> str:
    """Return the template `name` with `variables`; HTML templates escape all text.

    Control and text-direction characters are spelled out: names come from outside.

    Raises
    ------
    DataError
        The template is missing or wrong; names it and, where known, the line.
    """
    environment = _environment(folder, escaping=".html." in name)
    try:
        return printable(environment.get_template(name).render(**variables))
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f"{folder / name}" + (f", line {line}" if line else "")
        raise DataError(
            f"{where}: the template cannot be rendered ({type(error).__name__}: "
            f"{error.message}). Correct it, or remove the folder to use the shipped "
            "templates."
        ) from error


@lru_cache(maxsize=16)
def _environment(folder: Path, *, escaping: bool) -> ImmutableSandboxedEnvironment:
    """Return what compiles the templates of a folder, each once until it changes."""
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=escaping,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        share=numbers.share,
        signed=numbers.signed,
        interval=numbers.interval,
        signed_interval=numbers.signed_interval,
        p_value=numbers.p_value,
        percent=numbers.percent,
        count=numbers.count,
        resampled=numbers.resampled,
        listed=numbers.listed,
        cell=markdown_cell,
    )
    return environment


def markdown_cell(text: object) -> str:
    """Return `text` so that it stays one cell and plain words in Markdown.

    Examples
    --------
    >>> markdown_cell("a|b <i>")
    'a&#124;b &lt;i>'
    """
    plain = " ".join(str(text).split())
    for char, safe in (("&", "&amp;"), ("|", "&#124;"), ("<", "&lt;")):
        plain = plain.replace(char, safe)
    for char in "\\`*_[]":
        plain = plain.replace(char, f"\\{char}")
    return plain
