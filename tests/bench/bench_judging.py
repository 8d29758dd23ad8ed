"""The embedded judge against `rules` reading both texts of the same pairs.

Run: ``python -m tests.bench.bench_judging``. No text is in two pairs; they are Open-i
reports of the folder named by RANLOOP_DATA, else of the synthetic demo cohort. Every
pass begins cold: a fresh reader that remembers no sentence yet. Prints pairs a second
and the ratio of the times in the same process; the wanted ratio is at most 2.5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from loop.core.paths import WorkspacePaths, bundled
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.judging import judge_pair
from loop.engines.rules.report_findings import FindingReader
from loop.engines.rules.weights import read_judging
from loop.prompts.catalog import read_version
from tests.bench.bench_rules import texts

ROUNDS = 5
PAIRS = 600

Pair = tuple[str, str]


def seconds(
    makes: Sequence[Callable[[], Callable[[Pair], object]]], pairs: Sequence[Pair]
) -> list[float]:
    """Return the least processor seconds of fresh passes, which take turns."""
    least = [float("inf")] * len(makes)
    for _ in range(ROUNDS):
        for place, make in enumerate(makes):
            ask = make()
            began = time.process_time()
            for pair in pairs:
                ask(pair)
            least[place] = min(least[place], time.process_time() - began)
    return least


def main() -> None:
    """Print the table."""
    cases = [text for text in texts() if text.strip()][: 2 * PAIRS]
    pairs = list(zip(cases[::2], cases[1::2], strict=False))
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    cues = read_cues(bundled() / "labels")
    fields = [guide.label for guide in version.guides]
    data = read_judging()

    def rules(memo: int) -> Callable[[], Callable[[Pair], object]]:
        def make() -> Callable[[Pair], object]:
            read = ReportReader(version.guides, fields, cues, memo=memo).answer
            return lambda pair: (read(pair[0]), read(pair[1]))

        return make

    def judge(memo: int) -> Callable[[], Callable[[Pair], object]]:
        def make() -> Callable[[Pair], object]:
            reader = FindingReader(version.guides, cues, data, memo=memo)
            return lambda pair: judge_pair(reader, *pair)

        return make

    print(f"{len(pairs)} pairs, {version.ref}, one core")
    for name, memo in (("cold", 50_000), ("without a memory of sentences", 0)):
        base, taken = seconds([rules(memo), judge(memo)], pairs)
        print(
            f"{name:30} rules {len(pairs) / base:8,.0f} pairs/s   judge "
            f"{len(pairs) / taken:8,.0f} pairs/s   {taken / base:4.2f} x the time"
        )


if __name__ == "__main__":
    main()
