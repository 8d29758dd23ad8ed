"""The ranloop command."""
