"""Errors and harmless rewriting put into reports, without a model, and checked by code."""
