"""Who gets in: sign-in, sessions, and the gate before everything that is served."""
