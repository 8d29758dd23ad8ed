"""The page Runs: every run there is, and work to start, watch, stop and resume."""
