"""The engine for judges' prompts: errors and matched findings of a pair, as JSON.

It answers the JSON forms of judges whose answer is errors or counts, by the guides of
the extractor that the judge's version reads, and says so where it cannot. It is no
language model: of the prompt it reads which categories are asked for, and the
clarifications of their guides (`loop.engines.rules.rulings`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from loop.core.errors import EngineError
from loop.core.numbered_phrases import SIDES, split_phrases
from loop.core.records import Completion, Prompt, PromptFrame, Span
from loop.engines.rules.cues import Cues
from loop.engines.rules.judging import (
    JUDGING_REVISION,
    JudgedPair,
    PairError,
    judge_answer,
)
from loop.engines.rules.phrase_answers import entail_phrases, list_phrases
from loop.engines.rules.report_findings import FindingReader
from loop.engines.rules.rulings import Rulings
from loop.engines.rules.weights import JudgingData

_TEXTS: Final = ("reference", "candidate")


class JudgingEngine:
    """Judges pairs of reports in the language of its data.

    Parameters
    ----------
    cues
        Assertion cues, as for the extractor.
    data
        What findings and errors are worth.
    revision
        Of the rules that find mentions.
    """

    def __init__(self, cues: Sequence[Cues], data: JudgingData, revision: int) -> None:
        self._cues = tuple(cues)
        self._data = data
        self._revision = revision
        self._readers: dict[int, tuple[PromptFrame, FindingReader, Rulings]] = {}

    @property
    def languages(self) -> Collection[str]:
        """The language of the data, if it has cues."""
        return {self._data.language} & {one.language for one in self._cues}

    def identity(self) -> Mapping[str, object]:
        """Return the revisions, and the digests of cue files and weights."""
        return {
            "engine": "rules",
            "revision": self._revision,
            "cues": {cues.language: cues.digest for cues in self._cues},
            "judging": JUDGING_REVISION,
            "weights": self._data.digest,
        }

    def complete(self, prompts: Iterable[Prompt]) -> Iterator[tuple[int, Completion]]:
        """Yield ``(index, completion)`` in order; see `Engine.complete`."""
        clock = time.perf_counter
        for index, prompt in enumerate(prompts):
            began = clock()
            problem = self._refusal(prompt)
            if not problem:
                try:
                    answer = self._answer(prompt)
                except EngineError as error:
                    problem = str(error)
            if problem:
                yield index, Completion("", finish_reason="error", error=problem)
            else:
                yield index, Completion(answer, latency_s=clock() - began)

    def _refusal(self, prompt: Prompt) -> str:
        """Say why a prompt cannot be answered, or nothing."""
        frame, item = prompt.frame, prompt.item
        if item.language not in self.languages:
            return (
                f"`rules` judges reports in {self._data.language!r} only, and the pair "
                f"is in {item.language!r}. Choose an engine with a model."
            )
        if not frame.schema:
            return (
                "`rules` answers a judge in JSON only, and the contract of this "
                "version is free text: choose one in JSON, or an engine with a model"
            )
        if not {"significant_errors", "errors", "phrases"} & set(_required(frame)):
            return (
                "`rules` gives errors and counts, and the contract of this version "
                "asks for something else: choose an engine with a model"
            )
        if not frame.reads:
            return (
                "the version names no extractor by whose guides `rules` finds what the "
                "texts say: make one with `reads` in its prompt.yaml"
            )
        return ""

    def _answer(self, prompt: Prompt) -> str:
        if "phrases" in _required(prompt.frame):
            return self._answer_phrases(prompt)
        texts = [prompt.item.variables.get(name, "") for name in _TEXTS]
        reader, rulings = self._reader(prompt.frame)
        judged = judge_answer(reader, texts[0], texts[1], rulings)
        asked = frozenset(prompt.frame.fields)
        errors = [one for one in judged.errors if one.category in asked]
        if "errors" in _required(prompt.frame):
            return _list_errors(judged, errors, texts, prompt.frame)
        return _list_sections(judged, errors, texts, prompt.frame.fields)

    def _answer_phrases(self, prompt: Prompt) -> str:
        """Return the phrases of one report, or which of them are entailed."""
        reader, _ = self._reader(prompt.frame)
        inputs, field = prompt.item.variables, prompt.frame.fields[0]
        said: Sequence[object]
        if field in SIDES:
            held, against = (split_phrases(inputs[name]) for name in SIDES[field])
            said = entail_phrases(reader, held, against)
        else:
            said = list_phrases(reader, inputs["text"])
        return json.dumps({"phrases": said}, ensure_ascii=False)

    def _reader(self, frame: PromptFrame) -> tuple[FindingReader, Rulings]:
        """Return the reader of what a frame's judge reads, and what its guides rule.

        Both are kept as long as the frame is.
        """
        known = self._readers.get(id(frame))
        if known is None or known[0] is not frame:
            language = self._data.language
            reader = FindingReader(
                frame.reads, self._cues, self._data, language=language
            )
            known = (frame, reader, Rulings(frame.guides))
            self._readers[id(frame)] = known
        return known[1:]


def _required(frame: PromptFrame) -> Sequence[str]:
    required = frame.schema.get("required")
    return required if isinstance(required, list) else ()


def _quote(span: Span | None, text: str) -> str:
    return "" if span is None else text[span.start : span.end]


def _words(error: PairError, texts: Sequence[str]) -> str:
    """Return what an error is about, in the words of one of the texts."""
    quotes = (
        _quote(error.candidate_span, texts[1]),
        _quote(error.reference_span, texts[0]),
    )
    return next((one for one in quotes if one.strip()), "the whole report")


def _list_sections(
    judged: JudgedPair,
    errors: Sequence[PairError],
    texts: Sequence[str],
    fields: Sequence[str],
) -> str:
    """Return the answer by category, significant errors and others apart."""
    listed = {
        significant: {
            name: [
                _words(one, texts)
                for one in errors
                if one.category == name and one.significant is significant
            ]
            for name in fields
        }
        for significant in (True, False)
    }
    return json.dumps(
        {
            "explanation": _explain(judged, errors),
            "significant_errors": listed[True],
            "insignificant_errors": listed[False],
            "matched_findings": [
                _quote(one.candidate_span, texts[1]) for one in judged.matched
            ],
            "rules_score": judged.score,
        },
        ensure_ascii=False,
    )


def _list_errors(
    judged: JudgedPair,
    errors: Sequence[PairError],
    texts: Sequence[str],
    frame: PromptFrame,
) -> str:
    """Return the answer as a list of errors, with the words of both texts."""
    weighs = "significant" in json.dumps(frame.schema)
    listed = []
    for one in errors:
        said: dict[str, object] = {"category": one.category.value}
        if weighs:
            said["significant"] = one.significant
        said["reference"] = _quote(one.reference_span, texts[0])
        said["candidate"] = _quote(one.candidate_span, texts[1])
        said["why"] = f"{one.category.value}: {one.label or 'by its words'}"
        listed.append(said)
    return json.dumps(
        {
            "errors": listed,
            "matched_findings": len(judged.matched),
            "rules_score": judged.score,
        },
        ensure_ascii=False,
    )


def _explain(judged: JudgedPair, errors: Sequence[PairError]) -> str:
    return (
        f"Matched findings: {len(judged.matched)}; errors: {len(errors)}. Found by "
        "rules, without a language model."
    )
