"""A judge in two stages for tests: FOLDER LOG PAUSE starts one to kill.

Every prompt is logged before it is answered; that after PAUSE others is never answered.
"""

import json
import os
import sys
import time
from itertools import count
from pathlib import Path

from loop.core.numbered_phrases import SIDES, split_phrases
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Guide
from loop.engines import base
from loop.prompts.version import CallPlan, NamedVersion, PromptVersion
from loop.run.runner import PromptRunner, RunnerOptions

CANDIDATES = 40

PHRASES = PromptVersion(
    name="phrases",
    number=1,
    system="Take a report apart.\n",
    user="{% for guide in guides %}{{ guide.definition }}\n{% endfor %}\n"
    "Report:\n{{ text }}\n",
    guides=(Guide(label="phrases", name="Phrases", definition="Each finding."),),
    contract="phrases",
    inputs=("text",),
)

ENTAILED = PromptVersion(
    name="entailed",
    number=1,
    system="Compare phrases.\n",
    user="{% for guide in guides %}{{ guide.label }}: {{ guide.definition }}\n"
    "{% endfor %}\nReference:\n{{ reference_phrases }}\nCandidate:\n"
    "{{ candidate_phrases }}\n",
    guides=tuple(
        Guide(label=one, name=one, definition="Which are entailed?") for one in SIDES
    ),
    contract="entailment",
    plan=CallPlan.PER_LABEL,
    inputs=("reference_phrases", "candidate_phrases"),
    reads=(NamedVersion(PHRASES.ref, PHRASES.digest),),
    stages=(PHRASES,),
)


def take_apart(text):
    """Return what a right first stage answers: the words between full stops."""
    return json.dumps(
        {"phrases": [one.strip() for one in text.split(".") if one.strip()]}
    )


def entail(field, inputs):
    """Return what a right second stage answers: the same words entail each other."""
    held, against = (split_phrases(inputs[name]) for name in SIDES[field])
    said = [
        {
            "phrase": place,
            "entailed": one in against,
            "evidence": [against.index(one)] if one in against else [],
        }
        for place, one in enumerate(held)
    ]
    return json.dumps({"phrases": said})


class StagedAnswers:
    """Answers right, and remembers what it was asked: call, then the text or pair."""

    def __init__(self, table=None):
        """Begin; a table has other answers, by call or by (call, text)."""
        self.table = table or {}
        self.asked = []

    def identity(self):
        """Return a name."""
        return {"engine": "staged"}

    def answer(self, prompt):
        """Return the answer to one prompt."""
        call, inputs = prompt.frame.call, prompt.item.variables
        found = self.table.get((call, inputs.get("text")), self.table.get(call))
        if found is not None:
            return found
        if call in SIDES:
            return entail(call, inputs)
        return take_apart(inputs["text"])

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            self.asked.append((prompt.frame.call, prompt.item.variables.get("text")))
            answer = self.answer(prompt)
            yield (
                index,
                answer if isinstance(answer, Completion) else Completion(answer),
            )


class LoggedStages(StagedAnswers):
    """Writes down each prompt before it is answered, and may stop at one."""

    def __init__(self, log, pause):
        """Open the log for appending."""
        super().__init__()
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.pause = pause

    def complete(self, prompts):
        """Log, and answer unless it pauses."""
        numbers = count()
        for index, prompt in enumerate(prompts):
            words = [prompt.frame.call, *prompt.item.variables.values()]
            os.write(self.log, (json.dumps(words) + "\n").encode())
            if next(numbers) == self.pause:
                time.sleep(600)
            yield index, Completion(self.answer(prompt))


def pairs(number=CANDIDATES):
    """Return candidates of one reference; the n-th lacks the n-th of its phrases."""
    phrases = [f"finding {place}" for place in range(number)]
    return [
        {
            "reference": ". ".join(phrases) + ".",
            "candidate": ". ".join(one for one in phrases if one != left_out) + ".",
        }
        for left_out in phrases
    ]


def main():
    """Judge, and print what came of it as JSON."""
    folder, log, pause = sys.argv[1:]
    base._FACTORIES["staged"] = lambda name, settings: LoggedStages(log, int(pause))
    options = RunnerOptions(folder="judge", fields=tuple(SIDES), about="reference")
    place = WorkspacePaths(Path(folder))
    with PromptRunner.open(place, ENTAILED, "staged", options=options) as runner:
        texts = pairs()
        found = runner.ask(texts, ["en"] * len(texts))
    values = [one and one.values for one in found.answers]
    print(json.dumps([found.asked, found.cached, found.answered, values]))


if __name__ == "__main__":
    main()
