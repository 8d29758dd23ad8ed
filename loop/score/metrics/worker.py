"""A process that counts pairs of texts: from standard input to standard output."""

from __future__ import annotations

import json
import sys

from loop.score.metrics.lexical import count_pairs


def main() -> None:
    """Read kinds and pairs as JSON, write the counts by kind as JSON."""
    asked = json.load(sys.stdin)
    counts = count_pairs(asked["kinds"], asked["pairs"])
    json.dump({kind: rows.tolist() for kind, rows in counts.items()}, sys.stdout)


if __name__ == "__main__":
    main()
