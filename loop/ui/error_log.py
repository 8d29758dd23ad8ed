"""Bugs in the log: where they arose, never their values, which may be clinical text."""

from __future__ import annotations

import traceback
from logging import Logger


def log_bug(log: Logger, error: BaseException) -> None:
    """Log the type of an error and the lines that led to it, the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    place = " < ".join(f"{f.filename}:{f.lineno}" for f in reversed(frames))
    log.error("%s at %s", type(error).__name__, place)
