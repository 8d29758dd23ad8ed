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
    ("4", _choice("judgement", "source_text_defect"), "report a text problem"),
    ("5", _choice("judgement", "answer_right"), "nothing wrong (of a right answer)"),
    ("y", "#review-suggested", "fill in the suggested correction"),
    ("v", "#review-cause-label", "open the label that makes it No Finding or not"),
    ("p", _choice("value", "present"), "right value: present"),
    ("a", _choice("value", "absent"), "right value: absent"),
    ("u", _choice("value", "uncertain"), "right value: uncertain"),
    ("m", "#review-severity input:not(:checked)", "major or minor"),
    ("d", "#review-cause input", "cause: what made it difficult"),
    ("t", _choice("action", "term"), "suggest a term"),
    ("x", _choice("action", "exclusion"), "suggest an exclusion"),
    ("c", _choice("action", "clarification"), "suggest a clarification"),
    ("e", _choice("action", "positive_exemplar"), "suggest a positive exemplar"),
    ("E", _choice("action", "negative_exemplar"), "suggest a negative exemplar"),
    ("G", _choice("action", "general_rule"), "suggest a general rule"),
    ("0", _choice("action", "none"), "suggest no change"),
    ("g", "#review-take", "take the marked words as phrase"),
    ("b", "#review-phrase-turn", "what the marked words could become, and change"),
    ("B", "#review-phrase-cases", "the cases that the words would change"),
    ("T", "#review-try-turn", "try the form on the open case; stop a try"),
    ("f", _typed("phrase"), "write the phrase"),
    ("i", _typed("paraphrase", "rule"), "write the statement or the rule"),
    ("w", _typed("comment"), "write a note for the team"),
    ("h", "#review-anchor input", "regression case: must stay right"),
    ("ctrl+Enter", "#review-submit", "submit and next, also while typing"),
    ("z", "#review-undo", "undo the last submission"),
    ("r", "#review-reserve", "reserve the case, or give it back"),
    ("o", "#review-wide", "evidence of all labels"),
    ("s", "#review-trace-turn", "what was asked, and what came back; again to close"),
    ("/", _typed("search"), "search texts and case ids"),
    ("l", "#review-label input", "choose a label"),
)

_ROW = "#reading-sheet [data-row].is-current"

_LABEL = (
    ("p", f"{_ROW} input[value=present]", "present"),
    ("a", f"{_ROW} input[value=absent]", "absent"),
    ("u", f"{_ROW} input[value=uncertain]", "uncertain"),
    ("ArrowDown", "#reading-sheet .is-after .reading-name", "next label"),
    ("ArrowUp", "#reading-sheet .is-before .reading-name", "label before"),
    ("b", "#reading-sheet [data-act=rest]", "mark the rest absent"),
    ("j", "#reading-sheet [data-act=next]", "next case"),
    ("ctrl+Enter", "#reading-sheet [data-act=next]", "next case"),
    ("k", "#reading-sheet [data-act=previous]", "complete case before"),
    ("d", "#reading-sheet [data-act=defer]", "skip the case for now"),
    ("g", "#reading-sheet .reading-guideline > summary", "open or close the guideline"),
)

_ADJUDICATE = (
    ("p", "#disputes [data-mark=present]", "present"),
    ("a", "#disputes [data-mark=absent]", "absent"),
    ("u", "#disputes [data-mark=uncertain]", "uncertain"),
    ("n", "#disputes [data-mark=no_majority]", "left open"),
    ("j", "#disputes [data-act=after]", "next dispute"),
    ("k", "#disputes [data-act=before]", "dispute before"),
    ("w", "#adjudicate-why textarea", "write the reason"),
    ("ctrl+Enter", "#adjudicate-save", "save the decisions, also while typing"),
)

_JUDGES = (
    *(
        (str(one), f"#judges-sheet input[name=points][value='{one}']", f"points: {one}")
        for one in range(1, 6)
    ),
    ("e", "#judges-sheet [data-add]", "add an error"),
    ("j", "#judges-sheet [data-move=next]", "next pair that waits"),
    ("k", "#judges-sheet [data-move=previous]", "pair before"),
    ("ctrl+Enter", "#judges-sheet .deed.is-first", "hand in, also while typing"),
)

_PROPOSAL = "#revise-proposals .proposal.is-current"

_REVISE = (
    ("ctrl+s", "#revise-save", "save the guide, also while typing"),
    ("ctrl+Enter", "#revise-again", "save the guide and try it, also while typing"),
    ("t", "#revise-try-turn", "try the draft, or try it again; stop a try"),
    ("W", "#revise-why textarea", "write the reason"),
    ("j", "#revise-proposals [data-move=next]", "next proposal of an optimizer"),
    ("k", "#revise-proposals [data-move=previous]", "proposal before"),
    ("a", f"{_PROPOSAL} [data-decide=accept]", "accept the proposal"),
    ("e", f"{_PROPOSAL} [data-open=edit]", "accept it in other words"),
    ("r", f"{_PROPOSAL} [data-open=refuse]", "refuse it, with a reason"),
)

_CLUSTER = "#discover-clusters .proposal.is-current"

_DISCOVER = (
    ("j", "#discover-clusters [data-move=next]", "next cluster"),
    ("k", "#discover-clusters [data-move=previous]", "cluster before"),
    ("n", f"{_CLUSTER} [data-open=name]", "name it: a new label, or a part of one"),
    ("m", f"{_CLUSTER} [data-open=map]", "map it to a label"),
    ("g", f"{_CLUSTER} [data-open=merge]", "merge it with another cluster"),
    ("s", f"{_CLUSTER} [data-open=split]", "split phrases off"),
    ("d", f"{_CLUSTER} [data-decide=drop]", "drop it"),
    ("u", f"{_CLUSTER} [data-decide=leave]", "undecided again"),
    (
        "ctrl+Enter",
        f"{_CLUSTER} form:not([hidden]) [type=submit]",
        "do what the form says, also while typing",
    ),
    ("W", "#discover-why textarea", "write the reason"),
)

_OVERVIEW = (
    ("u", "#overview-unanswered", "unparsed and failed cases of this run, by cause"),
)

_RUNS = (
    ("s", "#runs-trace-turn", "fold up what was asked and what came back"),
    ("x", "#runs-detail [data-act=close]", "close the cases, or the comparison"),
    ("/", "#runs-words input, #runs-words textarea", "find runs"),
)

_OPEN_TAB = '[role="tab"][aria-selected="true"]'

_GROUPS = (
    ("Overview", _OVERVIEW),
    ("Review", _REVIEW),
    ("Label", _LABEL),
    ("Adjudicate", _ADJUDICATE),
    ("Judges", _JUDGES),
    ("Discover", _DISCOVER),
    ("Revise", _REVISE),
    ("Runs", _RUNS),
)

SHORTCUTS = (
    Shortcut("]", f'{_OPEN_TAB} + [role="tab"]', "next page", "Everywhere"),
    Shortcut("[", f'[role="tab"]:has(+ {_OPEN_TAB})', "previous page", "Everywhere"),
    *(Shortcut(*row, group) for group, rows in _GROUPS for row in rows),
)
