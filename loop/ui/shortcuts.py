"""The keys of the workbench: one table for the browser and for the cheat sheet."""

from __future__ import annotations

from typing import NamedTuple


class Shortcut(NamedTuple):
    """One key and what it does."""

    key: str
    """As the browser names it: ``"j"``, ``"Enter"``, ``"ctrl+Enter"``."""

    target: str
    """CSS selector of what is clicked, chosen or given the focus."""

    what: str
    """In words, for the cheat sheet."""

    group: str
    """Heading in the cheat sheet."""


def _choice(radio: str, value: str) -> str:
    """Return the selector of one option of the review form."""
    return f"#review-{radio} input[value={value}]"


def _typed(*boxes: str) -> str:
    """Return the selector of text boxes of the review form, in one line or several."""
    kinds = (f"#review-{box} {kind}" for box in boxes for kind in ("textarea", "input"))
    return ", ".join(kinds)


_REVIEW = (
    ("j", "#review-next", "next pair"),
    ("n", "#review-next", "next pair"),
    ("k", "#review-previous", "previous pair"),
    ("1", _choice("judgement", "model_wrong"), "model wrong"),
    ("2", _choice("judgement", "reference_wrong"), "reference wrong"),
    ("3", _choice("judgement", "guideline_ambiguous"), "guideline ambiguous"),
    ("4", _choice("judgement", "source_text_defect"), "text defect"),
    ("p", _choice("value", "present"), "right value: present"),
    ("a", _choice("value", "absent"), "right value: absent"),
    ("u", _choice("value", "uncertain"), "right value: uncertain"),
    ("m", "#review-severity input:not(:checked)", "major or minor"),
    ("d", "#review-cause input", "cause: what made it difficult"),
    ("t", _choice("action", "term"), "ask for a term"),
    ("x", _choice("action", "exclusion"), "ask for an exclusion"),
    ("c", _choice("action", "clarification"), "ask for a clarification"),
    ("e", _choice("action", "positive_exemplar"), "ask for a positive exemplar"),
    ("E", _choice("action", "negative_exemplar"), "ask for a negative exemplar"),
    ("0", _choice("action", "none"), "ask for nothing"),
    ("g", "#review-take", "take the marked words as phrase"),
    ("f", _typed("phrase"), "write the phrase"),
    ("i", _typed("paraphrase", "rule"), "write the statement or the rule"),
    ("w", _typed("comment"), "write a private note"),
    ("h", "#review-anchor input", "must stay right"),
    ("s", "#review-submit", "submit and next"),
    ("ctrl+Enter", "#review-submit", "submit and next, also while typing"),
    ("r", "#review-reserve", "reserve the case, or give it back"),
    ("o", "#review-wide", "evidence of all labels"),
    ("/", _typed("search"), "search the texts"),
    ("l", "#review-label input", "choose a label"),
)

_REVISE = (
    ("B", "#revise-build", "build a draft from what is ticked"),
    ("C", "#revise-run", "run the check"),
    ("S", "#revise-save", "save the guide"),
    ("W", "#revise-why textarea", "write the reason"),
)

_OPEN_TAB = '[role="tab"][aria-selected="true"]'

SHORTCUTS = (
    Shortcut("]", f'{_OPEN_TAB} + [role="tab"]', "next page", "Everywhere"),
    Shortcut("[", f'[role="tab"]:has(+ {_OPEN_TAB})', "previous page", "Everywhere"),
    *(Shortcut(key, target, what, "Review") for key, target, what in _REVIEW),
    *(Shortcut(key, target, what, "Revise") for key, target, what in _REVISE),
)
