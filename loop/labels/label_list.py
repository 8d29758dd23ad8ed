"""A list of labels with their meaning, in a table or YAML, made into a taxonomy."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.yaml_files import dump_yaml, parse_yaml
from loop.labels.importing.table_files import open_table
from loop.labels.taxonomy import NO_FINDING, check_taxonomy

COLUMNS = ("name", "definition")
"""Columns that a table of labels must have."""

LISTS = ("counts", "does_not_count", "uncertain_when", "aliases")
"""Columns that it may have besides ``id`` and ``group``; ``;`` separates entries."""

READING = (
    "What the text denies is absent; a denial reaches every finding of its list.",
    "What the text calls likely or probable is present; what it calls possible, "
    "suspected or not excluded is uncertain; what it calls unlikely is absent.",
    "What is stable, unchanged or improved is present; what has resolved or was "
    "removed is absent.",
    "The history, what another examination showed and what a recommendation names "
    "are absent, unless this text states them as findings.",
    "What the text does not mention is absent.",
)
"""Rules of reading for a task that names none, in no language's own wordings."""

_HEAD = """\
# The labels of this task: what each means, for readers and models alike. `definition`,
# and in a few words each what counts, what does not although it looks like it, and what
# leaves the label uncertain. A prompt version carries these words; `ranloop lint` names
# every guide that says otherwise.
"""

_YAML = (".yaml", ".yml")


def read_label_list(path: Path) -> str:
    """Return a list of labels as the text of a ``labels/taxonomy.yaml``.

    Parameters
    ----------
    path
        CSV, TSV, Excel, JSON Lines or Parquet with a row a label, or YAML: a list of
        labels, or a whole taxonomy. A label has a ``name`` and a ``definition``, and
        may have an ``id`` (else made of the name), a ``group`` and the lists `LISTS`.
        Rules of reading come with a taxonomy; a list of labels gets `READING`.

    Raises
    ------
    DataError
        The file cannot be read, has no label, a column or a field that is not known,
        a label without a name or a definition, or two labels of one name.
    """
    if path.suffix.lower() in _YAML:
        data = _from_yaml(parse_yaml(read_text(path), path), path)
    else:
        data = {"labels": list(_from_table(path))}
    labels = data["labels"]
    if isinstance(labels, list):
        data["labels"] = [_completed(label) for label in labels]
    taxonomy = check_taxonomy(data, path)
    head: dict[str, Any] = {"version": data.get("version", 1)}
    if NO_FINDING in taxonomy.ids:
        head["no_finding_policy"] = taxonomy.no_finding_policy.value
    head["reading"] = list(taxonomy.reading or READING)
    return _HEAD + dump_yaml(head | {"labels": data["labels"]})


def _from_yaml(data: object, path: Path) -> dict[str, Any]:
    """Return what a YAML file says, as the fields of a taxonomy."""
    if isinstance(data, list):
        return {"labels": data}
    if isinstance(data, Mapping) and "labels" in data:
        return dict(data)
    raise DataError(
        f"{path} holds neither a list of labels nor a taxonomy. Give a list of entries "
        "with `name` and `definition`, or the same under the key `labels`."
    )


def _from_table(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the labels of a table as entries of a taxonomy; blank cells left out."""
    table = open_table(path)
    table.require(COLUMNS)
    known = ("id", "group", *COLUMNS, *LISTS)
    unknown = len([column for column in table.header if column not in known])
    if unknown:
        raise DataError(
            f"{table.name}: {unknown} of {len(table.header)} columns mean nothing in a "
            f"table of labels. It may have {', '.join(known)}. Rename or remove the "
            "others."
        )
    for row in table.read(table.header):
        cells = {name: row.text(name).strip() for name in table.header}
        if not any(cells.values()):
            continue
        yield {
            name: _entries(cell) if name in LISTS else cell
            for name, cell in cells.items()
            if cell
        }


def _entries(cell: str) -> list[str]:
    return [one.strip() for one in cell.split(";") if one.strip()]


def _completed(label: object) -> object:
    """Return an entry with an id, made of its name where it has none."""
    if not isinstance(label, dict) or "id" in label or "name" not in label:
        return label
    made = label_id(str(label["name"]))
    return {"id": made, **label} if made else label


def label_id(name: str) -> str:
    """Return an id made of a name: lower case, Latin letters, digits and ``_``.

    Examples
    --------
    >>> label_id("Mass effect / midline shift"), label_id("Lymphknoten befallen (pN+)")
    ('mass_effect_midline_shift', 'lymphknoten_befallen_pn')
    >>> label_id("Große Blutung"), label_id("3D lesion"), label_id("出血")
    ('grosse_blutung', 'label_3d_lesion', '')
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).casefold()
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    found = re.sub(r"[^a-z0-9]+", "_", kept).strip("_")
    return f"label_{found}" if found[:1].isdigit() else found
