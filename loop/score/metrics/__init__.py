"""Metrics of generated reports: one registry, one way to run them, one sheet."""
