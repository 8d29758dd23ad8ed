"""Templates to prompts: rendered once, then every case is one concatenation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from jinja2 import StrictUndefined, Template, TemplateError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from loop.core.errors import DataError
from loop.core.numbered_lines import number_lines
from loop.core.records import Guide, Item, Message, Prompt, PromptFrame, Reading
from loop.core.safe_text import quoted
from loop.prompts.outputs.base import CONTRACTS, Contract, get_contract
from loop.prompts.outputs.rubric_rating import POINTS, Rating
from loop.prompts.shot_records import BLOCK, Shot
from loop.prompts.stages import STAGES, stage_item
from loop.prompts.version import CallPlan, PromptVersion

SchemaOf = Callable[[Sequence[str]], Mapping[str, object]]
"""Answer fields to the JSON schema of the answer."""

_BLANK = re.compile(r"\n[ \t]*\n")
_BREAK = re.compile(r"\n")

# What a template can raise while it runs, besides Jinja's own errors.
_RUNTIME = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


CONTEXT = "context"
"""Input that an item need not have: what is known of the patient of a pair."""

NUMBERED = "numbered"
"""The filter that puts each sentence of an input into a numbered line."""


@cache
def environment() -> ImmutableSandboxedEnvironment:
    """Return the sandbox all templates run in.

    ``keep_trailing_newline``: what is hashed is exactly what the model receives.
    No autoescape: the output is a prompt, not HTML.
    """
    made = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    # A template is rendered with marks in place of its inputs, which stay as they are:
    # the call numbers the lines when a case is put in.
    made.filters[NUMBERED] = str
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a plan: its static frame and how a case completes it."""

    frame: PromptFrame
    """Everything up to where the first input begins."""

    pieces: tuple[tuple[str, str], ...]
    """(input name, static text after it), in order."""

    numbered: frozenset[str] = frozenset()
    """Inputs that are put in as numbered lines; see `loop.core.numbered_lines`."""

    def put_in(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the texts of an item as they stand in its prompt.

        Context that an item does not have is empty there.

        Raises
        ------
        KeyError
            An input that is numbered is missing.
        """
        if self.reads_context and CONTEXT not in variables:
            variables = {**variables, CONTEXT: ""}
        if not self.numbered:
            return variables
        lines = {name: number_lines(variables[name]) for name in self.numbered}
        return {**variables, **lines}

    @property
    def reads_context(self) -> bool:
        """Whether it has a place for what is known of the patient, if anything is."""
        return any(name == CONTEXT for name, _ in self.pieces)

    def prompt(self, item: Item) -> Prompt:
        """Return the prompt for one item; its texts are never template source."""
        variables = item.variables
        try:
            if len(self.pieces) == 1 and not self.numbered:
                ((name, after),) = self.pieces
                tail = variables[name] + after
            else:
                variables = self.put_in(variables)
                tail = "".join(variables[name] + after for name, after in self.pieces)
        except KeyError as error:
            if error.args[0] in STAGES:
                raise DataError(
                    f"the input {quoted(error.args[0])} is what another prompt finds, "
                    "and the version reads none that makes it: name one under `reads` "
                    "in its prompt.yaml, with the contract "
                    f"{STAGES[error.args[0]].contracts[0]}."
                ) from error
            raise DataError(
                f"case {item.id} has no variable {quoted(error.args[0])}, which the "
                "prompt needs. Import the cohort again with that column."
            ) from error
        return Prompt(frame=self.frame, tail=tail, item=item)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCall:
    """A call of the first stage: its answer becomes an input of the calls after it."""

    name: str
    """Of the input; see `loop.prompts.stages.STAGES`."""

    call: Call
    contract: Contract
    """Reads its answer."""

    def prompt(self, item: Item) -> Prompt:
        """Return the prompt about the texts of `item` that the input is made from."""
        return self.call.prompt(stage_item(self.name, item))

    def read(self, text: str, asked: Item) -> Reading:
        """Return what the answer to a prompt about `asked` says."""
        return self.contract.read(text, self.call.frame.fields, asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPlan:
    """All calls of one prompt version; calling it with an item gives its prompts."""

    calls: tuple[Call, ...]

    stages: tuple[StageCall, ...] = ()
    """What is asked first, in the order of the inputs; of most versions nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all calls about an item, in the order of their keys."""
        own = [call.frame.call for call in self.calls]
        return (*(stage.name for stage in self.stages), *own)

    @property
    def frames(self) -> tuple[PromptFrame, ...]:
        """The static frames, in call order."""
        return tuple(call.frame for call in self.calls)

    @property
    def suffix_length(self) -> int:
        """Most characters of static text that follow the last input."""
        return max(len(call.pieces[-1][1]) for call in self.calls)

    def __call__(self, item: Item) -> tuple[Prompt, ...]:
        """Return the prompts of one item, in call order."""
        return tuple([call.prompt(item) for call in self.calls])


def plan_prompts(version: PromptVersion, schema: SchemaOf) -> PromptPlan:
    """Return the calls of `version`, with everything static rendered.

    Templates see ``guides`` (records of the call), ``fields`` (label ids), ``name``
    (of the prompt), ``shots`` (records of `loop.prompts.shot_records`) and, in the user
    template only, its inputs. Shots that neither template inserts stand before the user
    message, as `BLOCK` there has them. Each input must be inserted as it stands
    (``{{ text }}``), or its sentences as numbered lines (``{{ text | numbered }}``),
    exactly once and in the order declared: the rendered template is then cut at the
    inputs, and a case is put between the pieces without running Jinja on it.

    Parameters
    ----------
    schema
        Gives the JSON schema for the fields of a call; from the output contract.

    Raises
    ------
    DataError
        The version asks for nothing, its shots were not looked up, or a template cannot
        be rendered; names the template and says what to change.
    """
    if not version.guides:
        raise DataError(
            f"{version.ref} has no guides, so it asks for nothing. Add a guide to its "
            "guides.yaml."
        )
    if version.shots and not version.shown:
        raise DataError(
            f"{version.ref} shows examples of the pool {quoted(version.shots.pool)}, "
            "and their texts were not looked up. Ask by `ranloop run` or `ranloop "
            "judge`, which look for them."
        )
    check_inputs(version)
    stages = tuple(_stage_calls(version))
    if version.plan is CallPlan.JOINT:
        calls = (_call(version, "joint", version.guides, schema),)
        return PromptPlan(calls=calls, stages=stages)
    return PromptPlan(
        calls=tuple(
            _call(version, guide.label, (guide,), schema) for guide in version.guides
        ),
        stages=stages,
    )


def _stage_calls(version: PromptVersion) -> Iterator[StageCall]:
    """Yield the call that makes each input, of the versions that were looked up."""
    for name in version.inputs:
        if name not in STAGES or not version.stages:
            continue
        makers = [
            one for one in version.stages if one.contract in STAGES[name].contracts
        ]
        if len(makers) != 1:
            raise DataError(
                f"{version.ref} reads {len(makers)} versions that make its input "
                f"{name}, and takes one. Correct `reads` in its prompt.yaml."
            )
        contract = get_contract(makers[0].contract)
        calls = plan_prompts(makers[0], contract.schema).calls
        if len(calls) != 1 or set(makers[0].inputs) != set(STAGES[name].texts):
            raise DataError(
                f"{makers[0].ref} cannot make the input {name} of {version.ref}: it "
                f"takes a version that reads {' and '.join(STAGES[name].texts)} in one "
                "call. Name another one under `reads` in its prompt.yaml."
            )
        frame = replace(calls[0].frame, call=name)
        yield StageCall(
            name=name, call=replace(calls[0], frame=frame), contract=contract
        )


def space_out(plan: PromptPlan, lines: int, blank: str = "") -> PromptPlan:
    """Return `plan` with `lines` more blank lines wherever it has a blank line.

    What is asked stays the same, and the words that ask it. A model at temperature 0
    answers the same prompt nearly alike each time, and its borderline cases otherwise
    as soon as the prompt is another: so this shows how far an answer hangs on chance.
    Where a prompt has no blank line, every line break counts as one.

    Parameters
    ----------
    blank
        White space that each line more holds: what differs in it is another prompt.

    References
    ----------
    Sclar M et al. Quantifying language models' sensitivity to spurious features in
    prompt design. ICLR 2024.
    """
    more = f"{blank}\n" * lines
    return PromptPlan(
        calls=tuple(_space_call(call, more) for call in plan.calls),
        stages=tuple(
            replace(stage, call=_space_call(stage.call, more)) for stage in plan.stages
        ),
    )


def _space_call(call: Call, more: str) -> Call:
    messages = call.frame.messages
    paragraphs = any(_BLANK.search(one.content) for one in messages)
    blank = _BLANK if paragraphs else _BREAK
    return replace(
        call,
        frame=replace(
            call.frame,
            messages=tuple(
                Message(one.role, blank.sub(lambda at: at[0] + more, one.content))
                for one in messages
            ),
        ),
    )


def _call(
    version: PromptVersion, name: str, guides: tuple[Guide, ...], schema: SchemaOf
) -> Call:
    fields = tuple(guide.label for guide in guides)
    shared: dict[str, object] = {
        "guides": guides,
        "fields": fields,
        "name": version.name,
        "shots": version.shown,
    }
    marks = _marks(version.inputs, version.shown)
    system = _render(version, "system.jinja", version.system, shared)
    user = _render(version, "user.jinja", version.user, shared | marks)
    first, pieces = _cut(version, user, marks)
    if version.shown and not _inserts_shots(version):
        lowest, highest = _score_scale(version)
        block = _compiled(BLOCK).render(
            shots=version.shown, lowest=lowest, highest=highest
        )
        first = block + first
    return Call(
        frame=PromptFrame(
            call=name,
            messages=(Message("system", system), Message("user", first)),
            fields=fields,
            schema=schema(fields),
            guides=guides,
            reads=version.finders,
        ),
        pieces=pieces,
        numbered=_inserted(version)[1],
    )


def _marks(inputs: Sequence[str], shots: Sequence[Shot]) -> dict[str, str]:
    """Return what stands for each input until the template is cut there.

    It is in no text of a shot: those are data, whatever they hold.
    """
    sign = "\ue000"
    while any(sign in text for shot in shots for text in shot.texts):
        sign += "\ue000"
    return {name: f"{sign}{name}\ue001" for name in inputs}


def _score_scale(version: PromptVersion) -> tuple[int, int]:
    """Return the least and the best score of an answer, on which shots show theirs."""
    if isinstance(CONTRACTS.get(version.contract), Rating):
        return POINTS[0], POINTS[-1]
    return 0, 1


def _inserts_shots(version: PromptVersion) -> bool:
    """Whether a template of the version says itself where its shots stand."""
    sources = {"system.jinja": version.system, "user.jinja": version.user}
    for file, source in sources.items():
        _parse(version, file, source)
    return any("shots" in _undeclared(source) for source in sources.values())


def _render(
    version: PromptVersion, file: str, source: str, values: Mapping[str, object]
) -> str:
    """Render one template; a failure names the template and what Jinja said."""
    try:
        return _compiled(source).render(values)
    except (TemplateError, *_RUNTIME) as error:
        line = getattr(error, "lineno", None)
        where = f"{file}, line {line}" if line else file
        raise DataError(
            f"{version.ref}, {where}: {type(error).__name__}: {error}. A template may "
            f"use {', '.join(values)} and nothing else; see `ranloop lint "
            f"{version.ref}`."
        ) from error


@lru_cache(maxsize=64)
def _compiled(source: str) -> Template:
    """Return a template, compiled once: a plan renders it for each of its calls."""
    return environment().from_string(source)


def _cut(
    version: PromptVersion, text: str, marks: Mapping[str, str]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Cut the rendered user message at its inputs."""
    first = ""
    pieces: list[tuple[str, str]] = []
    rest = text
    for name, mark in marks.items():
        before, found, rest = rest.partition(mark)
        if not found or mark in rest:
            raise DataError(
                f"{version.ref}, user.jinja: {{{{ {name} }}}} must be rendered exactly "
                f"once, inputs in the order {', '.join(marks)}. Move it out of loops "
                "and conditions, to the end of the template."
            )
        if pieces:
            pieces[-1] = (pieces[-1][0], before)
        else:
            first = before
        pieces.append((name, ""))
    pieces[-1] = (pieces[-1][0], rest)
    return first, tuple(pieces)


def check_inputs(version: PromptVersion) -> None:
    """Check that inputs are inserted as they stand, or numbered, and steer nothing.

    Raises
    ------
    DataError
        An input is filtered otherwise, tested, looped over or assigned, or is inserted
        as it stands in one place and numbered in another.
    """
    plain, numbered = _inserted(version)
    if both := plain & numbered:
        raise DataError(
            f"{version.ref}, user.jinja: {' and '.join(sorted(both))} is inserted as "
            "it stands in one place and numbered in another. Choose one: an input is "
            "inserted once."
        )


def _inserted(version: PromptVersion) -> tuple[frozenset[str], frozenset[str]]:
    """Return the inputs that are inserted as they stand, and those numbered."""
    tree = _parse(version, "user.jinja", version.user)
    names: tuple[list[str], list[str]] = [], []
    for output in tree.find_all(nodes.Output):
        for child in output.nodes:
            inner, kind = child, 0
            if (
                isinstance(child, nodes.Filter)
                and child.name == NUMBERED
                and not (child.args or child.kwargs or child.dyn_args)
                and child.node is not None
            ):
                inner, kind = child.node, 1
            if isinstance(inner, nodes.Name) and inner.name in version.inputs:
                names[kind].append(inner.name)
    used = sum(name.name in version.inputs for name in tree.find_all(nodes.Name))
    if used != sum(map(len, names)):
        raise DataError(
            f"{version.ref}, user.jinja: {' and '.join(version.inputs)} may only be "
            "inserted as it stands, like {{ text }}. Remove the filter, test or "
            "condition: the same frame must serve every case."
        )
    return frozenset(names[0]), frozenset(names[1])


@lru_cache(maxsize=64)
def _tree(source: str) -> nodes.Template:
    """Return a parsed template; a search renders hundreds of versions that share it."""
    return environment().parse(source)


@lru_cache(maxsize=64)
def _undeclared(source: str) -> frozenset[str]:
    """Return the variables that a template asks for."""
    # Not in `_tree`: Jinja folds constants in the tree that it looks through.
    return frozenset(meta.find_undeclared_variables(environment().parse(source)))


def _parse(version: PromptVersion, file: str, source: str) -> nodes.Template:
    try:
        return _tree(source)
    except TemplateError as error:
        line = getattr(error, "lineno", "?")
        raise DataError(
            f"{version.ref}, {file}, line {line}: {error}. Correct the template."
        ) from error
