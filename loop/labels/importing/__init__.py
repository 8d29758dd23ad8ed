"""Importers: one file per format, one way into the private store."""
