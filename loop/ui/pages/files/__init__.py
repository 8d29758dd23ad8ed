"""The page Files: tables and documents out, cohorts, votes and verdicts in."""

from loop.ui.pages.files.layout import build

__all__ = ["build"]
