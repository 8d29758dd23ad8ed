"""The documents of a release, written from the facts of its ``release.json``."""
