"""Experts' ratings, and how well a metric agrees with them."""
