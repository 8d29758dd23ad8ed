"""One prompt version over several engines, measured on the same cases and ranked."""
