"""Searches in a process of its own that kills itself at the n-th question.

``python search_process.py WORKSPACE LOG KILL_AT OPTIMIZER``: each question is noted in
LOG before it is answered.
"""

import os
import signal
import sys
from hashlib import sha256
from pathlib import Path

from loop.core.paths import WorkspacePaths
from loop.engines import base
from loop.optimize.search import search_prompt
from loop.optimize.search_report import Optimizer, SearchRequest
from tests.optimize.made_task import ACTOR, StubReflector


def main():
    """Search until the question at which it dies."""
    root, log, kill_at, optimizer = sys.argv[1:]
    answered = StubReflector.complete

    def complete(self, prompts):
        for number, completion in answered(self, prompts):
            asked = len(StubReflector.asked)
            with open(log, "a", encoding="utf-8") as stream:
                question = StubReflector.asked[-1].encode()
                stream.write(sha256(question).hexdigest() + "\n")
            if asked == int(kill_at):
                os.kill(os.getpid(), signal.SIGKILL)
            yield number, completion

    StubReflector.complete = complete
    base._FACTORIES["stub"] = StubReflector
    request = SearchRequest(
        prompt="tiny",
        cohort="dev",
        optimizer=Optimizer(optimizer),
        reflect="stub:any",
        budget=120,
        splits=3,
    )
    search_prompt(WorkspacePaths(Path(root)), request, ACTOR)


if __name__ == "__main__":
    main()
