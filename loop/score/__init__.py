"""Grades of generated reports: Ran Score and the report metrics."""
