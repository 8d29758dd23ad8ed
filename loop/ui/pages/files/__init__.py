"""The page Files: what can be exported; cohorts, votes and verdicts to import."""

from loop.ui.pages.files.layout import build

__all__ = ["build"]
