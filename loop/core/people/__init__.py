"""Who may do what: users, their roles and passwords."""
