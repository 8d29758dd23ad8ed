"""Time the lexical metrics against the bare libraries, called pair by pair.

Run ``python tests/bench/bench_metrics.py`` with the package installed. Both sides score
the same synthetic pairs in the way a user would: the libraries in one process with
their own functions, ours with as many processes as `--workers` says, start of those
included. The libraries are timed on a few pairs and scaled up, which the output says;
on those the script checks that every score agrees.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from loop.score.metrics.bleu import bleu_of
from loop.score.metrics.chrf import chrf_of
from loop.score.metrics.word_counts import KINDS, measure

LEAST_WORDS, MOST_WORDS = 30, 110


class NoSynonyms:
    """Stands for a WordNet without a word."""

    def synsets(self, word: str) -> list[object]:
        """Return nothing."""
        return []


def make_pairs(n_cases: int, n_systems: int, seed: int):
    """Return references and candidates: words by Zipf's law, a third of them kept."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("aeioulnrstdm"))
    lexicon = ["".join(rng.choice(letters, rng.integers(2, 11))) for _ in range(3000)]

    def text() -> list[str]:
        places = np.minimum(rng.zipf(1.3, rng.integers(LEAST_WORDS, MOST_WORDS)), 3000)
        return [lexicon[place - 1] for place in places]

    references = [text() for _ in range(n_cases)]
    candidates = [
        [*reference[: len(reference) // 3], *text()]
        for _ in range(n_systems)
        for reference in references
    ]
    told = [" ".join(words).capitalize() + "." for words in candidates]
    return [" ".join(r).capitalize() + "." for r in references] * n_systems, told


def bare(kind: str, references: list[str], candidates: list[str]) -> np.ndarray:
    """Return one score per pair, from the library alone."""
    pairs = list(zip(references, candidates, strict=True))
    if kind == "bleu":
        known = BLEU(lowercase=True, effective_order=True)
        return np.array([known.sentence_score(c, [r]).score / 100 for r, c in pairs])
    if kind == "chrf":
        chrf = CHRF(lowercase=True)
        return np.array([chrf.sentence_score(c, [r]).score / 100 for r, c in pairs])
    if kind == "rouge":
        rouge = RougeScorer(["rouge1", "rouge2", "rougeL"])
        return np.array([rouge.score(r, c)["rougeL"].fmeasure for r, c in pairs])
    nothing = NoSynonyms()
    split = [(r.lower()[:-1].split(), c.lower()[:-1].split()) for r, c in pairs]
    return np.array([single_meteor_score(r, c, wordnet=nothing) for r, c in split])


def ours(kind: str, rows: np.ndarray) -> np.ndarray:
    """Return the same score from our counts."""
    if kind == "bleu":
        return bleu_of(rows, 4, effective=True)
    if kind == "chrf":
        return chrf_of(rows)
    return rows[:, 2 if kind == "rouge" else 0]


def timed(function, *arguments, **options):
    """Return seconds of wall time, and what came back."""
    start = perf_counter()
    found = function(*arguments, **options)
    return perf_counter() - start, found


def main() -> None:
    """Print the times and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--systems", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--bare", type=int, default=400, help="pairs for the libraries")
    options = parser.parse_args()
    references, candidates = make_pairs(options.cases, options.systems, seed=1)
    n, few = len(references), options.bare
    print(f"{n:,} pairs; the libraries on {few} of them, scaled; scores agree to 1e-9")
    total = 0.0
    for kind in KINDS:
        bare(kind, references[:2], candidates[:2])
        measure([kind], references[:2], candidates[:2])
        library, known = timed(bare, kind, references[:few], candidates[:few])
        alone, rows = timed(measure, [kind], references[:few], candidates[:few])
        assert np.abs(ours(kind, rows[kind]) - known).max() < 1e-9
        library, alone = library / few * n, alone / few * n
        total += library
        print(
            f"{kind:<8} library {library:7.1f} s   ours, one process {alone:7.1f} s   "
            f"ratio {library / alone:5.1f}"
        )
    wall, _ = timed(measure, KINDS, references, candidates, workers=options.workers)
    print(
        f"all      library {total:7.1f} s   ours, {options.workers} processes "
        f"{wall:7.1f} s   ratio {total / wall:5.1f}  (every pair, not scaled)"
    )


if __name__ == "__main__":
    main()
