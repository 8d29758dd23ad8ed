"""Servers of the tests in processes of their own."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def serving(module, *arguments, python=sys.executable):
    """Run ``python -m module``, yield the URL it prints first, and stop it."""
    process = subprocess.Popen(
        [python, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = process.stdout.readline().strip()
        if not url.startswith("http"):
            raise RuntimeError(f"{module} did not start: it printed {url!r}")
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def serving_chat(**options):
    """Run the cheap chat server; options as on its command line."""
    arguments = [
        part
        for name, value in options.items()
        for part in (f"--{name.replace('_', '-')}", value)
    ]
    return serving("tests.servers.chat_server", *arguments)
