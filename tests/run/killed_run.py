"""A run with a slow engine, for a test to kill: STORE LOG ITEMS DELAY_S.

Every prompt is logged, fsynced, before it is answered.
"""

import json
import os
import sys
import time
from pathlib import Path

from loop.core.records import Completion, Item, Message, Prompt, PromptFrame
from loop.prompts.outputs.label_values import LabelValues
from loop.run.execute import Work, execute
from loop.run.spec import RunSpec
from loop.run.store import Store

FRAME = PromptFrame(
    call="joint",
    messages=(Message("user", "Text: "),),
    fields=("edema",),
    schema=LabelValues().schema(("edema",)),
)


class SlowEngine:
    """Takes its time, like a model on a busy server."""

    def __init__(self, log, delay):
        """Open the log for appending."""
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.delay = delay

    def identity(self):
        """Return a name."""
        return {"engine": "slow"}

    def complete(self, prompts):
        """Log, wait, answer."""
        for index, prompt in enumerate(prompts):
            os.write(self.log, f"{prompt.item.id}\n".encode())
            time.sleep(self.delay)
            yield index, Completion('{"edema":{"value":"absent"}}')


def main():
    """Run and print the summary as JSON."""
    path, log, count, delay = sys.argv[1:]
    items = [
        Item(id=f"c{number}", variables={"text": f"text {number}"})
        for number in range(int(count))
    ]
    spec = RunSpec(
        prompt="extractor@v1",
        prompt_digest="a" * 64,
        contract="label_values/1",
        cohort="dev",
        cohort_digest="b" * 64,
        engine="slow",
    )
    work = Work(
        items=items,
        plan=lambda item: (
            Prompt(frame=FRAME, tail=item.variables["text"], item=item),
        ),
        contract=LabelValues(),
    )
    store = Store(Path(path))
    summary = execute(spec, work, SlowEngine(log, float(delay)), store)
    store.close()
    print(json.dumps(summary._asdict()))


if __name__ == "__main__":
    main()
