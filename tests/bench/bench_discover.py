"""Which labels `discover` finds again in Open-i, how stable that is, and how fast.

Run: ``python -m tests.bench.bench_discover``; needs RANLOOP_DATA. For every asked label
the cluster is named whose cases agree best with the reference (F1; uncertain marks left
out). That choice uses the labels, the clusters do not. Then random halves of the
reports are clustered apart at several cuts, and the time is held against `rules` with
the newest extractor on the same reports, in one process.
"""

from __future__ import annotations

import csv
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sklearn.metrics import adjusted_rand_score

from loop.core.ledger import Actor
from loop.core.paths import WorkspacePaths, bundled, init_workspace
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions
from loop.optimize.discovery.clusters import CUT, cluster_phrases
from loop.optimize.discovery.discover import (
    LONGEST,
    MIN_REPORTS,
    MOST_PHRASES,
    FindingCluster,
    discover_findings,
)
from loop.optimize.discovery.noun_phrases import AssertedPhrase, mine_phrases
from loop.optimize.discovery.phrase_words import read_phrase_words
from loop.prompts.catalog import read_version

GOOD = 0.6
"""F1 from which on a label counts as found again."""

CUTS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
SPLITS = 10
ROUNDS = 3


class Rediscovered(NamedTuple):
    """The cluster that agrees best with one label."""

    label: str
    positives: int
    f1: float
    name: str
    cases: int


def import_all(data: Path, root: Path) -> WorkspacePaths:
    """Make a workspace with all Open-i reports as the cohort ``openi_all``."""
    place = init_workspace(root / "ws")
    rows = [
        row
        for part in ("dev", "test")
        for row in _rows(data / "openi" / f"reports_{part}.csv")
    ]
    joined = root / "all.csv"
    with joined.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    options = ImportOptions(name="openi_all", role="taxonomy")
    import_cohort(place, joined, options, actor=Actor(name="bench", role="system"))
    return place


def read_marks(data: Path) -> dict[str, dict[str, str]]:
    """Return label to case id to ``1``, ``0`` or ``-1``, without "No Finding"."""
    marks: dict[str, dict[str, str]] = {}
    for part in ("dev", "test"):
        for row in _rows(data / "openi" / f"labels_{part}.csv"):
            case = row.pop("uid")
            for label, value in row.items():
                if label != "No Finding":
                    marks.setdefault(label, {})[case] = value
    return marks


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def rediscover(
    clusters: Sequence[FindingCluster], marks: Mapping[str, Mapping[str, str]]
) -> list[Rediscovered]:
    """Return for each label the cluster with the best F1."""
    found = []
    for label, values in marks.items():
        scores = [_score(one.asserted, values, values.keys()) for one in clusters]
        best = scores.index(max(scores))
        one = clusters[best]
        found.append(
            Rediscovered(
                label,
                sum(value == "1" for value in values.values()),
                scores[best],
                one.name,
                len(one.asserted),
            )
        )
    return found


def choose_apart(
    clusters: Sequence[FindingCluster],
    marks: Mapping[str, Mapping[str, str]],
    data: Path,
) -> list[float]:
    """Return F1 on the test file of the cluster that is best on the dev file."""
    dev = {row["uid"] for row in _rows(data / "openi" / "reports_dev.csv")}
    scores = []
    for values in marks.values():
        on_dev = [_score(one.asserted, values, dev) for one in clusters]
        best = clusters[on_dev.index(max(on_dev))]
        scores.append(_score(best.asserted, values, values.keys() - dev))
    return scores


def _score(
    asserted: Iterable[str], values: Mapping[str, str], cases: Set[str]
) -> float:
    """Return F1 of asserting cases on `cases`, without those marked uncertain."""
    positive = {case for case in cases if values[case] == "1"}
    decided = {case for case in cases if values[case] != "-1"}
    said = decided.intersection(asserted)
    return 2 * len(said & positive) / max(1, len(said) + len(positive))


def agreement(halves: Sequence[Sequence[AssertedPhrase]], cut: float) -> float:
    """Return the adjusted Rand index of two clusterings, over common phrases."""
    first, second = (
        {
            phrases[at].words: number
            for number, group in enumerate(cluster_phrases(phrases, cut=cut))
            for at in group.places
        }
        for phrases in halves
    )
    common = sorted(first.keys() & second.keys())
    return float(
        adjusted_rand_score(
            [first[one] for one in common], [second[one] for one in common]
        )
    )


def draw_halves(count: int, seed: int) -> tuple[list[int], list[int]]:
    """Return two random halves of the places of reports, each in order."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return sorted(order[: count // 2]), sorted(order[count // 2 :])


def split_halves(texts: Sequence[str]) -> list[list[tuple[AssertedPhrase, ...]]]:
    """Return the phrases of random halves of the reports."""
    cues, words = read_cues(bundled() / "labels"), read_phrase_words()
    return [
        [
            mine_phrases(
                [texts[at] for at in half],
                cues,
                words,
                units=range(len(half)),
                min_reports=MIN_REPORTS,
                longest=LONGEST,
                most=MOST_PHRASES,
            ).phrases
            for half in draw_halves(len(texts), seed)
        ]
        for seed in range(SPLITS)
    ]


def count_in_halves(
    splits: Sequence[Sequence[Sequence[AssertedPhrase]]],
    ids: Sequence[str],
    marks: Mapping[str, Mapping[str, str]],
) -> list[int]:
    """Return how many labels each half finds again by itself."""
    counts = []
    for seed, halves in enumerate(splits):
        for half, phrases in zip(draw_halves(len(ids), seed), halves, strict=True):
            cases = {ids[at] for at in half}
            clusters = [
                {ids[half[at]] for one in group.places for at in phrases[one].asserted}
                for group in cluster_phrases(phrases)
            ]
            counts.append(
                sum(
                    max(_score(one, values, cases) for one in clusters) >= GOOD
                    for values in marks.values()
                )
            )
    return counts


def seconds(work: Callable[[], object]) -> float:
    """Return the median processor time of `ROUNDS` calls, in seconds."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def texts_of(data: Path) -> list[str]:
    """Return all reports."""
    return [
        f"{row['findings']} {row['impression']}".strip()
        for part in ("dev", "test")
        for row in _rows(data / "openi" / f"reports_{part}.csv")
    ]


def main() -> None:
    """Print the tables."""
    named = os.environ.get("RANLOOP_DATA")
    if not named:
        raise SystemExit("set RANLOOP_DATA to a folder that holds Open-i as openi")
    data = Path(named)
    with TemporaryDirectory() as folder:
        place = import_all(data, Path(folder))
        found = discover_findings(place, "openi_all")
        taken = seconds(lambda: discover_findings(place, "openi_all"))
    again = rediscover(found.clusters, read_marks(data))
    print(
        f"{found.cases} reports, {found.phrases} phrases, "
        f"{len(found.clusters)} clusters"
    )
    for one in sorted(again, key=lambda one: -one.f1):
        print(
            f"{one.label:28} {one.positives:4} positives  F1 {one.f1:.3f}  "
            f"{one.name} ({one.cases})"
        )
    good = sum(one.f1 >= GOOD for one in again)
    print(f"{good} of {len(again)} labels at F1 {GOOD} or more")
    held = choose_apart(found.clusters, read_marks(data), data)
    print(
        f"with each cluster chosen on the dev file and scored on the test file: "
        f"{sum(f1 >= GOOD for f1 in held)} of {len(held)}"
    )

    texts = texts_of(data)
    splits = split_halves(texts)
    print(f"\nagreement of random halves, adjusted Rand index of {SPLITS} splits")
    for cut in CUTS:
        indices = [agreement(halves, cut) for halves in splits]
        mark = "  <- the default" if cut == CUT else ""
        print(
            f"cut {cut:.2f}  mean {statistics.mean(indices):.3f}  "
            f"least {min(indices):.3f}{mark}"
        )

    ids = [
        row["uid"]
        for part in ("dev", "test")
        for row in _rows(data / "openi" / f"reports_{part}.csv")
    ]
    counts = count_in_halves(splits, ids, read_marks(data))
    print(
        f"labels found again in a random half: mean {statistics.mean(counts):.1f}, "
        f"{min(counts)} to {max(counts)}"
    )

    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    cues = read_cues(bundled() / "labels")

    def rules() -> None:
        reader = ReportReader(version.guides, version.labels, cues)
        for text in texts:
            reader.answer(text)

    base = seconds(rules)
    print(
        f"\ndiscover {1e3 * taken / len(texts):.2f} ms a report, "
        f"{taken / base:.1f} x rules with {version.ref} "
        f"({1e3 * base / len(texts):.2f} ms)"
    )


if __name__ == "__main__":
    main()
