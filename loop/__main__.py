"""``python -m loop`` is the ``ranloop`` command."""

from loop.cli.main import run

if __name__ == "__main__":
    run()
