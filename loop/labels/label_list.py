"""A list of labels, as people keep one: names and definitions become a taxonomy."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.yaml_files import dump_yaml, parse_yaml
from loop.labels.importing.table_files import open_table
from loop.labels.taxonomy import (
    ANY_REGION,
    SHORTEST,
    Taxonomy,
    fold_name,
    parse_taxonomy,
)

MOST_LABELS: Final = 1_000
"""Labels of one list: a file with more is not a list of labels."""

GROUP: Final = "findings"
"""Group of a label where a list names none."""

READING: Final = (
    "What the text states of this patient now counts. What it only asks, plans or "
    "recommends, and what earlier examinations showed, does not.",
    "A negation reaches every finding of its list, up to a contrast or the end of the "
    "sentence.",
    "Unchanged, stable, improved or residual: present. Resolved or removed: absent.",
    "Likely, probable or consistent with: present. Possible, suspected or not "
    "excluded: uncertain. Unlikely: absent.",
    "A text of another kind states none of the findings.",
)
"""Rules of reading for any kind of report, where a list brings none."""

_WORDS: Final = ("id", "name", "group", "definition", "chexpert")

_LISTS: Final = ("counts", "does_not_count", "uncertain_when", "aliases")

_ALSO: Final = {
    "label": "name",
    "not_counts": "does_not_count",
    "uncertain": "uncertain_when",
}
"""Other names of columns and keys."""

_FIELDS: Final = {fold_name(one): one for one in (*_WORDS, *_LISTS)} | {
    fold_name(also): one for also, one in _ALSO.items()
}

_SUFFIXES: Final = (".csv", ".tsv", ".xlsx", ".yaml", ".yml", ".jsonl", ".parquet")

_SEPARATOR: Final = re.compile(r"\s*[;\n]\s*")

_ID: Final = re.compile(r"[a-z][a-z0-9_]*")

_SPELLED: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "&": " and "})


def read_label_list(path: Path) -> str:
    """Return the text of a ``taxonomy.yaml`` with the labels that `path` lists.

    Parameters
    ----------
    path
        A table (``.csv``, ``.tsv``, ``.xlsx``, ``.jsonl``, ``.parquet``) with the
        columns ``name`` and ``definition``; ``id``, ``group``, ``counts``,
        ``does_not_count``, ``uncertain_when``, ``aliases`` and ``chexpert`` may be
        there too, several items of a cell separated by ``;``. Or ``.yaml``: a list of
        entries with these keys, or a whole taxonomy. A label without an id gets one
        from its name.

    Raises
    ------
    DataError
        There is no such file, it is no list of labels, or a label lacks its name or a
        definition; names the line, and never shows what stands there.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise DataError(
            f"{path} cannot be read as a list of labels. Give a file whose name ends "
            f"with one of {', '.join(_SUFFIXES)}."
        )
    about: dict[str, Any] = {}
    if suffix in (".yaml", ".yml"):
        about, listed = _read_yaml(path)
        entries: Iterable[tuple[str, dict[str, Any]]] = listed
    else:
        entries = _read_table(path)
    labels: dict[str, dict[str, Any]] = {}
    for where, entry in entries:
        label = _complete(entry, where)
        if label["id"] in labels:
            raise DataError(
                f"{where}: the id {label['id']!r} is that of an earlier label. Give "
                "each label a name, or an id, of its own."
            )
        labels[label["id"]] = label
        if len(labels) > MOST_LABELS:
            raise DataError(
                f"{path.name} has more than {MOST_LABELS:,} rows, so it is no list of "
                "labels. Give a file with one label a row: name,definition."
            )
    if not labels:
        raise DataError(
            f"{path.name} lists no label. Give one label a row: name,definition."
        )
    text = dump_yaml(
        {
            "version": 1,
            "region": ANY_REGION,
            "reading": list(READING),
            **about,
            "labels": list(labels.values()),
        }
    )
    parse_taxonomy(text, path)
    return text


def pick_listed(path: Path, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the ids of the labels that `path` lists, all of them in `taxonomy`.

    Raises
    ------
    DataError
        It is no list of labels, one is not in the taxonomy, or is defined otherwise.
    """
    listed = parse_taxonomy(read_label_list(path), path).labels
    known = {label.id: label for label in taxonomy.labels}
    for label in listed:
        if label.id not in known:
            raise DataError(
                f"{path.name}: the label {label.id} is not in labels/taxonomy.yaml. "
                "Add it there first: what a label means is said in one place."
            )
        if label.definition != known[label.id].definition:
            raise DataError(
                f"{path.name}: the label {label.id} is defined otherwise in "
                "labels/taxonomy.yaml. Use the same definition, or change it there."
            )
    return tuple(label.id for label in listed)


def derive_id(name: str) -> str:
    """Return the id that a label of this name gets; empty where none can be made.

    Examples
    --------
    >>> derive_id("White matter lesions"), derive_id("Gefäßinvasion (V1)")
    ('white_matter_lesions', 'gefaessinvasion_v1')
    >>> derive_id("肺炎")
    ''
    """
    spelled = unicodedata.normalize("NFC", name).casefold().translate(_SPELLED)
    plain = unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode()
    found = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    return found if _ID.fullmatch(found) else ""


def _read_table(path: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    table = open_table(path)
    fields = _name_fields(table.header, table.name)
    for row in table.read(table.header):
        entry: dict[str, Any] = {}
        for column, field in fields.items():
            text = row.text(column)
            if field in _LISTS:
                entry[field] = [one for one in _SEPARATOR.split(text) if one]
            else:
                entry[field] = text
        if any(entry.values()):
            yield row.where, entry


def _name_fields(header: Iterable[str], source: str) -> dict[str, str]:
    """Return column to field; a header that may be somebody's text is not shown."""
    fields: dict[str, str] = {}
    for number, column in enumerate(header, 1):
        field = _FIELDS.get(fold_name(column))
        if field is None or field in fields.values():
            problem = "is not known" if field is None else f"gives {field} once more"
            raise DataError(
                f"{source}: column {number} {problem}. The first line names the "
                f"columns, of {', '.join((*_WORDS, *_LISTS))}; name and definition "
                "are needed."
            )
        fields[column] = field
    missing = [one for one in ("name", "definition") if one not in fields.values()]
    if missing:
        raise DataError(
            f"{source}: no column {' and no column '.join(missing)}. The first line "
            "names the columns: name and definition are needed."
        )
    return fields


def _read_yaml(path: Path) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """Return what a file says besides its labels, and their entries."""
    data = parse_yaml(read_text(path), path.name)
    about: dict[str, Any] = {}
    if isinstance(data, dict) and "labels" in data:
        about = {key: value for key, value in data.items() if key != "labels"}
        data = data["labels"]
    if not isinstance(data, list):
        raise DataError(
            f"{path.name} is no list of labels. Write one entry a label, each with "
            "`name` and `definition`, below `labels:` or at the top."
        )
    entries = []
    for number, one in enumerate(data, 1):
        where = f"{path.name}, label {number}"
        if not isinstance(one, dict):
            raise DataError(
                f"{where}: is no entry. Write its `name:` and `definition:`."
            )
        entries.append((where, _rename_keys(one, where)))
    return about, entries


def _rename_keys(entry: Mapping[Any, Any], where: str) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for key, value in entry.items():
        field = _FIELDS.get(fold_name(str(key)))
        if field is None or field in renamed:
            raise DataError(
                f"{where}: has a key that is unknown or given twice. The keys are "
                f"{', '.join((*_WORDS, *_LISTS))}."
            )
        renamed[field] = value
    return renamed


def _complete(entry: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the entry of one label, with an id; empty fields left out."""
    filled = {field: value for field, value in entry.items() if value}
    for field in ("name", "definition"):
        value = filled.get(field)
        if not isinstance(value, str) or not value.strip():
            raise DataError(f"{where}: has no {field}. Give every label one.")
        filled[field] = " ".join(value.split())
    if len(filled["definition"]) < SHORTEST:
        raise DataError(
            f"{where}: the definition has fewer than {SHORTEST} characters. Say in a "
            "sentence what the label means: readers and models are told no more."
        )
    found = filled.pop("id", "") or derive_id(filled["name"])
    if not isinstance(found, str) or _ID.fullmatch(found) is None:
        raise DataError(
            f"{where}: no id can be made of the name, or the one given is none. Give "
            "an id of lower-case letters, digits and _, for example infarct_acute."
        )
    return {"id": found, "group": GROUP, **filled}
