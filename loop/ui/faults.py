"""Where a bug arose, for the log; never its values, which may be clinical text."""

from __future__ import annotations

import traceback


def place_of(error: BaseException) -> str:
    """Return the lines that led to an error, the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{f.filename}:{f.lineno}" for f in reversed(frames))
