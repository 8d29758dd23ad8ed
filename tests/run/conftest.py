"""An engine that answers from a table, and a plan for it: what a run needs."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace

import pytest

from loop.core.records import Completion, Item, Message, Prompt, PromptFrame
from loop.prompts.outputs.label_values import LabelValues
from loop.run.execute import Work, execute
from loop.run.spec import RunSpec
from loop.run.store import Store

LABELS = ("edema", "fracture")


def absent(fields=LABELS):
    """Return the answer that says absent to every field."""
    return json.dumps({name: {"value": "absent"} for name in fields})


@dataclass
class TableEngine:
    """Answers by text and call; everything else is absent. Remembers what it saw."""

    table: dict = field(default_factory=dict)
    """Text, or (text, call), to a completion or its text."""

    name: str = "table"
    asked: list = field(default_factory=list)

    def identity(self):
        """Return the name: tables with one name are the same engine."""
        return {"engine": self.name}

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            text, call = prompt.item.variables["text"], prompt.frame.call
            self.asked.append((text, call))
            answer = self.table.get((text, call), self.table.get(text))
            if answer is None:
                answer = absent(prompt.frame.fields)
            if not isinstance(answer, Completion):
                answer = Completion(answer)
            yield index, answer


def make_frame(call="joint", fields=LABELS, system="Say which findings there are."):
    """Return the frame of one call."""
    return PromptFrame(
        call=call,
        messages=(Message("system", system), Message("user", "Text: ")),
        fields=tuple(fields),
        schema=LabelValues().schema(fields),
    )


def make_plan(*frames):
    """Return the plan that asks every frame of every item."""

    def plan(item):
        return tuple(
            Prompt(frame=frame, tail=item.variables["text"], item=item)
            for frame in frames
        )

    return plan


JOINT = make_plan(make_frame())
PER_LABEL = make_plan(*(make_frame(label, (label,)) for label in LABELS))


def make_items(*texts):
    """Return one item per text, numbered."""
    return [
        Item(id=f"c{number}", variables={"text": text})
        for number, text in enumerate(texts)
    ]


def make_spec(**changes):
    """Return the spec of a small run."""
    values = {
        "prompt": "extractor@v1",
        "prompt_digest": "a" * 64,
        "contract": "label_values/1",
        "cohort": "dev",
        "cohort_digest": "b" * 64,
        "engine": "table",
        "parameters": {"temperature": 0.0},
    }
    return RunSpec(**{**values, **changes})


def run_items(store, engine, items, plan=JOINT, spec=None, **options):
    """Execute one run of `items` and return its summary."""
    work = Work(items=items, plan=plan, contract=LabelValues())
    return execute(spec or make_spec(), work, engine, store, **options)


@pytest.fixture
def store(tmp_path):
    """Yield an empty store."""
    opened = Store(tmp_path / "private" / "store.db")
    yield opened
    opened.close()


@pytest.fixture
def clock():
    """Return a clock that moves one minute at each reading."""
    start, ticks = datetime(2026, 11, 21, 22, 33, 1, tzinfo=UTC), count()
    return lambda: start + timedelta(minutes=next(ticks))


@pytest.fixture
def kit():
    """Return what this file defines: test modules cannot import each other."""
    return SimpleNamespace(**globals())
