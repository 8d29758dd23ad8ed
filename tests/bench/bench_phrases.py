"""How long it takes to say what marked words could become, over 3,000 reports.

Run: ``python tests/bench/bench_phrases.py``. Reports are those of the synthetic dev
cohort, repeated, each sentence numbered so that no two are the same. Measured is what a
page waits for: the texts are there, as after the first phrase; and beside it one pass
over all reports for each thing that a phrase could become. It is processor time.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace

from loop.core.paths import WorkspacePaths, bundled
from loop.core.records import Clarification, Guide, Value
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.rewording import AnsweredTexts
from loop.prompts.catalog import read_version

CASES = 3000
LABEL = "pleural_effusion"
PHRASES = (
    "calcified granuloma",
    "costophrenic angle",
    "no acute",
    "small",
    "lung",
    "effusion",
    "the",
)
"""From those that stand in few reports to those that stand in nearly all."""


def texts() -> list[str]:
    """Return `CASES` reports without a repeated sentence."""
    file = bundled() / "labels" / "demo" / "dev.jsonl"
    plain = [json.loads(line)["text"] for line in file.open(encoding="utf-8")]
    repeated = (plain[number % len(plain)] for number in range(CASES))
    return [text.replace(".", f" in {n}.") for n, text in enumerate(repeated)]


def ways(guide: Guide, phrase: str) -> list[tuple[Guide, Value | None, bool]]:
    """Return the guide with the phrase as each part that `rules` tells apart."""
    rules = [Clarification(phrase=phrase, value=value) for value in Value]
    return [
        (replace(guide, terms=(*guide.terms, phrase)), Value.PRESENT, False),
        (replace(guide, exclusions=(*guide.exclusions, phrase)), None, True),
        *(
            (
                replace(guide, clarifications=(*guide.clarifications, one)),
                one.value,
                True,
            )
            for one in rules
        ),
    ]


def main() -> None:
    """Print the table."""
    cases = texts()
    version = read_version(WorkspacePaths(bundled()), "extractor@latest")
    cues = read_cues(bundled() / "labels")
    fields = list(version.labels)
    guide = next(one for one in version.guides if one.label == LABEL)

    def compiled(changed: Guide) -> ReportReader:
        guides = [changed if one.label == LABEL else one for one in version.guides]
        return ReportReader(guides, fields, cues)

    began = time.process_time()
    answered = AnsweredTexts(compiled(guide), cases)
    print(
        f"{CASES} reports, {version.ref}: ready in {time.process_time() - began:.2f} s"
    )
    print(f"{'phrase':22}{'changes':>9}{'ms':>8}{'whole passes, ms':>18}{'ratio':>7}")
    for phrase in PHRASES:
        began, counts = time.process_time(), []
        reader = compiled(ways(guide, phrase)[0][0])
        for _, value, clarifies in ways(guide, phrase):
            old = phrase, Value.PRESENT, False
            again = reader.retaking(LABEL, old, value, clarifies=clarifies)
            counts.append(len(answered.compare(again, {phrase})))
        fast = time.process_time() - began
        began = time.process_time()
        for changed, _, _ in ways(guide, phrase):
            whole = compiled(changed)
            for text in cases:
                whole.answer(text)
        slow = time.process_time() - began
        print(
            f"{phrase:22}{max(counts):9}{1000 * fast:8.0f}{1000 * slow:18.0f}"
            f"{slow / fast:7.1f}"
        )


if __name__ == "__main__":
    main()
