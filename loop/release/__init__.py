"""Freezing, signing, proving: what was released, on which evidence, and its history."""
