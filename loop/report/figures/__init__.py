"""Inline SVG figures: no script, no network, readable without colour."""
