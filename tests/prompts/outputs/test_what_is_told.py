"""What is made of answers that are not quite as asked: values, repairs, problems."""

import json
import sys

import pytest

from loop.core.records import Item
from loop.prompts.outputs.base import get_contract
from tests.prompts.outputs.judging import CATEGORIES, PAIR, answer

SAME = object()
"""The same fields as of the first answer of the contract, which needs no repair."""


def changed(data, **parts):
    """Return data with other parts; ``...`` takes one away."""
    return {k: v for k, v in {**data, **parts}.items() if v is not ...}


EMPTY = {name: [] for name in CATEGORIES}
SECTIONS = {
    "explanation": "They differ.",
    "significant_errors": {**EMPTY, "location": ["the side"]},
    "insignificant_errors": {**EMPTY, "severity": ["small for tiny"]},
    "matched_findings": ["normal heart", "no fluid"],
}
OMITTED = {
    "category": "omission",
    "significant": True,
    "reference": "No pneumothorax",
    "candidate": "",
    "why": "It is missing.",
}
SIDE = {
    "category": "location",
    "significant": False,
    "reference": "left effusion",
    "candidate": "right effusion",
    "why": "Another side.",
}
ONE = {
    "sentence_index": 0,
    "original": "Small left effusion.",
    "modified": "Large left effusion.",
    "explanation": "It grew.",
    "severity": "major",
    "harm_potential": "",
}
WHOLE = {
    "modified_report": "Large left effusion. Normal heart.",
    "changes_detail": [ONE],
}


def second(**c):
    """Return an answer with two changes, of which the second is changed."""
    return {**WHOLE, "changes_detail": [ONE, changed(ONE, **c)]}


LIST = {"errors": [OMITTED, SIDE], "matched_findings": 2}


def second_error(**c):
    """Return a list of two errors, of which the second is changed."""
    return {**LIST, "errors": [OMITTED, changed(SIDE, **c)]}


def matched(w, weight="urgent", *a):
    """Return a finding that both report, with errors in its attributes."""
    return {
        "finding": w,
        "weight": weight,
        "attribute_errors": [{"type": t, "severity": s} for t, s in a],
    }


def finding(w, weight="urgent"):
    """Return a finding that one of the two reports."""
    return {"finding": w, "weight": weight}


def weighted(m=(), s=(), f=()):
    """Return an answer with matched, missed and false findings."""
    return {
        "matched_findings": list(m),
        "missed_findings": list(s),
        "false_findings": list(f),
    }


def correction(severity="Urgent error", **k):
    """Return the correction of a line."""
    return changed(
        {
            "corrections": "Small left effusion.",
            "clinical severity": severity,
            "comments": "The side.",
            "error category": ["location"],
        },
        **k,
    )


COUNTS = dict.fromkeys(CATEGORIES, 0)
TOTALS = {
    "significant_counts": {**COUNTS, "location": 2},
    "insignificant_counts": {**COUNTS, "omission": 1},
}
JUDGED = {
    "phrases": [
        {"phrase": 0, "entailed": True, "evidence": [1]},
        {"phrase": 1, "entailed": False, "evidence": []},
    ]
}


def held(**c):
    """Return an answer about two phrases, of which the second is changed."""
    return {"phrases": [JUDGED["phrases"][0], changed(JUDGED["phrases"][1], **c)]}


TEXT = Item(
    id="t", variables={"text": "Small left effusion. No pneumothorax. Normal heart."}
)
CAND = Item(
    id="p",
    variables={
        "reference": "Small left effusion. Rib fracture.",
        "candidate": "1. Small right effusion of 1.5 cm. Heart normal.\nLungs clear.",
    },
)
HELD = Item(
    id="h",
    variables={
        "reference_phrases": "[0] left effusion\n[1] heart\n[2] nodule",
        "candidate_phrases": "[0] effusion\n[1] no fluid",
    },
)
EXTRACTED = ("label_values", "findings", "binary")
FIELDS = {
    "entailment": ("precision",),
    "phrases": ("phrases",),
    "changes": ("severity",),
    **dict.fromkeys(EXTRACTED, ("edema", "fracture")),
}
ITEMS = {
    "entailment": HELD,
    "phrases": TEXT,
    "changes": TEXT,
    "plausible": TEXT,
    "line_corrections": CAND,
    **dict.fromkeys(EXTRACTED, TEXT),
}

CASES = {
    "label_values": [
        (
            {
                "edema": "absent",
                "fracture": {"value": "present", "evidence": "effusion"},
            },
            {"edema": "absent", "fracture": ("present", [11, 19])},
            (),
        ),
        (
            {
                "fracture": {"value": "present", "evidence": "effusion"},
                "edema": {"value": "absent"},
            },
            SAME,
            (),
        ),
        (
            {"edema": "No", "fracture": {"Value": "YES", "evidence": "effusion"}},
            SAME,
            (
                "edema: value spelled differently",
                "edema: bare value",
                "fracture: value spelled differently",
            ),
        ),
        (
            {
                "Edema": "absent",
                "fracture": {"value": 1, "evidence": "effusion", "x": 1},
            },
            SAME,
            (
                "edema: label spelled differently",
                "fracture: a key that is not value or evidence ignored",
                "fracture: value spelled differently",
            ),
        ),
        (
            {
                "edema": {"value": "absent", "notes": ["spelling"]},
                "fracture": {"value": "present", "evidence": "effusion"},
            },
            SAME,
            ("edema: a misspelt word corrected",),
        ),
        (
            {
                "edema": {"value": "absent", "notes": ["other"]},
                "fracture": {"value": "present", "span": [11, 19]},
            },
            SAME,
            ("edema: a key that is not value or evidence ignored",),
        ),
        (
            {"edema": "absent", "fracture": {"value": "present", "span": [11, 19]}},
            SAME,
            (),
        ),
        (
            {
                "edema": "absent",
                "fracture": {
                    "value": "present",
                    "evidence": "effusion",
                    "span": [0, 5],
                },
            },
            SAME,
            ("fracture: span corrected from the quote",),
        ),
        (
            {
                "edema": "absent",
                "fracture": {"value": "present", "evidence": "EFFUSION"},
            },
            SAME,
            ("fracture: evidence differs in case or space",),
        ),
        (
            {"edema": "absent", "fracture": {"value": "present", "evidence": "e"}},
            {"edema": "absent", "fracture": ("present", [7, 8])},
            ("fracture: evidence occurs more than once, first taken",),
        ),
        (
            {"edema": "absent", "fracture": {"value": "present", "evidence": "zebra"}},
            {"edema": "absent", "fracture": "present"},
            ("fracture: evidence is not in the text",),
        ),
        (
            {"edema": "absent", "fracture": {"value": "present", "evidence": 3}},
            {"edema": "absent", "fracture": "present"},
            ("fracture: evidence is not a text",),
        ),
        (
            {"edema": "absent", "fracture": {"value": "present", "span": [9, 5]}},
            {"edema": "absent", "fracture": "present"},
            ("fracture: span is not inside the text",),
        ),
        ({"edema": "absent"}, None, ("no answer for fracture",)),
        (
            {"mass": "absent"},
            None,
            ("no answer for edema, fracture and 1 unknown field(s)",),
        ),
        (
            {"edema": "absent", "fracture": "present", "mass": "absent"},
            None,
            ("fracture: bare value", "1 field(s) that were not asked for"),
        ),
        (
            {"edema": "perhaps", "fracture": "absent"},
            None,
            ("the value of edema is not one of the known words",),
        ),
        (
            {"edema": {"evidence": "x"}, "fracture": "absent"},
            None,
            ("no value for edema",),
        ),
        (
            {"edema": None, "fracture": "absent"},
            None,
            ("the value of edema is not one of the known words",),
        ),
        (
            '{"edema":"absent","edema":"absent","fracture":"uncertain"}',
            {"edema": "absent", "fracture": "uncertain"},
            ("edema: given more than once", "fracture: bare value"),
        ),
        (
            '{"edema":"absent","Edema":"present","fracture":"absent"}',
            None,
            (
                "edema: label spelled differently",
                "edema: bare value",
                "two different values for edema",
            ),
        ),
        (
            '{"edema":{"value":"absent","Value":"present"},"fracture":"absent"}',
            None,
            ("two different value keys for edema",),
        ),
        (
            '{"edema":"absent","fracture":"absent"}' * 2,
            {"edema": "absent", "fracture": "absent"},
            ("the same object given more than once",),
        ),
        (
            '{"edema":"absent","fracture":"absent"} {"edema":"absent"}',
            None,
            ("2 different objects in the answer",),
        ),
        (
            '<think>x</think>{"edema":"absent","fracture":True,}',
            {"edema": "absent", "fracture": "present"},
            (
                "thinking removed",
                "Python literals read as JSON",
                "trailing comma removed",
                "fracture: value spelled differently",
                "fracture: bare value",
            ),
        ),
        (
            "{'edema': 'absent', 'fracture': 'absent'} So.",
            {"edema": "absent", "fracture": "absent"},
            ("text around the object removed", "single quotes read as double quotes"),
        ),
        (
            '{"edema": "absent"',
            None,
            ("not readable as JSON at character 18 of the answer",),
        ),
        ("<think>{}", None, ("thinking removed", "there is no answer after thinking")),
        ("", None, ("the answer is empty",)),
        ("absent", None, ("there is no JSON object in the answer",)),
    ],
    "findings": [
        (
            {
                "findings": [
                    {"label": "fracture", "value": "present", "evidence": "effusion"}
                ]
            },
            {"edema": "absent", "fracture": ("present", [11, 19])},
            (),
        ),
        ({"findings": []}, {"edema": "absent", "fracture": "absent"}, ()),
        (
            {
                "findings": [
                    {"label": "fracture", "value": "Present", "evidence": "effusion"}
                ]
            },
            SAME,
            ("fracture: value spelled differently",),
        ),
        (
            {
                "Findings": [
                    {"Label": "Fracture", "value": "present", "evidence": "effusion"}
                ]
            },
            SAME,
            (
                "the list of findings spelled differently",
                "fracture: label spelled differently",
            ),
        ),
        (
            {
                "findings": [
                    {"label": "edema", "value": "absent"},
                    {"label": "fracture", "value": "uncertain"},
                ]
            },
            {"edema": "absent", "fracture": "uncertain"},
            ("edema: absent although listed",),
        ),
        (
            {
                "findings": [
                    {"label": "fracture", "value": "present", "evidence": "effusion"}
                ]
                * 2
            },
            SAME,
            ("fracture: given more than once",),
        ),
        (
            {
                "findings": [
                    {"label": "fracture", "value": "present"},
                    {"label": "fracture", "value": "uncertain"},
                ]
            },
            None,
            ("two different values for fracture",),
        ),
        (
            {
                "findings": [
                    {"label": "edema", "value": "present"},
                    {"label": "mass", "value": "present"},
                ]
            },
            None,
            ("1 finding(s) that were not asked for",),
        ),
        (
            {
                "findings": [
                    {"label": "edema", "value": "present"},
                    {"value": "present"},
                ]
            },
            None,
            ("finding 2 has no label",),
        ),
        (
            {
                "findings": [
                    {"label": "edema", "value": "present"},
                    {"label": "edema", "Label": "fracture", "value": "present"},
                ]
            },
            None,
            ("finding 2 has two different labels",),
        ),
        (
            {"findings": [{"label": "edema", "value": "present"}, 3]},
            None,
            ("finding 2 is not an object",),
        ),
        ({"findings": [{"label": "edema"}]}, None, ("no value for edema",)),
        ({"findings": {}}, None, ("the findings are not a list",)),
        ({"findings": [], "x": 1}, None, ("1 field(s) that were not asked for",)),
        ({"x": []}, None, ("there is no list of findings in the answer",)),
        (
            '{"findings":[],"findings":[]}',
            {"edema": "absent", "fracture": "absent"},
            ("the list of findings given more than once",),
        ),
        (
            '{"findings":[],"findings":[{"label":"edema","value":"present"}]}',
            None,
            ("two different lists of findings in the answer",),
        ),
        (
            '{"findings":[]} and edema',
            None,
            ("there are words beside the answer, which may say more",),
        ),
        ("[]", None, ("there is no JSON object in the answer",)),
    ],
    "binary": [
        (
            {
                "edema": "absent",
                "fracture": {"value": "present", "evidence": "effusion"},
            },
            {"edema": "absent", "fracture": ("present", [11, 19])},
            (),
        ),
        (
            {"edema": "uncertain", "fracture": "present"},
            None,
            (
                "edema: bare value",
                "fracture: bare value",
                "uncertain for edema: only present or absent is asked",
            ),
        ),
        (
            {"edema": "uncertain", "fracture": "possible"},
            None,
            (
                "edema: bare value",
                "fracture: value spelled differently",
                "fracture: bare value",
                "uncertain for edema, fracture: only present or absent is asked",
            ),
        ),
    ],
    "changes": [
        (
            second(),
            {
                "severity": (2, ("major", "", ""), ("major", "", "")),
                "modified_report": "Large left effusion. Normal heart.",
                "sentence_index": (2, ("0", "", ""), ("0", "", "")),
                "original": (
                    2,
                    ("Small left effusion.", "", ""),
                    ("Small left effusion.", "", ""),
                ),
                "modified": (
                    2,
                    ("Large left effusion.", "", ""),
                    ("Large left effusion.", "", ""),
                ),
                "explanation": (2, ("It grew.", "", ""), ("It grew.", "", "")),
                "harm_potential": (2, ("", "", ""), ("", "", "")),
            },
            (),
        ),
        (json.dumps(second()) + " Done.", SAME, ("text around the object removed",)),
        (
            second(sentence_index=" 0 "),
            SAME,
            ("change 2: a number spelled differently",),
        ),
        (
            second(sentence_index=3),
            {
                "severity": (2, ("major", "", ""), ("major", "", "")),
                "modified_report": "Large left effusion. Normal heart.",
                "sentence_index": (2, ("0", "", ""), ("3", "", "")),
                "original": (
                    2,
                    ("Small left effusion.", "", ""),
                    ("Small left effusion.", "", ""),
                ),
                "modified": (
                    2,
                    ("Large left effusion.", "", ""),
                    ("Large left effusion.", "", ""),
                ),
                "explanation": (2, ("It grew.", "", ""), ("It grew.", "", "")),
                "harm_potential": (2, ("", "", ""), ("", "", "")),
            },
            (),
        ),
        (
            second(sentence_index="x"),
            None,
            ("change 2 does not say which sentence it is in",),
        ),
        (
            second(sentence_index=...),
            None,
            ("change 2 does not say which sentence it is in",),
        ),
        (second(original=...), None, ("change 2: original is missing",)),
        (second(modified=...), None, ("change 2: modified is missing",)),
        (second(harm_potential=...), SAME, ("change 2: harm_potential is empty",)),
        (second(modified=5), None, ("change 2: modified is not a text",)),
        (second(modified="Small left effusion."), None, ("change 2 changes nothing",)),
        (second(more=1), SAME, ("change 2: a key that was not asked for ignored",)),
        ({**WHOLE, "changes_detail": [ONE, "x"]}, None, ("change 2 is not an object",)),
        (
            {**second(), "note": "x"},
            SAME,
            ("the answer: a key that was not asked for ignored",),
        ),
        (
            {**WHOLE, "changes_detail": ONE},
            {
                "severity": (1, ("major", "", "")),
                "modified_report": "Large left effusion. Normal heart.",
                "sentence_index": (1, ("0", "", "")),
                "original": (1, ("Small left effusion.", "", "")),
                "modified": (1, ("Large left effusion.", "", "")),
                "explanation": (1, ("It grew.", "", "")),
                "harm_potential": (1, ("", "", "")),
            },
            ("a single change read as a list",),
        ),
        ({**WHOLE, "changes_detail": "x"}, None, ("changes_detail is not a list",)),
        ({**WHOLE, "modified_report": " "}, None, ("modified_report is not a text",)),
        (changed(WHOLE, modified_report=...), None, ("modified_report is missing",)),
        (changed(WHOLE, changes_detail=...), None, ("changes_detail is missing",)),
        ({**WHOLE, "changes_detail": [ONE] * 21}, None, ("more than 20 changes",)),
        (
            {"Modified report": "Large.", "changes-detail": []},
            {"modified_report": "Large."},
            ("the answer: a key spelled differently",),
        ),
    ],
    "plausible": [
        ({"plausible": True, "reason": "ok"}, {"plausible": (1, ("ok", "", ""))}, ()),
        (
            {"plausible": False, "reason": "region"},
            {"plausible": (0, ("region", "", ""))},
            (),
        ),
        ({"plausible": False, "reason": ""}, {"plausible": (0, ("", "", ""))}, ()),
        ({"plausible": True}, {"plausible": (1, ("", "", ""))}, ("reason is empty",)),
        (
            {"plausible": " YES ", "reason": "fine"},
            {"plausible": (1, ("fine", "", ""))},
            ("plausible spelled differently",),
        ),
        (
            {"plausible": "no", "reason": "OK."},
            None,
            (
                "plausible spelled differently",
                "it calls the changes implausible and ok",
            ),
        ),
        (
            {"plausible": 1, "reason": "ok"},
            None,
            ("it does not say whether the changes are plausible",),
        ),
        (
            {"reason": "ok"},
            None,
            ("it does not say whether the changes are plausible",),
        ),
        ({"plausible": True, "reason": 1}, None, ("reason is not a text",)),
        (
            {"plausible": True, "reason": "ok", "x": 1},
            None,
            ("the answer: a key that was not asked for",),
        ),
        (
            '{"plausible":true,"plausible":true,"reason":"ok"}',
            None,
            ("the answer: a key occurs twice",),
        ),
        (
            '```json\n{"plausible":true,"reason":"ok"}\n```',
            SAME,
            ("code fence removed",),
        ),
        ("Yes.", None, ("there is no JSON object in the answer",)),
        ("", None, ("there is no answer",)),
    ],
    "error_list": [
        (
            LIST,
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "insignificant.location": (
                    1,
                    (
                        "right effusion",
                        "location",
                        "insignificant",
                        [6, 19, "reference"],
                        [6, 20, "candidate"],
                    ),
                ),
                "matched": 2,
            },
            (),
        ),
        (
            {**LIST, "matched_findings": "Two."},
            SAME,
            ("matched: a count spelled differently",),
        ),
        (
            {**LIST, "matched_findings": ["a", "b", "c"]},
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "insignificant.location": (
                    1,
                    (
                        "right effusion",
                        "location",
                        "insignificant",
                        [6, 19, "reference"],
                        [6, 20, "candidate"],
                    ),
                ),
                "matched": (3, ("a", "", ""), ("b", "", ""), ("c", "", "")),
            },
            ("matched: what is listed was counted",),
        ),
        (
            {**LIST, "matched_findings": -1},
            None,
            ("matched: a count that is not understood",),
        ),
        ({**LIST, "explanation": "x"}, SAME, ("a key that was not asked for ignored",)),
        (
            {"Errors": LIST["errors"], "Matched findings": 2},
            SAME,
            ("the answer: a key spelled differently",),
        ),
        (
            second_error(category="(c)"),
            SAME,
            ("error 2: category spelled differently",),
        ),
        (
            second_error(category="Location"),
            SAME,
            ("error 2: category spelled differently",),
        ),
        (
            second_error(category="g"),
            None,
            ("error 2 has no category that was asked for",),
        ),
        (
            second_error(category=...),
            None,
            ("error 2 has no category that was asked for",),
        ),
        (
            second_error(significant="no"),
            SAME,
            ("error 2: significance spelled differently",),
        ),
        (
            second_error(significant="perhaps"),
            None,
            ("error 2 does not say whether it is significant",),
        ),
        (
            second_error(significant=...),
            None,
            ("error 2 does not say whether it is significant",),
        ),
        (
            second_error(significant=0),
            SAME,
            ("error 2: significance spelled differently",),
        ),
        (
            second_error(more=1),
            SAME,
            ("error 2: a key that was not asked for ignored",),
        ),
        (second_error(why=1), None, ("error 2: its words are not a text",)),
        (
            second_error(candidate=None),
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "insignificant.location": (
                    1,
                    (
                        "left effusion",
                        "location",
                        "insignificant",
                        [6, 19, "reference"],
                    ),
                ),
                "matched": 2,
            },
            (),
        ),
        (
            second_error(candidate="nowhere"),
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "insignificant.location": (
                    1,
                    ("nowhere", "location", "insignificant", [6, 19, "reference"]),
                ),
                "matched": 2,
            },
            ("error 2: evidence is not in the candidate",),
        ),
        (
            second_error(reference="e"),
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "insignificant.location": (
                    1,
                    (
                        "right effusion",
                        "location",
                        "insignificant",
                        [7, 8, "reference"],
                        [6, 20, "candidate"],
                    ),
                ),
                "matched": 2,
            },
            ("error 2: evidence occurs more than once, first taken",),
        ),
        (
            second_error(reference="LEFT  effusion"),
            SAME,
            ("error 2: evidence differs in case or space",),
        ),
        (
            second_error(reference="", candidate=""),
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "insignificant.location": (
                    1,
                    ("Another side.", "location", "insignificant"),
                ),
                "matched": 2,
            },
            (),
        ),
        (
            {**LIST, "errors": [OMITTED, OMITTED]},
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "matched": 2,
            },
            ("an error given more than once counted once",),
        ),
        (
            {**LIST, "errors": [OMITTED, {**OMITTED, "significant": False}]},
            None,
            ("error 2: it was given another weight",),
        ),
        ({**LIST, "errors": [OMITTED, "x"]}, None, ("error 2 is not an object",)),
        ({**LIST, "errors": "x"}, None, ("the errors are not a list",)),
        (changed(LIST, errors=...), None, ("errors is missing",)),
        (changed(LIST, matched_findings=...), None, ("matched_findings is missing",)),
        (
            {**LIST, "rules_score": 0.25},
            {
                "significant.omission": (
                    1,
                    (
                        "No pneumothorax",
                        "omission",
                        "significant",
                        [21, 36, "reference"],
                    ),
                ),
                "insignificant.location": (
                    1,
                    (
                        "right effusion",
                        "location",
                        "insignificant",
                        [6, 19, "reference"],
                        [6, 20, "candidate"],
                    ),
                ),
                "matched": 2,
                "score": 0.25,
            },
            (),
        ),
        (
            {**LIST, "rules_score": 2},
            None,
            ("the answer: a key that was not asked for",),
        ),
        ("[]", None, ("there is no JSON object in the answer",)),
    ],
    "error_list_unweighted": [
        (
            {
                "errors": [
                    changed(OMITTED, significant=...),
                    changed(SIDE, significant=..., category="B"),
                ],
                "matched_findings": 0,
            },
            {
                "omission": (
                    2,
                    ("No pneumothorax", "omission", "", [21, 36, "reference"]),
                    (
                        "right effusion",
                        "omission",
                        "",
                        [6, 19, "reference"],
                        [6, 20, "candidate"],
                    ),
                )
            },
            ("error 2: category spelled differently",),
        ),
        (
            LIST,
            {
                "omission": (
                    1,
                    ("No pneumothorax", "omission", "", [21, 36, "reference"]),
                ),
                "location": (
                    1,
                    (
                        "right effusion",
                        "location",
                        "",
                        [6, 19, "reference"],
                        [6, 20, "candidate"],
                    ),
                ),
                "matched": 2,
            },
            (
                "error 1: a key that was not asked for ignored",
                "error 2: a key that was not asked for ignored",
            ),
        ),
    ],
    "error_counts": [
        (TOTALS, {"significant.location": 2, "insignificant.omission": 1}, ()),
        (
            {
                "significant_errors": TOTALS["significant_counts"],
                "insignificant_errors": {**COUNTS, "omission": 1},
            },
            SAME,
            ("the answer: a key spelled differently",),
        ),
        (
            {
                "significant_counts": {"A": 0, "b": 0, "c": 2, "d": 0, "e": 0, "f": 0},
                "insignificant_counts": COUNTS,
            },
            {"significant.location": 2},
            ("significant: a key spelled differently",),
        ),
        (
            changed(TOTALS, insignificant_counts=...),
            None,
            ("insignificant: the counts are missing",),
        ),
        (
            changed(TOTALS, significant_counts=3),
            None,
            ("significant: the counts are missing",),
        ),
        (
            {**TOTALS, "significant_counts": {**COUNTS, "location": "2"}},
            None,
            ("significant: no count of location is understood",),
        ),
        (
            {**TOTALS, "insignificant_counts": changed(COUNTS, severity=...)},
            None,
            ("insignificant: no count of severity is understood",),
        ),
        (
            {**TOTALS, "insignificant_counts": {**COUNTS, "x": 1}},
            None,
            ("insignificant: a key that was not asked for",),
        ),
        ({**TOTALS, "x": 1}, None, ("the answer: a key that was not asked for",)),
        (
            {**TOTALS, "significant_counts": {**COUNTS, "omitted_change": 1000}},
            None,
            ("significant: no count of omitted_change is understood",),
        ),
    ],
    "error_list_weighted": [
        (
            weighted(
                [
                    matched(
                        "normal heart",
                        "urgent",
                        ("location", "significant"),
                        ("temporal", "negligible"),
                    )
                ],
                [finding("No pneumothorax", "actionable_not_urgent")],
                [finding("Rib fracture", "not_actionable_not_urgent")],
            ),
            {
                "crimson": 0.2778,
                "matched": (1, ("normal heart", "matched", "urgent")),
                "missed": (
                    1,
                    (
                        "No pneumothorax",
                        "missed",
                        "actionable_not_urgent",
                        [21, 36, "reference"],
                    ),
                ),
                "false": (
                    1,
                    (
                        "Rib fracture",
                        "false",
                        "not_actionable_not_urgent",
                        [22, 34, "candidate"],
                    ),
                ),
                "attribute": (
                    2,
                    ("normal heart", "location", "significant"),
                    ("normal heart", "temporal", "negligible"),
                ),
            },
            (),
        ),
        (
            weighted([matched("a")], [finding("b")], [finding("b")]),
            {
                "matched": (1, ("a", "matched", "urgent")),
                "missed": (1, ("b", "missed", "urgent")),
                "false": (1, ("b", "false", "urgent", [24, 25, "candidate"])),
            },
            (),
        ),
        (
            weighted([matched("a"), matched("A ")]),
            {"crimson": 1.0, "matched": (1, ("a", "matched", "urgent"))},
            ("matched_findings: a finding given more than once counted once",),
        ),
        (
            weighted([matched("a"), matched("a", "benign_expected")]),
            None,
            ("matched_findings 2: it was given otherwise before",),
        ),
        (
            weighted(s=[finding("a"), finding("b", "worst")]),
            None,
            ("missed_findings 2: weight: it is none of those that are known",),
        ),
        (
            weighted(f=[finding("a"), finding(" ")]),
            None,
            ("false_findings 2: it does not say which finding",),
        ),
        (
            weighted(f=[finding("a"), 3]),
            None,
            ("false_findings 2: it is not an object",),
        ),
        (
            weighted([matched("a"), finding("b")]),
            None,
            ("matched_findings 2: the list of attribute errors is missing",),
        ),
        (
            weighted([{**matched("a"), "attribute_errors": ["x"]}]),
            None,
            ("matched_findings 1: an attribute error is not an object",),
        ),
        (
            weighted([matched("a", "urgent", ("side", "significant"))]),
            None,
            ("matched_findings 1: type: it is none of those that are known",),
        ),
        (
            weighted([matched("a", "urgent", ("Location", "significant"))]),
            {
                "crimson": 0.6667,
                "matched": (1, ("a", "matched", "urgent")),
                "attribute": (1, ("a", "location", "significant")),
            },
            ("matched_findings 1: type spelled differently",),
        ),
        (
            weighted([matched("a", "urgent", ("location", "Very"))]),
            None,
            ("matched_findings 1: severity: it is none of those that are known",),
        ),
        (
            weighted([matched("a", "Urgent")]),
            {"crimson": 1.0, "matched": (1, ("a", "matched", "urgent"))},
            ("matched_findings 1: weight spelled differently",),
        ),
        (
            weighted([{**matched("a"), "x": 1}]),
            {"crimson": 1.0, "matched": (1, ("a", "matched", "urgent"))},
            ("matched_findings 1: a key that was not asked for ignored",),
        ),
        (
            changed(weighted(), missed_findings=...),
            None,
            ("missed_findings: the list is missing",),
        ),
        ({**weighted(), "x": []}, None, ("the answer: a key that was not asked for",)),
        (
            {"Matched findings": [], "missed findings": [], "false findings": []},
            {"crimson": 1.0},
            ("the answer: a key spelled differently",),
        ),
    ],
    "line_corrections": [
        ({}, {}, ()),
        (
            {
                "0": correction(),
                "2": correction("Emergent error"),
                "None": correction("Not actionable"),
            },
            {
                "line_sum": (
                    8,
                    ("The side.", "location", "urgent error", [0, 34, "candidate"]),
                    ("The side.", "location", "emergent error", [49, 61, "candidate"]),
                    ("The side.", "location", "not actionable"),
                ),
                "line_max": 4,
                "line_mean": 2.0,
            },
            (),
        ),
        (
            {"Line 1": correction(), "[2]": correction("urgent")},
            {
                "line_sum": (
                    6,
                    ("The side.", "location", "urgent error", [35, 48, "candidate"]),
                    ("The side.", "location", "urgent", [49, 61, "candidate"]),
                ),
                "line_max": 3,
                "line_mean": 2.0,
            },
            (
                "correction 1: a line number spelled differently",
                "correction 2: a line number spelled differently",
                "correction 2: severity spelled differently",
            ),
        ),
        (
            {" 1": correction()},
            {
                "line_sum": (
                    3,
                    ("The side.", "location", "urgent error", [35, 48, "candidate"]),
                ),
                "line_max": 3,
                "line_mean": 1.0,
            },
            ("correction 1: a line number spelled differently",),
        ),
        ({"3": correction()}, None, ("correction 1: the candidate has no such line",)),
        (
            {"0": correction(), "x": correction()},
            None,
            ("correction 2: its key is not a line number",),
        ),
        (
            {"0": correction(), "00": correction()},
            None,
            ("correction 2: its line is corrected twice",),
        ),
        ({"0": correction(), "1": "x"}, None, ("correction 2: it is not an object",)),
        (
            {"0": correction(), "1": correction(corrections=...)},
            None,
            ("correction 2: it does not say what to correct",),
        ),
        (
            {"0": correction(), "1": correction("bad")},
            None,
            ("correction 2: a severity that is not known",),
        ),
        (
            {"0": correction(**{"error category": ["style", "Omission"]})},
            {
                "line_sum": (
                    3,
                    ("The side.", "omission", "urgent error", [0, 34, "candidate"]),
                ),
                "line_max": 3,
                "line_mean": 1.0,
            },
            ("correction 1: a category that was not asked for ignored",),
        ),
        (
            {"0": correction(**{"error category": "location"})},
            {
                "line_sum": (
                    3,
                    ("The side.", "location", "urgent error", [0, 34, "candidate"]),
                ),
                "line_max": 3,
                "line_mean": 1.0,
            },
            ("correction 1: a category that was not asked for ignored",),
        ),
        (
            {"0": correction(comments=" ")},
            {
                "line_sum": (
                    3,
                    (
                        "Small left effusion.",
                        "location",
                        "urgent error",
                        [0, 34, "candidate"],
                    ),
                ),
                "line_max": 3,
                "line_mean": 1.0,
            },
            (),
        ),
        (
            {"0": correction(comments=...)},
            {
                "line_sum": (
                    3,
                    (
                        "Small left effusion.",
                        "location",
                        "urgent error",
                        [0, 34, "candidate"],
                    ),
                ),
                "line_max": 3,
                "line_mean": 1.0,
            },
            (),
        ),
        (
            {"0": correction(more=1)},
            {
                "line_sum": (
                    3,
                    ("The side.", "location", "urgent error", [0, 34, "candidate"]),
                ),
                "line_max": 3,
                "line_mean": 1.0,
            },
            ("correction 1: a key that was not asked for ignored",),
        ),
        (
            {"None": correction()},
            {
                "line_sum": (3, ("The side.", "location", "urgent error")),
                "line_max": 3,
                "line_mean": 0.75,
            },
            (),
        ),
        (
            "{} and more",
            None,
            ("there are words beside the answer, which may say more",),
        ),
        (
            "[{}]",
            None,
            ("text around the object removed", "there is more than an empty object"),
        ),
    ],
    "entailment": [
        (
            JUDGED,
            {
                "precision": (
                    0.5,
                    ("effusion", "entailed", "", [22, 27, "reference_phrases"]),
                    ("no fluid", "not_entailed", ""),
                )
            },
            (),
        ),
        (held(phrase="1"), SAME, ()),
        (held(phrase=" [1] "), SAME, ()),
        (held(phrase="No fluid."), SAME, ()),
        (held(phrase="nothing"), None, ("entry 2 judges a phrase that is not there",)),
        (held(phrase=2), None, ("it judges a phrase that is not there",)),
        (held(phrase=0), None, ("it judges a phrase twice",)),
        (
            held(entailed=...),
            None,
            ("entry 2 does not say exactly once whether it is entailed",),
        ),
        (
            held(entailed=..., status="Entailment", evidence=["left effusion"]),
            {
                "precision": (
                    1.0,
                    ("effusion", "entailed", "", [22, 27, "reference_phrases"]),
                    ("no fluid", "entailed", "", [4, 17, "reference_phrases"]),
                )
            },
            (),
        ),
        (
            held(status="entailed"),
            None,
            ("entry 2 does not say exactly once whether it is entailed",),
        ),
        (
            held(entailed=..., status="perhaps"),
            None,
            ("entry 2 does not say whether it is entailed",),
        ),
        (held(entailed="yes"), None, ("entry 2 does not say whether it is entailed",)),
        (held(entailed=True), None, ("a phrase is entailed without evidence",)),
        (held(evidence=...), SAME, ()),
        (held(evidence=[3]), None, ("its evidence cites a phrase that is not there",)),
        (held(evidence=["x"]), None, ("entry 2 cites a phrase that is not there",)),
        (held(evidence=1), None, ("entry 2: its evidence is not a list",)),
        (held(more=1), None, ("entry 2: a key that was not asked for",)),
        ({"phrases": JUDGED["phrases"][:1]}, None, ("it leaves out a phrase",)),
        ({"phrases": [JUDGED["phrases"][0], 1]}, None, ("entry 2 is not an object",)),
        ({"phrases": "x"}, None, ("phrases is missing, or no list",)),
        ({}, None, ("phrases is missing, or no list",)),
        ("[0] entailed by [1]\n[1] not entailed", SAME, ("phrases read from lines",)),
        (
            "1. entailed: 0 and 2\n- 0) Entailed by 1, 2.",
            {
                "precision": (
                    1.0,
                    (
                        "effusion",
                        "entailed",
                        "",
                        [22, 27, "reference_phrases"],
                        [32, 38, "reference_phrases"],
                    ),
                    (
                        "no fluid",
                        "entailed",
                        "",
                        [4, 17, "reference_phrases"],
                        [32, 38, "reference_phrases"],
                    ),
                )
            },
            ("phrases read from lines",),
        ),
        (
            "[0] entailed by [1]",
            None,
            ("phrases read from lines", "it leaves out a phrase"),
        ),
        (
            "[0] entailed\n[1] not entailed",
            None,
            ("phrases read from lines", "a phrase is entailed without evidence"),
        ),
        (
            "no idea",
            None,
            ("there is neither a JSON object nor a line for each phrase",),
        ),
        (
            "[0] entailed by [1]\n[1] not entailed\n[1] not entailed",
            None,
            ("phrases read from lines", "it judges a phrase twice"),
        ),
    ],
    "phrases": [
        (
            {"phrases": ["Small left effusion", "No pneumothorax", "normal"]},
            {
                "phrases": (
                    3,
                    ("Small left effusion", "", "", [0, 19]),
                    ("No pneumothorax", "", "", [21, 36]),
                    ("normal", "", ""),
                )
            },
            (),
        ),
        (
            {"phrases": ["a", "A ", "b\n\tc"]},
            {"phrases": (2, ("a", "", "", [2, 3]), ("b c", "", ""))},
            ("a phrase given more than once counted once",),
        ),
        ({"phrases": []}, {}, ()),
        ({"phrases": ["..."]}, None, ("a phrase has no words",)),
        ({"phrases": ["None."]}, None, ('"none" is listed as a phrase',)),
        ({"phrases": [1]}, None, ("a phrase has no words",)),
        ({"phrases": "a"}, None, ("phrases is not a list",)),
        ({"phrases": ["x " * 301]}, None, ("a phrase is longer than a sentence",)),
        (
            {"phrases": [str(n) for n in range(61)]},
            None,
            ("there are more than 60 phrases",),
        ),
        (
            {"Phrases": ["a"]},
            {"phrases": (1, ("a", "", "", [2, 3]))},
            ("the answer: a key spelled differently",),
        ),
        (
            {"sentence_list": [{"orig": "x", "new": ["a", "b"]}, {"new": []}]},
            {"phrases": (2, ("a", "", "", [2, 3]), ("b", "", ""))},
            ("phrases given by sentence",),
        ),
        (
            {"sentence_list": [{"orig": "x"}]},
            None,
            ("phrases given by sentence", "a sentence has no list of phrases"),
        ),
        (
            {"sentence_list": ["x"]},
            None,
            (
                "phrases given by sentence",
                "a sentence is not an object, or has a key twice",
            ),
        ),
        (
            {"phrases": ["a"], "sentence_list": []},
            None,
            ("the answer: its phrases are given twice",),
        ),
        ({"x": []}, None, ("the answer: a key that was not asked for",)),
        ({}, None, ("phrases is missing",)),
        (
            "- a\n2. b\n[3] c",
            {"phrases": (3, ("a", "", "", [2, 3]), ("b", "", ""), ("c", "", ""))},
            ("phrases read from lines",),
        ),
        ("none", {}, ()),
        ("(None).", {}, ()),
        ("a\nb", None, ("there is neither a JSON object nor a list of phrases",)),
        (
            "- none\n- b",
            None,
            ("phrases read from lines", '"none" is listed as a phrase'),
        ),
    ],
    "rating": [
        ({"feedback": "Good.", "rating": 4}, {"rating": (4, ("Good.", "", ""))}, ()),
        ({"rating": 4}, {"rating": 4}, ("there is no feedback",)),
        ({"feedback": "Good.", "rating": "4"}, SAME, ("rating: a number in quotes",)),
        (
            {"feedback": "Good.", "rating": " 4 "},
            SAME,
            ("rating: spelled differently", "rating: a number in quotes"),
        ),
        (
            {"feedback": "Good.", "rating": "45"},
            None,
            (
                "rating: a number in quotes",
                "rating: it is not a whole number from 1 to 5",
            ),
        ),
        (
            {"feedback": "Good.", "rating": 6},
            None,
            ("rating: it is not a whole number from 1 to 5",),
        ),
        ({"feedback": 1, "rating": 5}, {"rating": 5}, ("there is no feedback",)),
        (
            {"feedback": "Good.", "Rating": 5},
            {"rating": (5, ("Good.", "", ""))},
            ("the answer: a key spelled differently",),
        ),
        (
            {"feedback": "Good.", "rating": 5, "x": 1},
            None,
            ("the answer: a key that was not asked for",),
        ),
        ("Good. [RESULT] 5", {"rating": (5, ("Good.", "", ""))}, ()),
        ("[RESULT] 5", {"rating": 5}, ("there is no feedback",)),
        (
            "Good. Score: 5",
            {"rating": (5, ("Good.", "", ""))},
            ("a result spelled differently",),
        ),
        (
            "Good. [result] (5)",
            {"rating": (5, ("Good.", "", ""))},
            ("a result spelled differently",),
        ),
        (
            "Good. [RESULT] 5/5",
            {"rating": (5, ("Good.", "", ""))},
            ("a result spelled differently",),
        ),
        ("Good. [RESULT] 7", None, ("rating: it is not a whole number from 1 to 5",)),
        ("Good. [RESULT] 12", None, ("rating: it is not a whole number from 1 to 5",)),
        ("Good.", None, ("there is no result at the end of the text",)),
        ("[RESULT] 1 [RESULT] 2", None, ("there are two results",)),
        (
            "I cannot give a score: 3",
            None,
            ("the result is one that it does not give",),
        ),
    ],
    "preference": [
        (
            {"feedback": "Good.", "preference": "A"},
            {"preference": ("A", ("Good.", "", ""))},
            (),
        ),
        (
            {"feedback": "Good.", "preference": " B "},
            {"preference": ("B", ("Good.", "", ""))},
            ("preference: spelled differently",),
        ),
        (
            {"feedback": "Good.", "preference": "C"},
            None,
            ("preference: it is neither A nor B",),
        ),
        ("So. [RESULT] B", {"preference": ("B", ("So.", "", ""))}, ()),
        (
            "So. Result: (B)",
            {"preference": ("B", ("So.", "", ""))},
            ("a result spelled differently",),
        ),
        ("So. [RESULT] C", None, ("preference: it is neither A nor B",)),
    ],
    "overall_score": [
        ({"explanation": "So.", "overall_score": 0.85}, {"score": 0.85}, ()),
        ({"explanation": "So.", "overall_score": 1}, {"score": 1.0}, ()),
        ({"overall_score": 0.85}, SAME, ("explanation: the section is missing",)),
        (
            {"explanation": "So.", "Score": "0.9"},
            {"score": 0.9},
            (
                "the answer: a key spelled differently",
                "score: a score spelled differently",
            ),
        ),
        (
            {"explanation": "So.", "overall_score": "85%"},
            SAME,
            ("score: a percentage read as a share",),
        ),
        (
            {"explanation": "So.", "overall_score": 2},
            None,
            ("score: it is not between 0 and 1",),
        ),
        (
            {"explanation": "So.", "overall_score": "high"},
            None,
            ("score: it is not one number between 0 and 1",),
        ),
        ({"explanation": "So."}, None, ("score: the section is missing",)),
        (
            {"explanation": "So.", "overall_score": 0.85, "x": 1},
            None,
            ("the answer: a key that was not asked for",),
        ),
        (
            '{"explanation":"So.","overall_score":01}',
            None,
            ("score: a number that is not understood",),
        ),
        ("[Explanation]:\nSo.\n[Overall Accuracy Score]:\n0.85", SAME, ()),
        (
            "[Overall Accuracy Score]:\n0.85",
            SAME,
            ("explanation: the section is missing",),
        ),
        (
            "[Matched Findings]:\n1. a\n[Overall Accuracy Score]:\n0.85",
            SAME,
            (
                "explanation: the section is missing",
                "sections that were not asked for ignored",
            ),
        ),
        ("[Explanation]:\nSo.", None, ("score: the section is missing",)),
        ("x", None, ("there is no JSON object in the answer",)),
        (
            '[Overall Accuracy Score]: 0.85 {"overall_score": 0.85}',
            None,
            (
                "explanation: the section is missing",
                "there are two answers: sections, and a JSON object",
            ),
        ),
    ],
    "green_sections": [
        (
            SECTIONS,
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "insignificant.severity": (
                    1,
                    ("small for tiny", "severity", "insignificant"),
                ),
                "matched": (2, ("normal heart", "", ""), ("no fluid", "", "")),
            },
            (),
        ),
        (
            {**SECTIONS, "matched_findings": 3},
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "insignificant.severity": (
                    1,
                    ("small for tiny", "severity", "insignificant"),
                ),
                "matched": 3,
            },
            ("matched: a count without what it counts",),
        ),
        (
            {**SECTIONS, "matched_findings": "x"},
            None,
            ("matched: what should be a list is none",),
        ),
        (
            {**SECTIONS, "matched_findings": ["a", 1]},
            None,
            ("matched: something listed is not a text",),
        ),
        (
            changed(SECTIONS, explanation=...),
            SAME,
            ("explanation: the section is missing",),
        ),
        (
            changed(SECTIONS, insignificant_errors=...),
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "matched": (2, ("normal heart", "", ""), ("no fluid", "", "")),
            },
            ("insignificant: the section is missing",),
        ),
        (
            changed(SECTIONS, significant_errors=...),
            None,
            ("significant: the section is missing",),
        ),
        (
            changed(SECTIONS, matched_findings=...),
            None,
            ("matched: the section is missing",),
        ),
        (
            {**SECTIONS, "significant_errors": []},
            None,
            ("significant: it is not an object with the categories",),
        ),
        (
            {
                **SECTIONS,
                "significant_errors": changed(EMPTY, location=..., severity=...),
            },
            None,
            ("significant: nothing is said of location, severity",),
        ),
        (
            {**SECTIONS, "significant_errors": {**EMPTY, "x": []}},
            None,
            ("significant: a key that was not asked for",),
        ),
        (
            {
                **SECTIONS,
                "significant_errors": {
                    "a": ["x"],
                    "b": [],
                    "c": 2,
                    "D": [],
                    "e": [],
                    "f": [],
                },
            },
            {
                "significant.false_finding": (
                    1,
                    ("x", "false_finding", "significant", [35, 36, "reference"]),
                ),
                "significant.location": 2,
                "insignificant.severity": (
                    1,
                    ("small for tiny", "severity", "insignificant"),
                ),
                "matched": (2, ("normal heart", "", ""), ("no fluid", "", "")),
            },
            (
                "significant: a key spelled differently",
                "significant: a count without what it counts",
            ),
        ),
        ({**SECTIONS, "x": 1}, None, ("the answer: a key that was not asked for",)),
        (
            {**SECTIONS, "rules_score": 0.5},
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "insignificant.severity": (
                    1,
                    ("small for tiny", "severity", "insignificant"),
                ),
                "matched": (2, ("normal heart", "", ""), ("no fluid", "", "")),
                "score": 0.5,
            },
            (),
        ),
        (
            {**SECTIONS, "rules_score": 5},
            None,
            ("the answer: a key that was not asked for",),
        ),
        (
            answer("(c) Place: 1. the side", "2. a; b", "(d) Severity: 1. x"),
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "insignificant.severity": (
                    1,
                    ("x", "severity", "insignificant", [35, 36, "reference"]),
                ),
                "matched": (2, ("a", "", ""), ("b", "", "", [24, 25, "candidate"])),
            },
            (
                "significant: categories that are not listed have none",
                "insignificant: categories that are not listed have none",
            ),
        ),
        (
            answer("(c) Place: 2. the side", "2. a; b"),
            {
                "significant.location": (2, ("the side", "location", "significant")),
                "matched": (2, ("a", "", ""), ("b", "", "", [24, 25, "candidate"])),
            },
            (
                "significant: a declared count differs from what is listed",
                "significant: categories that are not listed have none",
            ),
        ),
        (answer("No errors.", "0."), {}, ()),
        (
            answer("(c) Place: one. the side", "Two findings: a; b"),
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "matched": (2, ("a", "", ""), ("b", "", "", [24, 25, "candidate"])),
            },
            (
                "significant: a count spelled as a word",
                "significant: categories that are not listed have none",
                "matched: a count spelled as a word",
                "matched: a count spelled differently",
            ),
        ),
        (
            answer("(c) Place: the side", "2. a; b"),
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "matched": (2, ("a", "", ""), ("b", "", "", [24, 25, "candidate"])),
            },
            (
                "significant: what is listed was counted",
                "significant: categories that are not listed have none",
            ),
        ),
        (
            answer("(c) Place: 1. a\n(c) Place: 1. b", "0."),
            None,
            ("significant: a category occurs twice",),
        ),
        (
            answer("(h) Other: 1. a", "0."),
            None,
            ("significant: a category that was not asked for",),
        ),
        (
            answer("(h) Other: 0.", "0."),
            None,
            (
                "significant: a category that was not asked for ignored",
                "significant: no category",
            ),
        ),
        (
            answer("1) Place: 1. a", "0."),
            {"significant.false_finding": (1, ("a", "false_finding", "significant"))},
            (
                "significant: a category spelled differently",
                "significant: categories that are not listed have none",
            ),
        ),
        (
            answer("Errors:\n(a) X: 1. a", "0."),
            {"significant.false_finding": (1, ("a", "false_finding", "significant"))},
            (
                "significant: words before the categories ignored",
                "significant: categories that are not listed have none",
            ),
        ),
        (
            answer("None.\n(a) X: 1. a", "0."),
            None,
            ("significant: errors, and that there are none",),
        ),
        (answer("something", "0."), None, ("significant: words without a category",)),
        (answer("(a) X: 1. a", ""), None, ("matched: the section is missing",)),
        (answer("", "1. a"), None, ("significant: the section is missing",)),
        (answer("(a) X: 1. 2. a", "0."), None, ("significant: two counts",)),
        (
            answer("(a) X: None, but a", "0."),
            None,
            ('significant: "none", and more is said',),
        ),
        (
            answer("(a) X: 1. a", "a, b"),
            None,
            (
                "significant: categories that are not listed have none",
                "matched: no count",
            ),
        ),
        (
            answer("(a) X:\n- a\n- b", "- c\n- d"),
            {
                "significant.false_finding": (
                    2,
                    ("a", "false_finding", "significant"),
                    ("b", "false_finding", "significant", [24, 25, "candidate"]),
                ),
                "matched": (2, ("c", "", "", [29, 30, "candidate"]), ("d", "", "")),
            },
            (
                "significant: listed in lines of their own",
                "significant: what is listed was counted",
                "significant: categories that are not listed have none",
                "matched: listed in lines of their own",
                "matched: what is listed was counted",
            ),
        ),
        (
            answer("(a) X: 2 effusions; a nodule", "0."),
            {
                "significant.false_finding": (
                    2,
                    ("effusions", "false_finding", "significant"),
                    ("a nodule", "false_finding", "significant"),
                )
            },
            (
                "significant: a count spelled differently",
                "significant: categories that are not listed have none",
            ),
        ),
        (
            answer("(a) X: 3 effusions; a nodule", "0."),
            None,
            ("significant: a count that is not understood",),
        ),
        (
            answer("(a) X: 1. a", "1. a\n2. b"),
            {
                "significant.false_finding": (1, ("a", "false_finding", "significant")),
                "matched": (2, ("a", "", ""), ("b", "", "", [24, 25, "candidate"])),
            },
            (
                "significant: categories that are not listed have none",
                "matched: listed in lines of their own",
                "matched: what is listed was counted",
            ),
        ),
        (
            answer("(a) X: 1. a", "2. a\n3. b"),
            None,
            (
                "significant: categories that are not listed have none",
                "matched: numbers that may be a count or a list",
            ),
        ),
        (
            answer("(a) X: 1. a", "None\n- a"),
            None,
            (
                "significant: categories that are not listed have none",
                'matched: "none", and more is said',
            ),
        ),
        (
            answer("(a) X: 1. a", "1. a", ""),
            {
                "significant.false_finding": (1, ("a", "false_finding", "significant")),
                "matched": (1, ("a", "", "")),
            },
            (
                "insignificant: the section is missing",
                "significant: categories that are not listed have none",
            ),
        ),
    ],
    "green_formula": [
        (
            {**SECTIONS, "formula_score": 0.44},
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "insignificant.severity": (
                    1,
                    ("small for tiny", "severity", "insignificant"),
                ),
                "matched": (2, ("normal heart", "", ""), ("no fluid", "", "")),
                "score": 0.44,
            },
            (),
        ),
        (
            {**SECTIONS, "formula_score": 0.5},
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "insignificant.severity": (
                    1,
                    ("small for tiny", "severity", "insignificant"),
                ),
                "matched": (2, ("normal heart", "", ""), ("no fluid", "", "")),
                "score": 0.5,
            },
            ("score: it is not what its counts give",),
        ),
        ({**SECTIONS, "formula_score": "0.44"}, SAME, ()),
        (
            changed(SECTIONS, formula_score=...),
            None,
            ("score: the section is missing",),
        ),
        (
            {**changed(SECTIONS, insignificant_errors=...), "formula_score": 0.44},
            {
                "significant.location": (1, ("the side", "location", "significant")),
                "matched": (2, ("normal heart", "", ""), ("no fluid", "", "")),
                "score": 0.44,
            },
            (
                "insignificant: the section is missing",
                "score: not computed again, nothing is said of minor errors",
            ),
        ),
    ],
    "green_text_scored": [
        (
            answer("No errors.", "0.") + "\n[Overall Accuracy Score]:\n1.00",
            {"score": 1.0},
            (),
        ),
        (answer("No errors.", "0."), None, ("score: the section is missing",)),
    ],
}


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name, rows in CASES.items() for place in range(len(rows))],
)
def test_all_that_is_made_of_an_answer(name, place):
    """What it says, with words and places; each repair, and why it cannot be read."""
    contract, rows = get_contract(name), CASES[name]
    given, fields, told = rows[place]

    def read(data):
        text = data if isinstance(data, str) else json.dumps(data)
        return contract.read(text, FIELDS.get(name, CATEGORIES), ITEMS.get(name, PAIR))

    reading = read(given)
    problem = (reading.problem,) if reading.problem else ()
    assert (*reading.repairs, *problem) == told
    if fields is SAME:
        assert reading.fields == read(rows[0][0]).fields
        assert list(reading.fields) == list(read(rows[0][0]).fields)
    else:
        assert (reading.fields and say(reading.fields)) == fields


def say(fields):
    """Return what fields hold, but for those that hold nothing."""
    return {
        name: (
            one.value,
            *(span.data for span in one.spans),
            *(
                (each.words, each.category, each.weight, *(s.data for s in each.spans))
                for each in one.entries
            ),
        )
        if one.spans or one.entries
        else one.value
        for name, one in fields.items()
        if one.value or one.entries
    }


AS_ASKED = {
    "label_values": [
        {"edema": "absent", "fracture": {"value": "present", "evidence": "effusion"}},
        {"edema": {"value": "absent", "span": [0, 5]}, "fracture": "absent"},
        {"edema": {"value": "uncertain", "evidence": "e: x"}, "fracture": "absent"},
    ],
    "findings": [
        {"findings": []},
        {
            "findings": [
                {"label": "edema", "value": "present", "evidence": "left"},
                {"label": "fracture", "value": "uncertain", "evidence": "a: b"},
            ]
        },
    ],
    "changes": [second(sentence_index=9_999), {**WHOLE, "changes_detail": []}],
    "plausible": [
        {"plausible": True, "reason": "ok"},
        {"plausible": False, "reason": "a: b"},
    ],
    "error_list": [LIST, {"errors": [], "matched_findings": 0}],
    "error_list_unweighted": [
        {"errors": [changed(SIDE, significant=...)], "matched_findings": 999}
    ],
    "error_counts": [TOTALS],
    "error_list_weighted": [
        weighted(),
        weighted(
            [
                matched("a: b", "urgent", ("location", "significant")),
                matched("c"),
            ],
            [finding("d"), finding("e")],
            [finding("f", "benign_expected")],
        ),
    ],
    "line_corrections": [
        {},
        {"0": correction(), "2": correction("No error"), "None": correction()},
    ],
    "entailment": [JUDGED, held(entailed=True, evidence=[0, 2])],
    "phrases": [{"phrases": []}, {"phrases": ["a: b", "c"]}],
    "rating": [{"feedback": "Good.", "rating": 5}, {"feedback": "", "rating": 1}],
    "preference": [{"feedback": "a: b", "preference": "B"}],
    "overall_score": [
        {"explanation": "So.", "overall_score": 0},
        {"explanation": "a: b", "overall_score": 1.0},
    ],
    "green_sections": [SECTIONS, {**SECTIONS, "rules_score": 1}],
    "green_formula": [{**SECTIONS, "formula_score": 0.44}],
}
"""Answers that follow their schema, or are as `rules` gives them."""


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name, rows in AS_ASKED.items() for place in range(len(rows))],
)
def test_an_answer_as_asked_for_is_read_in_one_pass(monkeypatch, name, place):
    """Most of millions are: no search for an object in it, and the same reading."""
    contract, data = get_contract(name), AS_ASKED[name][place]
    item, fields = ITEMS.get(name, PAIR), FIELDS.get(name, CATEGORIES)
    loosely = contract.read(f"```\n{json.dumps(data)}\n```", fields, item)

    def search(*_args, **_options):
        raise AssertionError("it was searched for")

    for kind in type(contract).__mro__:
        if hasattr(sys.modules[kind.__module__], "find_object"):
            monkeypatch.setattr(sys.modules[kind.__module__], "find_object", search)
    strictly = contract.read(json.dumps(data), fields, item)
    assert strictly.fields is not None
    if "rules_score" in data:
        assert strictly.fields["score"].value == data["rules_score"]
        return
    assert strictly.fields == loosely.fields
    assert ("code fence removed", *strictly.repairs) == loosely.repairs
