"""The rules engine against bare Aho-Corasick matching of the same strings.

Run: ``python tests/bench/bench_rules.py``. Texts are the Open-i reports of the folder
named by RANLOOP_DATA, else the synthetic demo cohort. Every distinct report is read
once by a fresh engine (sentences repeat across reports and are remembered within a
pass; the last row switches that off).
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from ahocorasick_rs import AhoCorasick

from loop.core.paths import WorkspacePaths, bundled
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.vocabulary import build_vocabulary, fold
from loop.prompts.catalog import read_version

ROUNDS = 5


def texts() -> list[str]:
    """Return the reports to read."""
    if folder := os.environ.get("RANLOOP_DATA"):
        rows = []
        for name in ("reports_dev.csv", "reports_test.csv"):
            with (Path(folder) / "openi" / name).open(encoding="utf-8") as stream:
                rows += list(csv.DictReader(stream))
        return [f"{row['findings']} {row['impression']}".strip() for row in rows]
    demo = bundled() / "labels" / "demo" / "dev.jsonl"
    return [json.loads(line)["text"] for line in demo.open(encoding="utf-8")]


def per_second(make: Callable[[], Callable[[str], object]], cases: list[str]) -> float:
    """Return the median rate over `ROUNDS` fresh passes, in reports a second."""
    rates = []
    for _ in range(ROUNDS):
        read = make()
        began = time.perf_counter()
        for text in cases:
            read(text)
        rates.append(len(cases) / (time.perf_counter() - began))
    return statistics.median(rates)


def main() -> None:
    """Print the table."""
    cases = texts()
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    cues = read_cues(bundled() / "labels")
    fields = [guide.label for guide in version.guides]
    strings = build_vocabulary(version.guides, cues).strings
    automaton = AhoCorasick(strings)

    def bare() -> Callable[[str], object]:
        return lambda text: automaton.find_matches_as_indexes(
            fold(text), overlapping=True
        )

    def rules(memo: int) -> Callable[[], Callable[[str], object]]:
        return lambda: ReportReader(version.guides, fields, cues, memo=memo).answer

    limit = per_second(bare, cases)
    print(f"{len(cases)} reports, {len(strings)} strings, {version.ref}, one core")
    for name, rate in (
        ("bare Aho-Corasick", limit),
        ("rules, fresh", per_second(rules(50_000), cases)),
        ("rules, no sentence memo", per_second(rules(0), cases)),
    ):
        print(f"{name:26} {rate:10,.0f} reports/s   {limit / rate:5.1f} x the limit")


if __name__ == "__main__":
    main()
