"""Approved exemplars, and the choice of those nearest to what a guide gets wrong.

Examples that are picked for each case would give every case another prompt, and a
server no prefix to cache. Here they are picked once for a label and written into its
guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from loop.core.paths import WorkspacePaths
from loop.core.records import Exemplar
from loop.optimize.objective import Objective
from loop.optimize.proposals import (
    Objection,
    ProposalReader,
    Proposed,
    RefusedProposal,
)
from loop.optimize.splits import Rows
from loop.prompts.catalog import list_versions, read_version
from loop.prompts.guides import dump_guides
from loop.prompts.lint import fold_phrase
from loop.prompts.version import PromptVersion
from loop.review.status import KeptVerdict, VerdictState

MOST_EXEMPLARS: Final = 4
"""Exemplars that a guide is given at most; it keeps those that it has."""


def list_approved(
    workspace: WorkspacePaths, version: PromptVersion, kept: Iterable[KeptVerdict]
) -> dict[str, tuple[Exemplar, ...]]:
    """Return label to the exemplars that clinicians approved, each once.

    These are the ones of committed versions of the prompt, which a person committed,
    and of standing verdicts; those that a standing verdict takes out are left out.
    Texts of cases are never among them.

    Raises
    ------
    DataError
        A version of the prompt cannot be read.
    """
    found: dict[str, dict[str, Exemplar]] = {one: {} for one in version.labels}
    for number in list_versions(workspace, version.name):
        for guide in read_version(workspace, f"{version.name}@v{number}").guides:
            _add(found.get(guide.label), guide.exemplars)
    removed: set[tuple[str, str]] = set()
    for one in kept:
        if one.state in (VerdictState.WITHDRAWN, VerdictState.SUPERSEDED):
            continue
        edits = one.verdict.edits
        _add(found.get(one.verdict.label), edits.exemplars)
        removed |= {
            (one.verdict.label, fold_phrase(text)) for text in edits.remove_exemplars
        }
    return {
        label: tuple(one for key, one in rows.items() if (label, key) not in removed)
        for label, rows in found.items()
    }


def _add(rows: dict[str, Exemplar] | None, exemplars: Iterable[Exemplar]) -> None:
    if rows is not None:
        for one in exemplars:
            rows.setdefault(fold_phrase(one.text), one)


def rank_nearest(
    exemplars: Sequence[Exemplar], texts: Sequence[str]
) -> tuple[Exemplar, ...]:
    """Return `exemplars`, those nearest to `texts` first.

    Nearness is the mean over the texts of the cosine of TF-IDF vectors of words and
    pairs of words. Among equals the order stays; without texts it is kept as it is.

    References
    ----------
    Salton G, Buckley C. Term-weighting approaches in automatic text retrieval. Inf
    Process Manag 1988;24:513-523.

    Examples
    --------
    >>> from loop.core.records import Value
    >>> far, near = (
    ...     Exemplar(text=text, value=Value.PRESENT, evidence=text)
    ...     for text in ("Old rib fracture.", "Fluid at the base.")
    ... )
    >>> rank_nearest([far, near], ["There is fluid at the left base."])[0].text
    'Fluid at the base.'
    """
    if len(exemplars) < 2 or not texts:
        return tuple(exemplars)
    from sklearn.feature_extraction.text import TfidfVectorizer

    # One character is a word of Chinese.
    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2), token_pattern=r"(?u)[^\W\d_\u3400-\u9fff]+|[\u3400-\u9fff]"
    )
    written = [one.text for one in exemplars]
    if not any(any(sign.isalpha() for sign in one) for one in (*written, *texts)):
        return tuple(exemplars)
    vectors = vectorizer.fit_transform([*written, *texts])
    near = (vectors[: len(written)] @ vectors[len(written) :].T).mean(axis=1)
    order = np.argsort(-np.asarray(near).ravel(), kind="stable")
    return tuple(exemplars[int(place)] for place in order)


def fit_exemplars(
    reader: ProposalReader, label: str, exemplars: Sequence[Exemplar]
) -> str | RefusedProposal:
    """Return the text of a guide with as many of `exemplars` as it may be given.

    The first ones go before the others; where not even one fits, or a clinician refused
    what would be said, why it is refused.
    """
    guide = reader.parent.guide(label)
    if guide is None or not exemplars:
        raise ValueError(f"no guide of {label}, or no exemplar for it")
    count = len(exemplars)
    while True:
        more = (*guide.exemplars, *exemplars[:count])
        text = dump_guides([replace(guide, exemplars=more)])
        read = reader.read({label: text})
        if not isinstance(read, RefusedProposal):
            return text
        if count == 1 or read.objection is Objection.REFUSED:
            return read
        count -= 1


def search_nearest(
    objective: Objective,
    reader: ProposalReader,
    approved: Mapping[str, Sequence[Exemplar]],
    *,
    search: Rows,
    labels: Sequence[str],
) -> Proposed:
    """Return wordings with the approved exemplars nearest to the failing cases.

    One wording for each label alone, and one for all together; a label without
    failing cases or further exemplars gets none. No language model is asked.

    Parameters
    ----------
    approved
        Label to exemplars, see `list_approved`.
    search
        Cases among which the failing ones are looked for.

    Raises
    ------
    EngineError
        The answering engine failed too often.
    """
    ground, parent = objective.ground, reader.parent
    answers = objective.answers(parent, search)
    wrong = ground.wrong(answers, search)
    texts: dict[str, str] = {}
    refused: dict[Objection, int] = {}
    for label in labels:
        guide = parent.guide(label)
        if guide is None:
            continue
        rows = search[wrong[:, ground.labels.index(label)]]
        known = {fold_phrase(one.text) for one in guide.exemplars}
        more = [
            one for one in approved.get(label, ()) if fold_phrase(one.text) not in known
        ]
        room = MOST_EXEMPLARS - len(guide.exemplars)
        if not rows.size or not more or room < 1:
            continue
        failing = [
            text for row in rows for text in ground.items[row].variables.values()
        ]
        chosen = rank_nearest(more, failing)[:room]
        fitted = fit_exemplars(reader, label, chosen)
        if isinstance(fitted, RefusedProposal):
            refused[fitted.objection] = refused.get(fitted.objection, 0) + 1
        else:
            texts[label] = fitted
    wanted = [{label: text} for label, text in texts.items()]
    if len(texts) > 1:
        wanted.append(texts)
    made = [reader.read(one) for one in wanted]
    return Proposed(
        candidates=tuple(one for one in made if isinstance(one, PromptVersion)),
        calls=len(search),
        proposals=len(texts) + sum(refused.values()),
        refused=refused,
    )
