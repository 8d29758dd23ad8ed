"""Engines behind one protocol: what turns a prompt into text."""
