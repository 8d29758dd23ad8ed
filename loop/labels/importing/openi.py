"""The Open-i (Indiana University) collection in its CSV edition, and its MeSH coding.

Labels come from the MeSH coding: what was not coded is `Mark.NOT_CODED`, which is
weaker than absent. Of a label that no rule is about the coding says nothing: it gets no
column. The rules are data, ``labels/crosswalks/openi_mesh.yaml``; here is what
evaluates them. The loader brings no text: the user supplies the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from loop.core.digests import digest_text
from loop.core.errors import DataError
from loop.core.files import read_text
from loop.core.records import Mark
from loop.core.safe_text import quoted
from loop.core.yaml_files import read_model
from loop.labels.cohort import Reason
from loop.labels.importing.encodings import find_encoding
from loop.labels.importing.source import Source, SourceCase
from loop.labels.importing.table_files import CsvRow, iter_csv, read_header
from loop.labels.taxonomy import Taxonomy

OPENI = "openi"
"""Format of the file, as a cohort's entry in the ledger names it."""

NEEDED = ("uid", "MeSH", "findings", "impression")
ORIGIN = "Open-i, Indiana University chest X-ray collection, human MeSH coding"
LICENCE = (
    "Stated elsewhere as CC BY-NC-ND 4.0, the file carries no licence: treat as "
    "non-commercial, no derivatives, attribution. Report text is not for "
    "redistribution."
)
CITATION = (
    "Demner-Fushman D et al. Preparing a collection of radiology examinations for "
    "distribution and retrieval. J Am Med Inform Assoc 2016;23:304-310."
)
NOT_INDEXED = "No Indexing"


def is_openi(header: Sequence[str]) -> bool:
    """Whether a CSV header is that of the Open-i reports file."""
    return set(NEEDED) <= set(header)


def open_openi(
    path: Path, encoding: str, taxonomy: Taxonomy, crosswalk: MeshCrosswalk
) -> Source:
    """Return the cases of an Open-i reports file with marks from its MeSH codes.

    Raises
    ------
    DataError
        A column is missing; while reading, a row is wrong.
    """
    found = find_encoding(path, encoding)
    header = read_header(path, found.name)
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise DataError(
            f"{path.name}, line 1: no column {', '.join(missing)}. Give the reports "
            "file of the collection, or import it with --format csv."
        )
    return Source(
        cases=_cases(path, found.name, crosswalk),
        labels=crosswalk.labels,
        not_coded=True,
        not_comparable=crosswalk.not_comparable,
        files=((path.name, found.sha256),),
        unused=tuple(name for name in header if name not in NEEDED),
        source=ORIGIN,
        licence=LICENCE,
        citation=CITATION,
        format=OPENI,
    )


def _cases(path: Path, encoding: str, crosswalk: MeshCrosswalk) -> Iterator[SourceCase]:
    for row in iter_csv(path, encoding):
        yield _case(row, path.name, crosswalk)


def _case(row: CsvRow, source: str, crosswalk: MeshCrosswalk) -> SourceCase:
    cells = row.cells
    mesh = cells["MeSH"].strip()
    return SourceCase(
        where=f"{source}, line {row.line}",
        case_id=cells["uid"].strip(),
        # Findings and impression only: the indication is a question, not a finding.
        text=f"{cells['findings']} {cells['impression']}".strip(),
        language="en",
        unusable="not indexed" if mesh in (NOT_INDEXED, "") else "",
        marks=crosswalk.marks(mesh),
    )


class Condition(BaseModel):
    """What must hold of a tag's qualifiers, all of it together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    all: tuple[str, ...] = ()
    """Sites or qualifiers that must all be there."""

    any: tuple[str, ...] = ()
    """At least one of these, unless empty."""

    none: tuple[str, ...] = ()
    """None of these."""

    qualified: bool | None = None
    """Whether the tag must have, or must not have, any qualifier."""


class MeshRule(Condition):
    """One line of the crosswalk."""

    id: int
    headings: tuple[str, ...]
    when: tuple[Condition, ...] = ()
    """Alternatives; with them, the rule's own condition is empty."""

    present: tuple[str, ...] = ()
    """Labels that are present when the rule fires."""

    uncertain: tuple[str, ...] = ()


class _CrosswalkFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int
    sites: dict[str, tuple[str, ...]]
    not_comparable: dict[str, Reason] = {}
    rules: tuple[MeshRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshCrosswalk:
    """The rules, ready to be applied."""

    labels: tuple[str, ...]
    """Ids of the labels that a rule is about, in taxonomy order; silence on any other
    says nothing."""

    sites: Mapping[str, tuple[str, ...]]
    """Site name to the qualifiers it stands for."""

    rules: Mapping[str, tuple[MeshRule, ...]]
    """Heading to the rules that look at it."""

    not_comparable: Mapping[str, str] = field(default_factory=dict)
    """Label id to why its codes say nothing of a prompt."""

    def marks(self, mesh: str) -> Mapping[str, Mark]:
        """Return the mark of every label of `labels` for one report's MeSH cell.

        Present if any rule says so, else uncertain if any rule says so, else
        `Mark.NOT_CODED`.
        """
        found = dict.fromkeys(self.labels, Mark.NOT_CODED)
        for rule in self.fired(mesh):
            for label in rule.uncertain:
                if found[label] is Mark.NOT_CODED:
                    found[label] = Mark.UNCERTAIN
            for label in rule.present:
                found[label] = Mark.PRESENT
        return found

    def fired(self, mesh: str) -> tuple[MeshRule, ...]:
        """Return the rules that fire, tag by tag: why a mark is what it is."""
        tags = [[part.strip() for part in tag.split("/")] for tag in mesh.split(";")]
        return tuple(
            rule
            for heading, *qualifiers in tags
            for rule in self.rules.get(heading, ())
            if self._fires(rule, qualifiers)
        )

    def _fires(self, rule: MeshRule, qualifiers: Sequence[str]) -> bool:
        return any(self._holds(c, qualifiers) for c in rule.when or (rule,))

    def _holds(self, condition: Condition, qualifiers: Sequence[str]) -> bool:
        def there(name: str) -> bool:
            wanted = self.sites.get(name, (name,))
            return any(qualifier.startswith(wanted) for qualifier in qualifiers)

        if condition.qualified is not None and condition.qualified != bool(qualifiers):
            return False
        return (
            all(map(there, condition.all))
            and (not condition.any or any(map(there, condition.any)))
            and not any(map(there, condition.none))
        )


def crosswalk_digest(labels_folder: Path) -> str:
    """Return the sha256 of the text of the MeSH crosswalk of a ``labels/`` folder.

    Raises
    ------
    DataError
        There is none, or it cannot be read.
    """
    return digest_text(read_text(_crosswalk(labels_folder)))


def _crosswalk(labels_folder: Path) -> Path:
    return labels_folder / "crosswalks" / "openi_mesh.yaml"


def read_mesh_crosswalk(labels_folder: Path, taxonomy: Taxonomy) -> MeshCrosswalk:
    """Return the MeSH crosswalk of a ``labels/`` folder.

    Raises
    ------
    DataError
        The file is missing or malformed, or names a label the taxonomy lacks.
    """
    path = _crosswalk(labels_folder)
    model = read_model(path, _CrosswalkFile)
    unknown = sorted(set(model.not_comparable) - set(taxonomy.ids))
    if unknown:
        raise DataError(
            f"{path}, not_comparable: no label {quoted(unknown[0])} in the taxonomy. "
            "Correct the label id."
        )
    by_heading: dict[str, list[MeshRule]] = {}
    for rule in model.rules:
        _check_rule(rule, taxonomy, path)
        for heading in rule.headings:
            by_heading.setdefault(heading, []).append(rule)
    about = {
        label for rule in model.rules for label in (*rule.present, *rule.uncertain)
    }
    return MeshCrosswalk(
        labels=tuple(label for label in taxonomy.ids if label in about),
        sites=model.sites,
        rules={heading: tuple(rules) for heading, rules in by_heading.items()},
        not_comparable=model.not_comparable,
    )


def _check_rule(rule: MeshRule, taxonomy: Taxonomy, path: Path) -> None:
    unknown = {*rule.present, *rule.uncertain} - set(taxonomy.ids)
    if unknown:
        raise DataError(
            f"{path}, rule {rule.id}: no label {quoted(sorted(unknown)[0])} in the "
            "taxonomy. Correct the label id, or take the label out of the rule."
        )
    own = rule.all or rule.any or rule.none or rule.qualified is not None
    if rule.when and own:
        raise DataError(
            f"{path}, rule {rule.id}: has both `when` and a condition of its own. Move "
            "the condition into each alternative."
        )
