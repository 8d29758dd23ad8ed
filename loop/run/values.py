"""A run's answers without their evidence: what counting needs, and fast to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic_core import from_json

from loop.core.errors import StoreError
from loop.core.records import Status
from loop.run.store import RunRecord, Store

_PAGE = 1000
"""Outcomes read at a time, so that a reader never holds up a writer."""


class Values(NamedTuple):
    """The answers of one item."""

    item_id: str
    status: Status
    values: Mapping[str, object]
    """Field name to answer; a field that was not answered is missing."""


def read_values(store: Store, run: RunRecord) -> Iterator[Values]:
    """Yield the answers of a run in cohort order.

    The same as `Store.read_outcomes` less evidence, repairs and problems, in a third
    of the time.

    Raises
    ------
    StoreError
        The file is damaged or locked, or a row was changed by something other than
        ranloop.
    """
    last = -1
    while rows := store.read(
        "SELECT seq, item_id, status, fields FROM outcomes "
        "WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?",
        [run.number, last, _PAGE],
    ):
        for _, item_id, status, fields in rows:
            try:
                values = {
                    name: answer[0] if isinstance(answer, list) else answer
                    for name, answer in from_json(fields).items()
                }
                yield Values(item_id, Status(status), values)
            except (ValueError, AttributeError, IndexError) as error:
                raise StoreError(
                    f"{store.path}: the outcome of case {item_id} in run {run.id} "
                    "cannot be read; something other than ranloop changed it. Run the "
                    "same `ranloop run` again to make it anew."
                ) from error
        last = rows[-1][0]
