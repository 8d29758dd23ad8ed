"""Pure statistics: intervals, agreement, paired tests, bootstrap, planning."""
