"""The page Versions: where a prompt's versions came from, and what the ledger says."""

from loop.ui.pages.versions.layout import build

__all__ = ["build"]
