"""Errors and harmless rewriting put into reports without a model, checked by code."""
