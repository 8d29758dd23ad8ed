"""Files and tables of cases, read for scoring: texts or labels, one case a row."""
