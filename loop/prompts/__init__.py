"""Prompt versions: read, render, digest, lineage, diff, lint."""
