"""Verdicts become a draft, a checked draft, a committed version."""
