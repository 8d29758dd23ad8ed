"""A model for tests that writes errors into reports: FOLDER LOG PAUSE starts one.

Every prompt is logged before it is answered; that after PAUSE others is never answered.
"""

import json
import os
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

from loop.core.paths import WorkspacePaths
from loop.core.records import Completion
from loop.engines import base
from loop.judge.injection.inject import InjectionOptions, inject_by_model
from loop.judge.injection.model_injection import ErrorWriter

REPORTS = {
    "a": "The heart is mildly enlarged. There is a small left pleural effusion. "
    "No pneumothorax.",
    "b": "Clear lungs. There is a 12 mm nodule in the right upper lobe. Heart size is "
    "normal.",
    "c": "Severe pulmonary edema. Moderate right effusion. No pneumothorax.",
}


def sentences(text):
    """Return the sentences of a report of `REPORTS`."""
    return [f"{one.rstrip('.')}." for one in text.split(". ")]


def answer(text, *changes, report=None):
    """Return an answer that states changes: (number, original, modified)."""
    told = [
        {
            "sentence_index": number,
            "original": original,
            "modified": modified,
            "explanation": "e",
            "severity": "major",
            "harm_potential": "h",
        }
        for number, original, modified in changes
    ]
    if report is None:
        parts = sentences(text)
        for number, original, modified in changes:
            parts[number] = parts[number].replace(original, modified)
        report = " ".join(one for one in parts if one)
    return json.dumps({"modified_report": report, "changes_detail": told})


def omit(text, number=1):
    """Return a right answer that leaves out the last sentences but for the first."""
    parts = sentences(text)
    return answer(text, *((place, parts[place], "") for place in range(1, number + 1)))


class WritingModel:
    """Answers by the kind that is asked for; remembers how often each was asked."""

    def __init__(self, write=None, plausible=None):
        """Take what is written, from (text, kind, number, attempt), and called so."""
        self.write = write or (lambda text, kind, number, attempt: omit(text, number))
        self.plausible = plausible or (lambda inputs, attempt: True)
        self.asked = Counter()

    def identity(self):
        """Return a name."""
        return {"engine": "writing"}

    @property
    def retry_unreadable(self):
        """Never: what is refused is asked for in another draw."""
        return 0

    def redraw(self, draw):
        """Return itself: its chance is what the test says."""
        return self

    def answer(self, prompt):
        """Return the answer to one prompt."""
        inputs, (field,) = prompt.item.variables, prompt.frame.fields
        key = (field, inputs["text"], inputs.get("number", inputs.get("changes")))
        self.asked[key] += 1
        if field == "plausible":
            said = self.plausible(inputs, self.asked[key])
            reason = "ok" if said else "not possible"
            return json.dumps({"plausible": said, "reason": reason})
        return self.write(inputs["text"], field, int(inputs["number"]), self.asked[key])

    def complete(self, prompts):
        """Yield the answers in order."""
        for index, prompt in enumerate(prompts):
            given = self.answer(prompt)
            known = isinstance(given, Completion)
            yield index, given if known else Completion(given)


class LoggedWriting(WritingModel):
    """Writes down each prompt before it is answered, and may stop at one."""

    def __init__(self, log, pause):
        """Open the log for appending."""
        super().__init__()
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.pause, self.numbers = pause, count()

    def answer(self, prompt):
        """Log, and answer unless it pauses; the first answer about `b` is refused."""
        inputs = prompt.item.variables
        words = [prompt.messages[-1].content, *inputs.values()]
        os.write(self.log, (json.dumps(words) + "\n").encode())
        if next(self.numbers) == self.pause:
            time.sleep(600)
        # A later draw has more blank lines between its paragraphs.
        first = "\n\n\n" not in words[0]
        if first and "number" in inputs and inputs["text"] == REPORTS["b"]:
            return "I cannot."
        return super().answer(prompt)


def main():
    """Inject, and print what came of it as JSON."""
    folder, log, pause = sys.argv[1:]
    model = LoggedWriting(log, int(pause))
    base._FACTORIES["writing"] = lambda name, settings: model
    place = WorkspacePaths(Path(folder))
    options = InjectionOptions(errors="b", numbers=(1, 2))
    with ErrorWriter.open(place, options.written, "writing") as writer:
        made = inject_by_model(REPORTS, writer, options)
    told = [[one.id, one.candidate] for one in made.pairs]
    print(json.dumps([made.model.asked, made.model.cached, told]))


if __name__ == "__main__":
    main()
