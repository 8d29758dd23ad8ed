"""A made task where a better guide exists, another where none does, and a reflector."""

import random
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from loop.core.ledger import Actor, Event, append_event
from loop.core.paths import WorkspacePaths
from loop.core.records import Completion, Guide, Prompt
from loop.engines.base import Settings
from loop.prompts.catalog import write_version
from loop.prompts.guides import dump_guides, parse_guides
from loop.prompts.version import PromptVersion
from tests.review.scenes import EDITOR, WHEN, add_cohort

TINY = PromptVersion(
    name="tiny",
    number=1,
    system=(
        "Read the report. Rely on its words only.\n\nFor each label decide what the "
        "report says of this patient now. A finding that is negated, resolved or not "
        "mentioned is absent. A finding that the report states, or gives unequivocal "
        "evidence for, is present. Anything between the two is uncertain: what is "
        "possible, suspected, or one of several explanations. What was seen in an "
        "earlier examination counts only where the report says that it is still "
        "there. What the referring physician asks about is no finding.\n"
    ),
    user=(
        "{% for guide in guides %}\n{{ guide.label }}: {{ guide.definition }}\n"
        "{% for term in guide.terms %}\n- {{ term }}\n{% endfor %}\n"
        "{% for one in guide.exemplars %}\n- {{ one.text }}: {{ one.value }}\n"
        "{% endfor %}\n{% endfor %}\n{{ text }}\n"
    ),
    guides=(
        Guide(
            label="pleural_effusion",
            name="Pleural Effusion",
            definition="Fluid in the pleural space.",
            terms=("pleural effusion",),
        ),
        Guide(
            label="cardiomegaly",
            name="Cardiomegaly",
            definition="The heart is enlarged.",
            terms=("cardiomegaly",),
        ),
    ),
    author=EDITOR.name,
    time="2026-01-05T09:00:00Z",
    why="a start",
)

SYNONYMS = ("hydrothorax", "blunted angle", "meniscus sign")
"""What the first guide does not know as an effusion."""

_OTHERS = ("clear lungs", "old rib fracture", "hilar shadow", "aortic knob", "scar")
_WORDS = ("quokka", "wombat", "numbat", "bilby", "potoroo", "dunnart", "quoll", "emu")


def improvable_cases(
    count: int = 150, seed: int = 1
) -> list[tuple[str, str, int, int]]:
    """Return cases whose effusions mostly go by another name than the guide's."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        present, heart = rng.random() < 0.4, rng.random() < 0.2
        name = rng.choice(("pleural effusion", *SYNONYMS)) if present else ""
        found = name or rng.choice(_OTHERS)
        size = rng.choice(("small", "large", "moderate"))
        more = " Cardiomegaly." if heart else ""
        text = f"There is a {size} {found}, film {number}.{more}"
        rows.append((f"c{number}", text, int(present), int(heart)))
    return rows


def random_cases(count: int = 120, seed: int = 1) -> list[tuple[str, str, int, int]]:
    """Return cases whose labels have nothing to do with what their texts say."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        said = rng.sample((*_WORDS, "pleural effusion", "cardiomegaly"), 3)
        text = f"Film {number} shows {said[0]}. There is {said[1]}. Also {said[2]}."
        present, heart = rng.random() < 0.4, rng.random() < 0.3
        rows.append((f"r{number}", text, int(present), int(heart)))
    return rows


def make_task(workspace: WorkspacePaths, folder, rows, *, name="dev", version=TINY):
    """Write the prompt and import the cohort."""
    if not (workspace.prompts / version.name).exists():
        write_version(workspace, version)
        event = Event(
            action="draft_committed",
            subject=version.ref,
            reason="a start",
            payload={"digest": version.digest},
        )
        append_event(workspace.ledger, event, EDITOR, now=lambda: WHEN)
    add_cohort(workspace, folder, rows, name=name)
    return workspace


@dataclass
class Notes:
    """Remembers in memory what a search's journal keeps in a file."""

    kept: dict[tuple[str, str], object] = field(default_factory=dict)

    def recall(self, kind: str, key: str) -> object | None:
        """Return what was remembered."""
        return self.kept.get((kind, key))

    def remember(self, kind: str, key: str, value: object) -> None:
        """Keep it."""
        self.kept[kind, key] = value


_GUIDE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_REPORT = re.compile(r"## Report\n(.*?)\n\n## Answer about \w+\n(.*?)\n", re.DOTALL)
_NOUNS = re.compile(r"\b(?:is a \w+|shows|is|Also) ([a-z]+(?: [a-z]+)?)")


def propose_term(question: str) -> str:
    """Return the guide of a question with one more term of a report that it missed.

    The same question gives the same answer, whatever was asked before.
    """
    written = _GUIDE.search(question)
    if written is None:
        return _propose_blindly(question)
    (guide,) = parse_guides(written[1], "the question")
    for report, told in _REPORT.findall(question):
        if "right is present" not in told:
            continue
        for noun in _NOUNS.findall(report):
            if noun not in guide.terms and noun not in guide.exclusions:
                better = replace(guide, terms=(*guide.terms, noun))
                return f"I see.\n```yaml\n{dump_guides([better])}```"
    for report, told in _REPORT.findall(question):
        for noun in _NOUNS.findall(report) if "right is absent" in told else ():
            if noun in guide.terms and len(guide.terms) > 1:
                kept = tuple(term for term in guide.terms if term != noun)
                return f"```yaml\n{dump_guides([replace(guide, terms=kept)])}```"
    return f"```yaml\n{written[1]}```"


def _propose_blindly(question: str) -> str:
    """Return the guide of a question that shows no case, with names it may go by.

    What is proposed depends on the question alone, among others on DSPy's tip.
    """
    text = question.rpartition("## basic_instruction\n")[2].partition("\n\n## ")[0]
    (guide,) = parse_guides(text.strip() + "\n", "the question")
    chance = random.Random(zlib.crc32(question.encode()))
    if guide.label != "pleural_effusion":
        return text
    names = chance.sample((*SYNONYMS, _OTHERS[0]), 3)
    return dump_guides([replace(guide, terms=(*guide.terms, *names))])


class StubReflector:
    """An engine that proposes by `propose_term`, and keeps what it was asked."""

    asked: tuple[str, ...] = ()
    said: str = ""
    """Answer in the place of a proposal; empty for a proposal."""

    broken: Completion | None = None
    """What comes back instead of any answer."""

    def __init__(self, rest: str, settings: Settings) -> None:
        """Take what the registry gives an engine."""

    def identity(self) -> Mapping[str, object]:
        """Return what it is."""
        return {"engine": "stub"}

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield a proposal for each question."""
        kind = type(self)
        for index, prompt in enumerate(prompts):
            question = prompt.messages[-1].content
            kind.asked = (*kind.asked, question)
            if kind.broken is not None:
                yield index, kind.broken
            else:
                yield index, Completion(kind.said or propose_term(question))


ACTOR = Actor(name="Dr A. Example")
