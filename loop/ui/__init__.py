"""The review workbench: a face on what the command line does, in a browser."""
