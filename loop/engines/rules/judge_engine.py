"""The engine for judges' prompts: errors and matched findings of a pair, as JSON.

It answers the JSON forms of judges whose answer is errors, counts or a score from 0 to
1, by the guides of the extractor that the judge's version reads, and says so where it
cannot. It is no language model: of the prompt it reads which categories are asked for,
and the clarifications of their guides (`loop.engines.rules.rulings`). It tells
significant errors from others and nothing finer: where an answer asks for more, one
significance is one severity (`_LINE_SEVERITY`), or the class of the finding bounded by
it (`_weigh`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from loop.core.errors import EngineError
from loop.core.numbered_lines import split_lines
from loop.core.numbered_phrases import SIDES, split_phrases
from loop.core.records import Completion, Prompt, PromptFrame, Span
from loop.engines.rules.cues import Cues
from loop.engines.rules.judging import (
    JUDGING_REVISION,
    GreenCategory,
    JudgedPair,
    PairError,
    judge_answer,
)
from loop.engines.rules.phrase_answers import entail_phrases, list_phrases
from loop.engines.rules.report_findings import FindingReader
from loop.engines.rules.rulings import Rulings
from loop.engines.rules.weights import JudgingData, Worth

_TEXTS: Final = ("reference", "candidate")
_CORRECTIONS: Final = "corrections"
_FORMS: Final = (
    *("errors", "significant_errors", "significant_counts", "missed_findings"),
    *("overall_score", "phrases"),
)
"""A key of each form of answer, the one that tells it first."""

_LINE_SEVERITY: Final = {True: "Actionable nonurgent error", False: "Not actionable"}
"""Severity of a corrected line, by significance: the two in the middle of the scale."""

_WEIGHTS: Final[Mapping[Worth, str]] = {
    "urgent": "urgent",
    "actionable": "actionable_not_urgent",
    "minor": "not_actionable_not_urgent",
    "benign": "benign_expected",
}
"""Classes of the data by their names in CRIMSON."""

_ATTRIBUTES: Final[Mapping[GreenCategory, str]] = {
    GreenCategory.LOCATION: "location",
    GreenCategory.SEVERITY: "severity",
    GreenCategory.COMPARISON: "temporal",
    GreenCategory.OMITTED_CHANGE: "temporal",
}
"""Errors in what is said of a finding that both report, by their types in CRIMSON."""


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
        if _form(frame) is None:
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
        if _form(prompt.frame) == "phrases":
            return self._answer_phrases(prompt)
        texts = [prompt.item.variables.get(name, "") for name in _TEXTS]
        reader, rulings = self._reader(prompt.frame)
        judged = judge_answer(reader, texts[0], texts[1], rulings)
        asked = frozenset(prompt.frame.fields)
        errors = [one for one in judged.errors if one.category in asked]
        form = _form(prompt.frame)
        if form == "errors":
            return _list_errors(judged, errors, texts, prompt.frame)
        if form == "significant_errors":
            return _list_sections(judged, errors, texts, prompt.frame)
        if form == "significant_counts":
            return _count_errors(errors, prompt.frame.fields)
        if form == "missed_findings":
            return _weigh_findings(self._data, judged, texts)
        if form == _CORRECTIONS:
            return _correct_lines(errors, texts)
        explained = {"explanation": _explain(judged, judged.errors)}
        return json.dumps({**explained, "overall_score": round(judged.score, 4)})

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


def _form(frame: PromptFrame) -> str | None:
    """Return the key by which an answer of a known form is told; None for others."""
    required = frame.schema.get("required")
    if isinstance(required, list):
        return next((key for key in _FORMS if key in required), None)
    # The keys are lines of the candidate.
    more = frame.schema.get("additionalProperties")
    keys = more.get("properties", ()) if isinstance(more, dict) else ()
    return _CORRECTIONS if _CORRECTIONS in keys else None


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
    frame: PromptFrame,
) -> str:
    """Return the answer by category, significant errors and others apart.

    A score is the judge's own, but for the one that is computed from the counts.
    """
    required = frame.schema["required"]
    fields = frame.fields
    score: dict[str, float] = {"rules_score": judged.score}
    if isinstance(required, list) and "overall_score" in required:
        score = {"overall_score": round(judged.score, 4)}
    elif isinstance(required, list) and "formula_score" in required:
        serious = sum(one.significant for one in errors)
        of = len(judged.matched) + 2 * serious + 0.5 * (len(errors) - serious)
        score = {"formula_score": round(len(judged.matched) / of, 4) if of else 1.0}
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
            **score,
        },
        ensure_ascii=False,
    )


def _count_errors(errors: Sequence[PairError], fields: Sequence[str]) -> str:
    """Return the number of errors by significance and category."""
    return json.dumps(
        {
            key: {
                name: sum(
                    one.category == name and one.significant is significant
                    for one in errors
                )
                for name in fields
            }
            for key, significant in (
                ("significant_counts", True),
                ("insignificant_counts", False),
            )
        }
    )


def _correct_lines(errors: Sequence[PairError], texts: Sequence[str]) -> str:
    """Return the errors as corrections of the candidate's lines.

    A line has one correction however many errors it has, the most severe decides; an
    error with no place in the candidate is a line to insert. What the line must say is
    in the words of the reference, where it says anything.
    """
    lines = split_lines(texts[1])
    by_line: dict[int | None, list[PairError]] = {}
    for one in errors:
        place = None if one.category is GreenCategory.OMISSION else one.candidate_span
        number = next(
            (
                number
                for number, line in enumerate(lines)
                if place is not None and line.start <= place.start < line.end
            ),
            None,
        )
        by_line.setdefault(number, []).append(one)
    inserted = [[one] for one in by_line.pop(None, [])]
    pairs = [(str(number), found) for number, found in sorted(_numbered(by_line))]
    pairs += [("None", found) for found in inserted]
    # An object whose key repeats, as published: no mapping holds it.
    written = [
        f'"{key}": ' + json.dumps(_correction(found, texts), ensure_ascii=False)
        for key, found in pairs
    ]
    return "{" + ", ".join(written) + "}"


def _numbered(
    by_line: Mapping[int | None, list[PairError]],
) -> Iterator[tuple[int, list[PairError]]]:
    for number, found in by_line.items():
        if number is not None:
            yield number, found


def _correction(errors: Sequence[PairError], texts: Sequence[str]) -> dict[str, object]:
    wanted = [
        _quote(one.reference_span, texts[0])
        for one in errors
        if one.category is not GreenCategory.FALSE_FINDING and one.reference_span
    ]
    kinds = list(dict.fromkeys(one.category.value for one in errors))
    omitted = GreenCategory.OMISSION.value in kinds
    unsaid = "the whole report" if omitted else "[delete]"
    return {
        "corrections": " ".join(dict.fromkeys(wanted)) or unsaid,
        "clinical severity": _LINE_SEVERITY[any(one.significant for one in errors)],
        "comments": "; ".join(
            f"{one.category.value}: {one.label or 'by its words'}" for one in errors
        ),
        "error category": kinds,
    }


def _weigh_findings(data: JudgingData, judged: JudgedPair, texts: Sequence[str]) -> str:
    """Return the findings of both reports, each by what it asks for.

    A finding that both report with an error of place, severity or change is matched,
    with the error as one in an attribute; an error of a finding that only one of them
    has is that finding missed or false.
    """
    matched: dict[object, dict[str, object]] = {}

    def match(label: str, reference: Span | None, candidate: Span | None) -> list[Any]:
        key = reference or candidate
        words = _quote(reference, texts[0]) or _quote(candidate, texts[1])
        # Two findings in one place are two findings.
        known = matched.setdefault(
            (key, label),
            {
                "finding": words or label,
                "weight": _WEIGHTS[data.class_of(label)],
                "attribute_errors": [],
            },
        )
        attributes = known["attribute_errors"]
        return attributes if isinstance(attributes, list) else []

    for found in judged.matched:
        match(found.label, found.reference_span, found.candidate_span)
    missed: list[dict[str, object]] = []
    false: list[dict[str, object]] = []
    for one in judged.errors:
        kind = _ATTRIBUTES.get(one.category)
        if kind is not None:
            severity = "significant" if one.significant else "negligible"
            errors = match(one.label, one.reference_span, one.candidate_span)
            errors.append({"type": kind, "severity": severity})
            continue
        alone: dict[str, object] = {
            "finding": _words(one, texts),
            "weight": _weigh(data, one),
        }
        (missed if one.category is GreenCategory.OMISSION else false).append(alone)
    return json.dumps(
        {
            "matched_findings": _distinct(matched.values()),
            "missed_findings": _distinct(missed),
            "false_findings": _distinct(false),
        },
        ensure_ascii=False,
    )


def _weigh(data: JudgingData, error: PairError) -> str:
    """Return what a missed or false finding weighs: its class, at its significance.

    A significant error weighs as something to act on at least, another one as nothing
    to act on at most.
    """
    found = data.class_of(error.label)
    if error.significant and found in ("minor", "benign"):
        found = "actionable"
    elif not error.significant and found in ("urgent", "actionable"):
        found = "minor"
    return _WEIGHTS[found]


def _distinct(findings: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return findings whose words all differ: the same words twice are numbered."""
    seen: dict[str, int] = {}
    kept = []
    for one in findings:
        words = str(one["finding"])
        number = seen[words.strip().casefold()] = (
            seen.get(words.strip().casefold(), 0) + 1
        )
        kept.append({**one, "finding": f"{words} ({number})" if number > 1 else words})
    return kept


def _quotes(error: PairError, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield words of both texts that an error is about: its own, then ever more.

    The last ones go to the end of the text, so that they differ wherever errors begin
    at different places.
    """
    spans = (error.reference_span, error.candidate_span)
    reference, candidate = map(_quote, spans, texts)
    yield reference, candidate
    wider = [
        [] if span is None else [_sentence(span, text), text[span.start :].rstrip()]
        for span, text in zip(spans, texts, strict=True)
    ]
    yield from ((more, candidate) for more in wider[0])
    yield from ((reference, more) for more in wider[1])


def _sentence(span: Span, text: str) -> str:
    """Return the sentence in which a place begins; its own words outside any."""
    return next(
        (
            text[line.start : line.end]
            for line in split_lines(text)
            if line.start <= span.start < line.end
        ),
        _quote(span, text),
    )


def _list_errors(
    judged: JudgedPair,
    errors: Sequence[PairError],
    texts: Sequence[str],
    frame: PromptFrame,
) -> str:
    """Return the answer as a list of errors, with the words of both texts.

    No two errors of a category have the same words: these would be one error.
    """
    weighs = "significant" in json.dumps(frame.schema)
    listed = []
    seen: set[tuple[str, ...]] = set()
    for one in errors:
        said: dict[str, object] = {"category": one.category.value}
        if weighs:
            said["significant"] = one.significant
        quotes = next(
            (two for two in _quotes(one, texts) if (one.category, *two) not in seen),
            ("", ""),
        )
        seen.add((one.category, *quotes))
        said["reference"], said["candidate"] = quotes
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
