"""A verdict from the fields of a form on a screen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from loop.core.errors import DataError
from loop.core.yaml_files import check_model
from loop.labels.taxonomy import Taxonomy
from loop.review.files import check_verdicts
from loop.review.verdict import Verdict, VerdictForm, build_verdict

_WHERE = "the verdict"


def build_from_form(
    fields: Mapping[str, Any],
    *,
    reviewer: str,
    taxonomy: Taxonomy,
    case_ids: Collection[str],
) -> Verdict:
    """Return the verdict that the fields of a form say, checked against its cohort.

    Parameters
    ----------
    fields
        As in a verdict file, see `loop.review.files`; empty fields do not count.
    reviewer
        Who is signed in; a name among the fields is not believed.
    case_ids
        The cases of the cohort.

    Raises
    ------
    DataError
        A field is wrong or missing, the parts contradict each other, a case is not in
        the cohort, or the evidence of an exemplar is not in its text.
    UnknownLabelError
        The label is not in the taxonomy.
    """
    filled = {key: _filled(value) for key, value in fields.items() if key != "reviewer"}
    filled = {key: value for key, value in filled.items() if value not in ("", [], {})}
    _require_characters(filled)
    form = check_model(filled, VerdictForm, _WHERE)
    verdict = build_verdict(form, reviewer, _WHERE)
    (checked,) = check_verdicts((verdict,), taxonomy, case_ids)
    _require_evidence(checked)
    return checked


def _filled(value: Any) -> Any:
    """Return a field without blank ends, and without its empty parts."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | tuple):
        parts = (_filled(one) for one in value)
        return [one for one in parts if one not in ("", None, {}, [])]
    if isinstance(value, Mapping):
        parts_by_key = {key: _filled(one) for key, one in value.items()}
        return {key: one for key, one in parts_by_key.items() if one not in ("", None)}
    return "" if value is None else value


def _require_characters(value: object) -> None:
    """Refuse what is no text: half of a character, which nothing could store."""
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{_WHERE}: character {error.start + 1} of a field is incomplete. "
                "Delete it and type it again."
            ) from error
    elif isinstance(value, list):
        for one in value:
            _require_characters(one)
    elif isinstance(value, dict):
        for one in value.values():
            _require_characters(one)


def _require_evidence(verdict: Verdict) -> None:
    """Refuse an exemplar whose evidence is not in its text, as lint would later."""
    for number, example in enumerate(verdict.edits.exemplars, 1):
        if example.evidence.casefold() not in example.text.casefold():
            raise DataError(
                f"{_WHERE}, exemplar {number}: its evidence phrase is not in "
                "its text. Use the phrase in the paraphrase, or shorten the phrase."
            )
