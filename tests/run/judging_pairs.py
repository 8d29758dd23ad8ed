"""A judge of numbered pairs for tests: FOLDER LOG PAIRS PAUSE starts one to kill.

Every prompt is logged before it is answered; that after PAUSE others is never answered.
"""

import json
import os
import sys
import time
from itertools import count
from pathlib import Path

from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Guide
from loop.engines import base
from loop.prompts.version import PromptVersion
from loop.run.runner import PromptRunner, RunnerOptions

CATEGORIES = ("false_finding", "omission", "location")


def make_judge(**changes):
    """Return a version that judges pairs."""
    values = {
        "name": "tiny_judge",
        "number": 1,
        "system": "You compare reports.\n",
        "user": "{% for guide in guides %}{{ guide.label }}: {{ guide.definition }}\n"
        "{% endfor %}\nReference:\n{{ reference }}\nCandidate:\n{{ candidate }}\n",
        "guides": tuple(
            Guide(label=one, name=one, definition="What it is.") for one in CATEGORIES
        ),
        "contract": "error_list",
        "inputs": ("reference", "candidate"),
    }
    return PromptVersion(**{**values, **changes})


def make_pair(number):
    """Return a pair whose candidate leaves out as many words as it says, 0 to 2."""
    return {
        "reference": f"Small effusion, examination {number}.",
        "candidate": f"Normal, {number % 3} left out.",
    }


def answer(pair):
    """Return what a right judge says of a pair of `make_pair`."""
    _, said = pair["candidate"].split(", ")
    left_out = ("Small effusion", "examination")[: int(said[0])]
    errors = [
        {
            "category": "omission",
            "significant": True,
            "reference": words,
            "candidate": "",
            "why": "It is not mentioned.",
        }
        for words in left_out
    ]
    return json.dumps({"errors": errors, "matched_findings": 1})


def open_judge(place, engine, folder="judge", version=None, **options):
    """Open a runner that gives back the number of significant omissions of a pair."""
    given = RunnerOptions(folder=folder, fields=("significant.omission",), **options)
    return PromptRunner.open(place, version or make_judge(), engine, options=given)


def omissions(found):
    """Return the number that came back about each pair; None where none did."""
    return [one and one.values[0] for one in found.answers]


class LoggingJudge:
    """Answers pairs of `make_pair`, and writes down which it was asked about."""

    def __init__(self, log, pause):
        """Open the log for appending."""
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.pause = pause

    def identity(self):
        """Return a name."""
        return {"engine": "logging"}

    def complete(self, prompts):
        """Log, and answer unless it pauses."""
        numbers = count()
        for index, prompt in enumerate(prompts):
            os.write(self.log, f"{prompt.item.id}\n".encode())
            if next(numbers) == self.pause:
                time.sleep(600)
            yield index, Completion(answer(prompt.item.variables))


def main():
    """Judge, and print what came of it as JSON."""
    folder, log, pairs, pause = sys.argv[1:]
    base._FACTORIES["logging"] = lambda name, settings: LoggingJudge(log, int(pause))
    place = WorkspacePaths(Path(folder))
    with open_judge(place, "logging") as runner:
        texts = [make_pair(number) for number in range(int(pairs))]
        found = runner.ask(texts, ["en"] * len(texts))
    print(json.dumps([found.asked, found.cached, found.answered, omissions(found)]))


if __name__ == "__main__":
    main()
