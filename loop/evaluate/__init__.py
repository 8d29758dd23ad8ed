"""Outcomes and reference labels become tables, gates and comparisons."""
