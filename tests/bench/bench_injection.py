"""Error injection against the bare string work of the same variants.

Run: ``python -m tests.bench.bench_injection``. Reports are those of Open-i in the
folder named by RANLOOP_DATA, else of the synthetic demo cohort. Every pass begins cold:
a fresh reader and bank that remember no sentence yet; opening them is not counted. The
bare work makes each variant from its changes, takes them back, and compares the texts.
Prints variants a second on one core, and the ratio of the times in one process; the
wanted rate is at least 1,000 variants a second.
"""

from __future__ import annotations

import time

from loop.core.yaml_files import _parse_once
from loop.judge.injection.inject import (
    Injection,
    InjectionOptions,
    _open_reader,
    inject_errors,
)
from loop.judge.injection.injection_bank import read_bank
from loop.judge.injection.text_changes import apply_changes, undo_changes
from tests.bench.bench_rules import texts

ROUNDS = 3

WORK = (
    ("errors, k = 1", InjectionOptions()),
    ("errors, k = 1 to 3", InjectionOptions(numbers=(1, 2, 3))),
    (
        "harmless, k = 1 to 3",
        InjectionOptions(errors="", numbers=(1, 2, 3), harmless=True),
    ),
    ("all, k = 1 to 3", InjectionOptions(numbers=(1, 2, 3), harmless=True)),
)


def inject_cold(cases: dict[str, str], options: InjectionOptions) -> tuple[float, int]:
    """Return the least processor seconds of fresh passes, and the variants."""
    least, count = float("inf"), 0
    for _ in range(ROUNDS):
        _open_reader.cache_clear()
        _parse_once.cache_clear()
        _open_reader()
        read_bank()
        began = time.process_time()
        made = inject_errors(cases, options)
        least = min(least, time.process_time() - began)
        count = len(made.pairs)
    return least, count


def string_work(made: Injection) -> float:
    """Return the least processor seconds of making and undoing all changes."""
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for one in made.pairs:
            candidate = apply_changes(one.reference, one.changes)
            if undo_changes(candidate, one.changes) != one.reference:
                raise ValueError(one.id)
        least = min(least, time.process_time() - began)
    return least


def main() -> None:
    """Print the table."""
    cases = {str(number): text for number, text in enumerate(texts()) if text.strip()}
    print(f"{len(cases)} reports, one core")
    for name, options in WORK:
        taken, count = inject_cold(cases, options)
        bare = string_work(inject_errors(cases, options))
        print(
            f"{name:22} {count:7,} variants {count / taken:8,.0f} a second   "
            f"bare {count / bare:9,.0f}   {taken / bare:5.1f} x the time"
        )


if __name__ == "__main__":
    main()
