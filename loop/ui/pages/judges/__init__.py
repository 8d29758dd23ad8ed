"""The page Judges: pairs rated blind, and a judge's errors held against that."""
