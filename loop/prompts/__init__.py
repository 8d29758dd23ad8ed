"""Prompt versions: read, render, diff, lint; and the contracts that read answers."""
