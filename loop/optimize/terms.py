"""Terms and exclusions mined from what a version gets wrong, without a language model.

For each label the wordings of the cohort are ranked by what they would gain: a term by
the positives in which it is asserted and the answer is not "present", an exclusion by
the negatives in which the only evidence stands inside it. Each choice assumes that the
earlier ones are in the guide; a proposal that later ones make superfluous is dropped.

Counts of a few cases flatter whoever is chosen by them. Each is drawn towards what is
known before looking: a wording that shares a word with what the guide says of its label
is believed sooner than one that does not, and one that names another label is not
looked at. Nor is one that nearly always goes on ("patchy", of a density or a shadow):
it is part of a name, and what it is part of elsewhere nobody has seen. The exact test
of each contrast is reported with it, adjusted after Holm over all wordings of its kind
that were tested for the label in the same round.

Chinese has no spaces: of wordings that gain the same, whole words go before pieces of
them, and what reports also deny or leave open before what they only state, since they
deny a finding by its name and not by its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from loop.core.paths import WorkspacePaths
from loop.core.records import (
    Clarification,
    Guide,
    Lexicon,
    UncertainAnswers,
    Value,
    ValueCode,
)
from loop.engines.rules.cues import read_cues
from loop.engines.rules.engine import ReportReader
from loop.engines.rules.sentence import Stance
from loop.engines.rules.vocabulary import GAP, fold, guide_wordings, has_cjk
from loop.evaluate.align import Codes
from loop.labels.taxonomy import Label
from loop.optimize.ground import LabelGround
from loop.optimize.mentions import MentionTable, read_mentions, read_sentences
from loop.optimize.splits import Rows
from loop.prompts.lint import is_pattern
from loop.prompts.version import PromptVersion
from loop.review.verdict import Judgement
from loop.stats.paired import holm

REVISION: Final = 3
"""Raised whenever the same cases may give other proposals."""

MIN_SUPPORT: Final = 3
"""Cases that speak for a proposal; one with fewer is marked as rare."""

RARE_SUPPORT: Final = 2
"""The same for a wording that shares a word with the guide of its label."""

LEAST_CLOSING: Final = 0.1
"""Share of its asserted mentions with which a phrase ends, at least: a wording that
others nearly always go on from is only part of a name."""

LEVELS: Final = (0.01, 0.005)
"""Least gain in the F1 of its label that a proposal must promise, strictest first; the
select part of a split decides which. A term that is rare, or shares no word with the
guide, must promise the strictest; terms that the taxonomy names need none."""

MOST_TERMS: Final = 10
"""Proposals for one label, at most, of each kind."""

_LEAST_PRECISION = 0.5
_PRIOR_RIGHT = 0.5
_PRIOR_WRONG = {True: 0.5, False: 2.0}
"""Cases added to those in which a wording is right or wrong, before looking; the latter
by whether it shares a word with the guide."""

_NEW = {True: 1, False: 2}
"""Positives that only this wording finds, at least."""

_LONG_WORDING = 0.003
"""Gain that each further word of a wording must bring."""

_LOST_SHARE = 0.1
"""Positives lost that an exclusion may cost, as a share of the negatives it clears."""

_RARE_WORD = 2
"""Guides that share a word, at most, for it to tell whose label a wording is of."""

_STEM = 5

NAMED_PRECISION: Final = 0.7
"""Share of the cases of a named wording that are positive, at least, drawn to one half
by one case."""

ONE_IS_ENOUGH: Final = 0.75
"""Share of the positives that one wording finds: above it no others are expected."""
_WORD = re.compile(r"[^\W\d_]+")
_PARENTHESES = re.compile(r"\([^)]*\)")


class ProposalKind(StrEnum):
    """Which part of a guide a proposal is for."""

    TERM = "term"
    EXCLUSION = "exclusion"
    CLARIFICATION = "clarification"
    GUIDE = "guide"
    """The guide as a whole, which no miner proposes; its wording is a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermProposal:
    """One wording proposed for the guide of one label, with its evidence in counts."""

    label: str
    kind: ProposalKind
    wording: str
    value: str = ""
    """Of a clarification: what the wording means."""

    support: tuple[str, ...]
    """Cases that speak for it: of a term the positives in which it is asserted, else
    the negatives that it clears."""

    against: tuple[str, ...]
    """Cases that speak against it, in the same way."""

    fixed: int
    """Cases of the support that only this proposal puts right."""

    gain: float
    """Gain in the F1 of the label. Of a term the plain difference on the cases it was
    mined on; of an exclusion drawn towards 0."""

    p: float
    """Of the exact test of its contrast, adjusted after Holm for all wordings of its
    kind that were tested for the label in the same round."""

    @property
    def rare(self) -> bool:
        """Whether fewer than `MIN_SUPPORT` cases speak for it."""
        return len(self.support) < MIN_SUPPORT

    @property
    def id(self) -> str:
        """What names the proposal: it is the same in every search."""
        return f"{self.label}:{self.kind}:{self.wording}"

    def form(self, words: str = "") -> dict[str, Any]:
        """Return the fields of the verdict that accepts the proposal, unsigned.

        Parameters
        ----------
        words
            What to say instead; empty for the wording as it was proposed.
        """
        said = words or self.wording
        comment = (
            f"mined: {len(self.support)} cases for it, {len(self.against)} against, "
            f"{self.fixed} that nothing else puts right"
        )
        if said.strip() != self.wording:
            comment += f"; proposed as {self.wording}"
        edits: dict[str, Any] = {"exclusions": [said]}
        if self.kind is ProposalKind.TERM:
            edits = {"terms": [said]}
        elif self.kind is ProposalKind.CLARIFICATION:
            edits = {"clarifications": [{"phrase": said, "value": self.value}]}
        return {
            "cases": list(self.support),
            "label": self.label,
            "judgement": Judgement.GUIDELINE_AMBIGUOUS.value,
            "comment": comment,
            **edits,
        }

    @property
    def data(self) -> dict[str, Any]:
        """The proposal as JSON data."""
        return {**asdict(self), "id": self.id, "rare": self.rare}


class MinedTerms(NamedTuple):
    """What was mined on some cases."""

    proposals: tuple[TermProposal, ...]
    """The one that promises the most first."""

    tested: int
    """Wordings whose contrast was tested, added up over the labels."""


class TermMiner:
    """Mines proposals for labels of one version on any cases of one cohort.

    Sentences are read once, at the start; mining reads tables only.
    """

    def __init__(
        self,
        workspace: WorkspacePaths,
        ground: LabelGround,
        answers: Codes,
        *,
        refused: Collection[str] = (),
    ) -> None:
        """Read the cohort.

        Parameters
        ----------
        answers
            What the version answers now, as codes of `ValueCode`, shape
            ``(n_cases, n_labels)``.
        refused
            Ids of proposals that are not proposed again.

        Raises
        ------
        DataError
            A cue file is missing or malformed.
        """
        self._ground = ground
        self._case_ids = ground.case_ids
        self._refused = frozenset(refused)
        read = read_sentences(workspace, ground.version, ground.items)
        self._table = read_mentions(workspace, read, support=RARE_SUPPORT)
        self._stated = self._table.stances == Stance.PRESENT
        self._hedged = self._table.stances == Stance.UNCERTAIN
        self._now = _as_stances(answers)
        self._failed = (answers == ValueCode.FAILED).any(axis=1)
        guides = [_guide_of(ground.version, label) for label in ground.labels]
        meanings = [ground.taxonomy.find(label) for label in ground.labels]
        self._told, self._related, self._named, self._foreign = _relate(
            self._table.wordings, guides, meanings
        )
        chinese = [has_cjk(one) for one in self._table.wordings]
        doubted = np.isin(self._table.stances, (Stance.NEGATED, Stance.UNCERTAIN))
        self._doubted = np.where(chinese, doubted.sum(axis=1), 0)
        words = [_WORD.findall(one) for one in self._table.wordings]
        self._words = np.array([len(one) for one in words], dtype=np.int64)
        self._stems = [_stems(one) for one in self._table.wordings]
        self._known = [
            [fold(text).split() for text, _, _ in guide_wordings(guide)]
            for guide in guides
        ]
        self._mentions = _label_mentions(workspace, ground, self._table)
        plain = _qualifiers(workspace)
        self._bare = np.array([plain.issuperset(one) for one in words], dtype=bool)
        self._bare |= self._table.closing < LEAST_CLOSING

    def mine(
        self, rows: Rows, labels: Collection[str], *, least_gain: float
    ) -> MinedTerms:
        """Return what is proposed for `labels` by the cases at `rows`.

        Labels below the protocol's minimum of positives in the cohort get nothing.

        Parameters
        ----------
        least_gain
            Gain in the F1 of its label that a proposal must promise.
        """
        rows = rows[~self._failed[rows]]
        positive = (self._ground.truth[rows] == 1).astype(np.float32)
        right = self._stated[:, rows].astype(np.float32) @ positive
        found: list[TermProposal] = []
        tested = 0
        for column, label in enumerate(self._ground.labels):
            if label in labels and self._ground.scored[column]:
                made = self._mine_label(column, rows, right[:, column], least_gain)
                found += made.proposals
                tested += made.tested
        found.sort(key=lambda one: (-one.gain, one.id))
        return MinedTerms(tuple(found), tested)

    def _mine_label(
        self, column: int, rows: Rows, right: NDArray[np.float32], least_gain: float
    ) -> MinedTerms:
        chosen, family = self._choose_terms(column, rows, right, least_gain)
        chosen = self._drop_superfluous(column, rows, chosen)
        chosen += self._add_named(column, rows, chosen, family)
        chosen = self._drop_superfluous(column, rows, chosen, harmful=True)
        proposals = self._as_terms(column, rows, chosen, family)
        now = self._after(column, chosen)
        out, tested = self._choose_exclusions(column, rows, chosen, now, least_gain)
        return MinedTerms((*proposals, *out), len(family) + tested)

    def _after(self, column: int, chosen: Sequence[int]) -> NDArray[np.int8]:
        """Return the status of a label in every case with the chosen terms."""
        now = self._now[:, column]
        for wording in chosen:
            now = np.maximum(now, self._table.stances[wording])
        return now

    def _choose_terms(
        self, column: int, rows: Rows, right: NDArray[np.float32], least_gain: float
    ) -> tuple[list[int], NDArray[np.intp]]:
        """Return the terms, best first, and all wordings that were looked at.

        Parameters
        ----------
        right
            Positives of the label in `rows` that state each wording.
        """
        truth = self._ground.truth[rows, column]
        positive, negative = truth == 1, truth == 0
        related = self._related[:, column]
        least = np.where(related, RARE_SUPPORT, MIN_SUPPORT)
        family = np.flatnonzero(
            (right >= least) & ~self._foreign[:, column] & ~self._bare
        )
        family = np.array(
            [one for one in family.tolist() if self._may_propose(column, one)],
            dtype=np.intp,
        )
        found = np.ix_(family, rows)
        stated, hedged = self._stated[found], self._hedged[found]
        wrong = self._is_wrong(family, rows, negative).sum(axis=1)
        right, related = right[family], related[family]
        prior = np.where(related, _PRIOR_WRONG[True], _PRIOR_WRONG[False])
        precision = (right + _PRIOR_RIGHT) / (right + wrong + _PRIOR_RIGHT + prior)
        fresh = np.where(related, _NEW[True], _NEW[False])
        usable = precision >= _LEAST_PRECISION
        told = self._told[family, column]
        cost = _LONG_WORDING * np.maximum(self._words[family] - 1 - told, 0)
        now = self._now[rows, column].copy()
        chosen: list[int] = []
        # Counts of 0 and 1 are exact in a product, which is far faster than a mask.
        told_of = (stated | hedged).astype(np.float32)
        stated = stated.astype(np.float32)
        while len(chosen) < MOST_TERMS and family.size:
            tp, fp, fn = self._count(now, truth)
            open_now = now < Stance.PRESENT
            hits = _in_each(stated, open_now & positive)
            if self._hedges_are_wrong:
                misses = _in_each(told_of, negative & (now < Stance.UNCERTAIN))
            else:
                misses = _in_each(stated, open_now & negative)
            settled = hits
            if self._spares_hedges:
                silent = open_now & (now != Stance.UNCERTAIN) & positive
                settled = _in_each(told_of, silent)
            both = hits + misses
            sure = np.minimum(hits, both * precision)
            after = _f1(
                tp + sure,
                fp + both - sure,
                np.maximum(fn - settled + (hits - sure), 0),
            )
            gain = after - _f1(tp, fp, fn) - cost
            gain[~usable | (hits < fresh)] = -1
            gain[(~related | (right < MIN_SUPPORT)) & (gain < LEVELS[0])] = -1
            rounded = gain.round(9)
            top = np.flatnonzero(rounded == rounded.max())
            order = np.lexsort(
                (
                    *(top, -self._doubted[family[top]]),
                    *(self._table.fragments[family[top]], -told[top], -right[top]),
                )
            )
            best = int(top[order[0]])
            if gain[best] < least_gain:
                break
            chosen.append(int(family[best]))
            now = np.maximum(now, self._table.stances[family[best]][rows])
        return chosen, family

    def _is_wrong(
        self, wordings: NDArray[np.intp], rows: Rows, negative: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return where wordings make an answer wrong that is to be absent."""
        found = self._stated[np.ix_(wordings, rows)]
        if self._hedges_are_wrong:
            found = found | self._hedged[np.ix_(wordings, rows)]
        return np.asarray(found & negative)

    def _may_propose(self, column: int, wording: int) -> bool:
        """Whether a wording holds none that the guide has, and was not refused."""
        label = self._ground.labels[column]
        text = self._table.wordings[wording]
        if any(_holds(text, known) for known in self._known[column]):
            return False
        return f"{label}:{ProposalKind.TERM}:{text}" not in self._refused

    @property
    def _hedges_are_wrong(self) -> bool:
        """Whether an uncertain answer is wrong where the label is absent."""
        policy = self._ground.protocol.policy
        return policy in {UncertainAnswers.WRONG, UncertainAnswers.PRESENT}

    @property
    def _spares_hedges(self) -> bool:
        """Whether an uncertain answer is in no rate."""
        return self._ground.protocol.policy is UncertainAnswers.EXCLUDED

    def _count(
        self, now: NDArray[np.int8], truth: NDArray[np.int8]
    ) -> tuple[float, float, float]:
        """Return TP, FP and FN of one label by its status in some cases."""
        stated, hedged = now == Stance.PRESENT, now == Stance.UNCERTAIN
        positive, negative = truth == 1, truth == 0
        policy = self._ground.protocol.policy
        if policy is UncertainAnswers.PRESENT:
            stated = stated | hedged
        wrong = stated | hedged if policy is UncertainAnswers.WRONG else stated
        missed = ~stated & ~hedged if self._spares_hedges else ~stated
        return (
            float((stated & positive).sum()),
            float((wrong & negative).sum()),
            float((missed & positive).sum()),
        )

    def _drop_superfluous(
        self, column: int, rows: Rows, chosen: Sequence[int], *, harmful: bool = False
    ) -> list[int]:
        """Return the terms without those that gain nothing beside the others."""
        truth, kept = self._ground.truth[rows, column], list(chosen)
        for wording in [*chosen]:
            others = [one for one in kept if one != wording]
            with_all, without = (
                _f1(*self._count(self._after(column, some)[rows], truth))
                for some in (kept, others)
            )
            if without > with_all + 1e-9 or (not harmful and without >= with_all):
                kept = others
        return kept

    def _add_named(
        self,
        column: int,
        rows: Rows,
        chosen: Sequence[int],
        family: NDArray[np.intp],
    ) -> list[int]:
        """Return further terms that the taxonomy names, which do no harm here.

        They gain nothing on these cases. Where the positives of a label have many
        wordings, though, other cases have others, and these are known to mean it.
        """
        truth = self._ground.truth[rows, column]
        positive, negative = truth == 1, truth == 0
        found = [self._now[rows, column] == Stance.PRESENT]
        found += [self._stated[wording, rows] for wording in chosen]
        most = max(int((one & positive).sum()) for one in found)
        if not family.size or most > ONE_IS_ENOUGH * positive.sum():
            return []
        stated = self._stated[np.ix_(family, rows)]
        right = (stated & positive).sum(axis=1)
        wrong = self._is_wrong(family, rows, negative).sum(axis=1)
        share = (right + _PRIOR_RIGHT) / (right + wrong + 2 * _PRIOR_RIGHT)
        usable = self._named[family, column] & (share >= NAMED_PRECISION)
        told = self._told[family, column]
        ranked = np.lexsort(
            (np.arange(len(family)), self._words[family], -told, -right, -share)
        )
        taken = [self._stems[wording] for wording in chosen]
        made: list[int] = []
        for place in ranked[usable[ranked]].tolist():
            wording = int(family[place])
            if len(made) == MOST_TERMS:
                break
            mine = self._stems[wording]
            if any(stems <= mine or mine <= stems for stems in taken):
                continue
            was, now = (
                _f1(*self._count(self._after(column, some)[rows], truth))
                for some in ([*chosen, *made], [*chosen, *made, wording])
            )
            if now >= was:
                made.append(wording)
                taken.append(mine)
        return made

    def _as_terms(
        self,
        column: int,
        rows: Rows,
        chosen: Sequence[int],
        family: NDArray[np.intp],
    ) -> list[TermProposal]:
        """Return the chosen terms with the evidence for each."""
        if not chosen:
            return []
        truth = self._ground.truth[rows, column]
        positive, negative = truth == 1, truth == 0
        stated = self._stated[np.ix_(family, rows)]
        p = _contrasts(
            (stated & positive).sum(axis=1),
            (stated & negative).sum(axis=1),
            int(positive.sum()),
            int(negative.sum()),
        )
        places = {int(wording): place for place, wording in enumerate(family)}
        made = []
        for wording in chosen:
            others = self._after(column, [one for one in chosen if one != wording])
            without = others[rows]
            gain = _f1(*self._count(self._after(column, chosen)[rows], truth)) - _f1(
                *self._count(without, truth)
            )
            row = stated[places[wording]]
            made.append(
                TermProposal(
                    label=self._ground.labels[column],
                    kind=ProposalKind.TERM,
                    wording=self._table.wordings[wording],
                    support=self._ids(rows[row & positive]),
                    against=self._ids(rows[row & negative]),
                    fixed=int((row & positive & (without < Stance.PRESENT)).sum()),
                    gain=float(gain),
                    p=p[places[wording]],
                )
            )
        return made

    def _ids(self, rows: Rows) -> tuple[str, ...]:
        return tuple(self._case_ids[row] for row in rows)

    def _choose_exclusions(
        self,
        column: int,
        rows: Rows,
        chosen: Sequence[int],
        now: NDArray[np.int8],
        least_gain: float,
    ) -> tuple[list[TermProposal], int]:
        """Return wordings around the label's own that clear what is wrongly found."""
        truth = np.full(len(now), -1, dtype=np.int8)
        truth[rows] = self._ground.truth[rows, column]
        found = now == Stance.PRESENT
        if int((found & (truth == 0)).sum()) < MIN_SUPPORT:
            return [], 0
        evidence = self._evidence(column, chosen)
        alive = np.ones(len(evidence.cases), dtype=bool)
        proposals: list[TermProposal] = []
        tested: set[int] = set()
        while len(proposals) < MOST_TERMS:
            live = found & evidence.reach(alive)
            tp, fp, fn = self._count(np.where(live, now, 0)[rows], truth[rows])
            best: tuple[tuple[float, int, int], int, NDArray[np.bool_]] | None = None
            clears: list[tuple[int, int]] = []
            for wording, inside in evidence.around.items():
                after = live & evidence.reach(alive & ~inside)
                cleared = int((live & ~after & (truth == 0)).sum())
                lost = int((live & ~after & (truth == 1)).sum())
                if cleared < MIN_SUPPORT:
                    continue
                tested.add(wording)
                clears.append((cleared, lost))
                name = self._table.wordings[wording]
                if lost > _LOST_SHARE * cleared or self._is_refused(column, name):
                    continue
                both = cleared + lost
                sure = both * (cleared + _PRIOR_RIGHT) / (both + _PRIOR_RIGHT + 1)
                sure = min(sure, cleared)
                gain = _f1(tp - (both - sure), fp - sure, fn + both - sure) - _f1(
                    tp, fp, fn
                )
                gain -= _LONG_WORDING * float(self._words[wording] - 1)
                rank = gain, -int(self._table.fragments[wording]), -len(name)
                if best is None or rank > best[0]:
                    best = rank, wording, inside
            if best is None or best[0][0] < least_gain:
                break
            (gain, _, _), wording, inside = best
            after = live & evidence.reach(alive & ~inside)
            gone = live & ~after
            counts = [int((live & (truth == value)).sum()) for value in (0, 1)]
            cleared, lost = ((gone & (truth == value)) for value in (0, 1))
            p = _contrasts(
                np.array([one for one, _ in clears]),
                np.array([other for _, other in clears]),
                *counts,
            )
            mine = clears.index((int(cleared.sum()), int(lost.sum())))
            open_cases = gone & (self._ground.truth[:, column] == -1)
            open_cases[np.setdiff1d(np.arange(len(now)), rows)] = False
            hedges = int(open_cases.sum()) > int(cleared.sum())
            proposals.append(
                TermProposal(
                    label=self._ground.labels[column],
                    kind=(
                        ProposalKind.CLARIFICATION if hedges else ProposalKind.EXCLUSION
                    ),
                    wording=self._table.wordings[wording],
                    value=Value.UNCERTAIN.value if hedges else "",
                    support=self._ids(np.flatnonzero(cleared)),
                    against=self._ids(np.flatnonzero(lost)),
                    fixed=int(cleared.sum()),
                    gain=float(gain),
                    p=p[mine],
                )
            )
            alive &= ~inside
        return proposals, len(tested)

    def _is_refused(self, column: int, wording: str) -> bool:
        label = self._ground.labels[column]
        kinds = (ProposalKind.EXCLUSION, ProposalKind.CLARIFICATION)
        return any(f"{label}:{kind}:{wording}" in self._refused for kind in kinds)

    def _evidence(self, column: int, chosen: Sequence[int]) -> _Evidence:
        """Return the mentions by which a label is found, and what stands around."""
        table = self._table
        places = [*self._mentions[column]]
        for wording in chosen:
            which = (table.word == wording) & (table.stance == Stance.PRESENT)
            places += zip(
                table.at[which].tolist(),
                table.start[which].tolist(),
                table.end[which].tolist(),
                strict=True,
            )
        around: dict[int, NDArray[np.bool_]] = {}
        for number, (sentence, start, end) in enumerate(places):
            for wording in table.around(sentence, start, end):
                if wording not in chosen:
                    inside = around.setdefault(wording, np.zeros(len(places), bool))
                    inside[number] = True
        cases = [table.cases_of[sentence] for sentence, _, _ in places]
        return _Evidence(cases, around, table.read.cases)


class _Evidence(NamedTuple):
    """The mentions by which one label is found."""

    cases: Sequence[NDArray[np.intp]]
    """Cases of each mention."""

    around: Mapping[int, NDArray[np.bool_]]
    """Wording to the mentions that a longer mention of it overlaps."""

    size: int

    def reach(self, alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return in which cases one of the mentions stands that count."""
        found = np.zeros(self.size, dtype=bool)
        for place in np.flatnonzero(alive).tolist():
            found[self.cases[place]] = True
        return found


def apply_proposals(
    version: PromptVersion, proposals: Sequence[TermProposal], language: str = "en"
) -> dict[str, Guide]:
    """Return label to its guide with what is proposed for it, at the end of each part.

    Patterns with ``*`` or ``...`` go to the lexicon, which a language model is not
    shown.

    Parameters
    ----------
    language
        Language of the wordings, ISO 639-1.

    Examples
    --------
    >>> from loop.prompts.version import PromptVersion
    >>> guide = Guide(label="mass", name="Mass", definition="A mass.")
    >>> version = PromptVersion(
    ...     name="x", number=1, system="", user="{{ text }}", guides=(guide,)
    ... )
    >>> found = TermProposal(
    ...     label="mass", kind=ProposalKind.TERM, wording="tumor*", support=("1",),
    ...     against=(), fixed=1, gain=0.1, p=0.5,
    ... )
    >>> apply_proposals(version, [found])["mass"].lexicon[0].terms
    ('tumor*',)
    """
    made: dict[str, Guide] = {}
    for one in proposals:
        guide = made.get(one.label) or _guide_of(version, one.label)
        if is_pattern(one.wording):
            kept = [part for part in guide.lexicon if part.language != language]
            own = [part for part in guide.lexicon if part.language == language]
            part = _add(own[0] if own else Lexicon(language=language), one)
            made[one.label] = replace(guide, lexicon=(*kept, part))
        else:
            made[one.label] = _add(guide, one)
    return made


_Part = TypeVar("_Part", Guide, Lexicon)


def _add(part: _Part, one: TermProposal) -> _Part:
    """Return a part of a guide with one proposal more."""
    if one.kind is ProposalKind.TERM:
        return replace(part, terms=(*part.terms, one.wording))
    if one.kind is ProposalKind.EXCLUSION:
        return replace(part, exclusions=(*part.exclusions, one.wording))
    rule = Clarification(phrase=one.wording, value=Value(one.value))
    return replace(part, clarifications=(*part.clarifications, rule))


def _guide_of(version: PromptVersion, label: str) -> Guide:
    guide = version.guide(label)
    if guide is None:
        raise ValueError(f"{version.ref} has no guide for {label}")
    return guide


def _qualifiers(workspace: WorkspacePaths) -> frozenset[str]:
    """Return words that say how or where a finding is, and name none."""
    return frozenset(
        word
        for cues in read_cues(workspace.labels)
        for phrases in (
            cues.qualifiers,
            cues.restarts,
            cues.sides.left,
            cues.sides.right,
        )
        for phrase in phrases
        for word in phrase.split()
    )


def _as_stances(answers: Codes) -> NDArray[np.int8]:
    """Return codes of answers as statuses; what is not found is 0."""
    made = np.zeros(answers.shape, dtype=np.int8)
    made[answers == ValueCode.PRESENT] = Stance.PRESENT
    made[answers == ValueCode.UNCERTAIN] = Stance.UNCERTAIN
    return made


def _f1(tp: Any, fp: Any, fn: Any) -> Any:
    """Return F1, 0 where nothing is found and nothing is to be found."""
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1e-9)


def _in_each(
    found: NDArray[np.float32], cases: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return in how many of `cases` each wording is found."""
    return (found @ cases.astype(np.float32)).astype(np.float64)


def _contrasts(
    right: NDArray[Any], wrong: NDArray[Any], positives: int, negatives: int
) -> list[float]:
    """Return p-values of one-sided exact tests, adjusted after Holm.

    How likely it is that so many of the cases of a wording are positive, if it had
    nothing to do with the label (Fisher's exact test).
    """
    pairs, places = np.unique(np.stack([right, wrong]), axis=1, return_inverse=True)
    p = [
        _as_many_or_more(one, one + other, positives, negatives)
        for one, other in pairs.T.tolist()
    ]
    return holm([p[place] for place in places.ravel()])


def _as_many_or_more(right: int, drawn: int, positives: int, negatives: int) -> float:
    """Return the upper tail of the hypergeometric distribution.

    Summed from the logarithms of its terms: `scipy.stats` takes longer to import than
    all that is tested here.
    """
    found = np.arange(right, min(positives, drawn) + 1)
    chances = np.exp(
        _log_ways(positives, found)
        + _log_ways(negatives, drawn - found)
        - _log_ways(positives + negatives, drawn)
    )
    return min(float(chances.sum()), 1.0)


def _log_ways(of: int, some: Any) -> Any:
    """Return the logarithm of the binomial coefficient; -inf where there is no way."""
    return gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1)


def _holds(wording: str, words: Sequence[str]) -> bool:
    """Whether a wording has all the words of another one, which finds it anyway.

    A longer one also where it has a word with an open ending for a word of the other.
    """
    own = [word for word in wording.split() if word != GAP]
    known = [word for word in words if word != GAP]
    wider = [word[:-1] for word in own if word.endswith("*") and len(own) > len(known)]

    def has(word: str) -> bool:
        if word in own or any(map(word.startswith, wider)):
            return True
        return word.endswith("*") and any(one.startswith(word[:-1]) for one in own)

    return all(map(has, known))


def _stems(text: str) -> frozenset[str]:
    """Return the beginnings of the words of a text; a plural counts as the word."""
    return frozenset(
        (word.removesuffix("s") if len(word) > 3 and word[-2] != "s" else word)[:_STEM]
        for word in _WORD.findall(fold(text))
    )


def _telling(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(one for text in texts for one in _stems(text) if len(one) > 3)


class _Relations(NamedTuple):
    """What wordings have to do with labels, each of shape (n_wordings, n_labels)."""

    told: NDArray[np.int64]
    """Words of it that stand in what is said of the label."""

    related: NDArray[np.bool_]
    """Whether one of its words tells of the label, and of hardly any other."""

    named: NDArray[np.bool_]
    """Whether all of its words stand in what is said of the label."""

    foreign: NDArray[np.bool_]
    """Whether one of its words names only another label and is not said of this one."""


def _relate(
    wordings: Sequence[str], guides: Sequence[Guide], meanings: Sequence[Label]
) -> _Relations:
    """Return what wordings have to do with labels, by guides and taxonomy.

    A word is known by its first letters.
    """
    names = [
        _telling((_PARENTHESES.sub("", guide.name), *guide.terms)) for guide in guides
    ]
    texts = [
        name
        | _telling((guide.definition, *guide.counts, label.definition))
        | _telling((*label.counts, *label.aliases))
        for name, guide, label in zip(names, guides, meanings, strict=True)
    ]
    shared = Counter(stem for text in texts for stem in text)
    naming = Counter(stem for name in names for stem in name)
    shape = len(wordings), len(guides)
    found = _Relations(
        np.zeros(shape, dtype=np.int64),
        *(np.zeros(shape, dtype=bool) for _ in range(3)),
    )
    for row, wording in enumerate(wordings):
        stems = {stem for stem in _stems(wording) if len(stem) > 3}
        telling = {stem for stem in stems if 0 < shared[stem] <= _RARE_WORD}
        for column, text in enumerate(texts):
            found.told[row, column] = len(stems & text)
            found.related[row, column] = not telling.isdisjoint(text)
            found.named[row, column] = found.related[row, column] and stems <= text
            others = {stem for stem in stems if naming[stem] == 1 and stem not in text}
            found.foreign[row, column] = bool(others)
    return found


def _label_mentions(
    workspace: WorkspacePaths, ground: LabelGround, table: MentionTable
) -> list[list[tuple[int, int, int]]]:
    """Return per label where the version finds it now: sentence, start and end."""
    guides = ground.version.guides
    labels = [guide.label for guide in guides]
    reader = ReportReader(guides, labels, read_cues(workspace.labels))
    columns = {labels.index(label): c for c, label in enumerate(ground.labels)}
    found: list[list[tuple[int, int, int]]] = [[] for _ in ground.labels]
    for number, sentence in enumerate(table.read.sentences):
        for one in reader.judge(sentence):
            column = columns.get(one.wording.target)
            if column is not None and one.stance is Stance.PRESENT:
                found[column].append((number, one.place.start, one.place.end))
    return found
