"""Taxonomy, crosswalks, cohorts and the reference standard."""
