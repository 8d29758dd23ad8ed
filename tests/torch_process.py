"""A process with torch: of the environment of the tests with a real vLLM."""

import json
import os
import subprocess
import sys

import pytest

from loop.engines.vllm.environment import VARIABLE

PLACES = "import json, sys; print(json.dumps([*sys.version_info[:2], *sys.path]))"


def run_with_torch(script, folder):
    """Return the JSON that a script prints last, given paths and a folder.

    The packages of that environment come after those of this one, so that ranloop
    itself runs on what it is tested with.
    """
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"{VARIABLE} is not set: `.ci/vllm DIR` makes what it should name")
    told = json.loads(subprocess.check_output([python, "-c", PLACES], text=True))
    if tuple(told[:2]) != sys.version_info[:2]:
        pytest.skip(f"{VARIABLE} is of another version of Python: packages do not fit")
    first = [place for place in sys.path if place]
    last = [place for place in told[2:] if place and place not in first]
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(last), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(first), "HF_HUB_OFFLINE": "1"},
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
