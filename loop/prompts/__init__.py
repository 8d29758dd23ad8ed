"""Prompt versions: read, render, compare, lint."""
