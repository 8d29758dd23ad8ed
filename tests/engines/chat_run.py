"""A run of numbered cases through the chat engine; a process of its own if started.

``python -m tests.engines.chat_run STORE URL CASES [SERVING]``, with the serving
settings as JSON, prints the summary, the engine's account and the peak memory as JSON.
"""

import json
import resource
import sys
from pathlib import Path
from random import Random

from loop.core.config import Config, ServingSettings
from loop.core.records import Item, Message, Prompt, PromptFrame
from loop.engines.base import Settings
from loop.engines.openai.client import Endpoint
from loop.engines.openai.engine import ChatEngine
from loop.prompts.outputs.label_values import LabelValues
from loop.run.asking import opened
from loop.run.execute import Work, execute
from loop.run.spec import RunSpec
from loop.run.store import Store
from tests.servers.fault_server import LABELS, text_of

KEY = "sk-this-key-must-stay-secret"

FRAME = PromptFrame(
    call="joint",
    messages=(
        Message("system", "Say of each label whether the case shows it."),
        Message("user", "Case: "),
    ),
    fields=LABELS,
    schema=LabelValues().schema(LABELS),
)

SPEC = RunSpec(
    prompt="extractor@v1",
    prompt_digest="a" * 64,
    contract="label_values/1",
    cohort="dev",
    cohort_digest="b" * 64,
    engine="openai:tiny",
)


class Hasty(Random):
    """Draws that are all small: waiting with jitter takes no time."""

    def uniform(self, a, b):
        """Return a number in the first fiftieth of the range."""
        return a + (b - a) * self.random() / 50


def make_engine(url, *, model="tiny", tell=lambda remark: None, rng=None, **serving):
    """Return the engine for `url`, not yet entered."""
    endpoint = Endpoint(
        url=url, model=model, serving=ServingSettings(**serving), key=KEY
    )
    settings = Settings(
        labels=Path("labels"), config=Config(), max_tokens=256, tell=tell
    )
    return ChatEngine("openai", endpoint, settings, rng=rng or Hasty())


def make_work(cases):
    """Return the work of asking each of the numbered `cases` once."""
    return Work(
        items=(Item(id=f"c{n:06}", variables={"text": text_of(n)}) for n in cases),
        plan=lambda item: (
            Prompt(frame=FRAME, tail=item.variables["text"], item=item),
        ),
        contract=LabelValues(),
    )


def run_cases(engine, store, cases):
    """Run the numbered `cases` through `engine`; return summary and account."""
    with opened(engine):
        summary = execute(SPEC, make_work(cases), engine, store)
        return summary, engine.account()


def main():
    """Run and print what happened."""
    path, url, count, *rest = sys.argv[1:]
    store = Store(Path(path))
    engine = make_engine(url, **json.loads(rest[0] if rest else "{}"))
    summary, account = run_cases(engine, store, range(int(count)))
    store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([summary._asdict(), account, peak * 1024]))


if __name__ == "__main__":
    main()
