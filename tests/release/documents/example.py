"""Facts of made-up releases: a full one, and one that knows next to nothing."""

from copy import deepcopy
from enum import Enum
from typing import Any

from pydantic import BaseModel

from loop.stats.intervals import clopper_pearson

ABSENT = {"value": None, "low": None, "high": None}
EXCLUDED = {
    "uncertain_reference": 2,
    "no_majority": 0,
    "missing": 0,
    "uncertain_predicted": 3,
    "unparsed": 1,
    "failed": 0,
    "not_asked": 0,
}


def digest(letter: str) -> str:
    """Return a digest that is easy to tell apart."""
    return letter * 64


def share(part: int, whole: int) -> dict[str, float | None]:
    """Return a share with its exact interval."""
    if not whole:
        return dict(ABSENT)
    low, high = clopper_pearson(part, whole)
    return {"value": part / whole, "low": low, "high": high}


def label(
    name: str, counts: tuple[int, int, int, int], verdict: str, **gate: Any
) -> dict[str, Any]:
    """Return one label of an evaluation from tp, fp, fn, tn."""
    tp, fp, fn, tn = counts
    n = sum(counts)
    known = bool(tp + fp + fn)
    kappa = {"value": 0.83, "low": 0.71, "high": 0.95, "note": ""}
    none = {**ABSENT, "note": "no positive on either side"}
    return {
        "label": name.lower().replace(" ", "_"),
        "name": name,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "n": n,
        "excluded": dict(EXCLUDED),
        "not_coded": 4,
        "accuracy": share(tp + tn, n),
        "sensitivity": share(tp, tp + fn),
        "specificity": share(tn, tn + fp),
        "kappa": dict(kappa if known else none),
        "kappa_bootstrap": dict(kappa if known else none),
        "f1": 2 * tp / (2 * tp + fp + fn) if known else None,
        "gate": {
            "verdict": verdict,
            "reasons": gate.get("reasons", []),
            "needs": gate.get("needs", ""),
        },
    }


def evaluation(cohort: str, role: str, labels: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one evaluation over some labels."""
    average = {"value": 0.912, "low": 0.871, "high": 0.944, "labels": 4}
    return {
        "cohort": cohort,
        "role": role,
        "run": f"20260314-1010-{cohort}",
        "created": "2026-03-14T10:10:00Z",
        "cases": 320,
        "not_run": 0,
        "statuses": {"answered": 318, "unparsed": 2, "engine_failed": 0},
        "policy": "ran",
        "verdict": "FAIL",
        "registered_late": False,
        "labels": labels,
        "macro": {"name": "macro-F1", **average},
        "supported": {"name": "macro-F1, supported labels", **average, "labels": 3},
        "micro": {"name": "micro-F1", **average},
        "method": {
            "unit": "patient",
            "units": 290,
            "known": 320,
            "resamples": 2000,
            "seed": 0,
        },
        "signature": f"acc+f1|extractor@v7:aaaaaa|{cohort}:ref2|unc:excl|n:320",
        "counts_digest": digest("1"),
        "notes": ["The reference has cases that were not coded."],
    }


def cohort(name: str, role: str, letter: str) -> dict[str, Any]:
    """Return one cohort."""
    return {
        "name": name,
        "role": role,
        "source": "Radiology department, general hospital",
        "licence": "not for redistribution",
        "citation": "",
        "language": "en",
        "digest": digest(letter),
        "cases": 320,
        "synthetic": False,
        "patients_known": True,
        "reference": 2,
        "reference_digest": digest("e"),
        "readers": 3,
        "need": 2,
        "not_coded": 12,
    }


def _labels() -> list[dict[str, Any]]:
    low = "accuracy 0.930, needs 0.950"
    return [
        label("Pneumothorax", (40, 1, 1, 272), "PASS"),
        label("Pleural Effusion", (88, 3, 2, 221), "PASS"),
        label("Atelectasis", (60, 14, 8, 232), "FAIL", reasons=[low]),
        label(
            "Cavity and Cyst",
            (3, 0, 1, 310),
            "INSUFFICIENT",
            reasons=["4 positives, needs 14"],
            needs="needs about 800 more cases (10 positives)",
        ),
        label("Fracture", (0, 0, 0, 314), "INSUFFICIENT", reasons=["no positives"]),
    ]


def _worse() -> list[dict[str, Any]]:
    return [
        {
            "label": "atelectasis",
            "before": 0.871,
            "after": 0.845,
            "lost": 9,
            "gained": 2,
            "low": -0.043,
            "high": -0.002,
        }
    ]


def _protocol() -> dict[str, Any]:
    return {
        "digest": digest("c"),
        "registered": "2026-01-05T09:00:00Z",
        "late": False,
        "content": {
            "accuracy": 0.95,
            "kappa": 0.8,
            "rule": "lower",
            "confidence": 0.95,
            "kappa_floor": 0.6,
            "sensitivity_floor": 0.8,
            "min_cases": 59,
            "min_positives": 14,
            "min_negatives": 10,
            "max_unanswered": 0.01,
            "margins": {"accuracy": 0.02, "sensitivity": 0.05},
            "claim": "subset",
            "alpha": 0.05,
            "holdout_openings": 3,
        },
    }


def _claim() -> dict[str, Any]:
    return {
        "kind": "subset",
        "alpha": 0.05,
        "verdict": "FAIL",
        "cohort": "holdout",
        "labels": [
            {
                "label": "pneumothorax",
                "p": 0.0002,
                "p_holm": 0.001,
                "certified": True,
            },
            {"label": "atelectasis", "p": 0.93, "p_holm": 1.0, "certified": False},
            {"label": "fracture", "p": None, "p_holm": None, "certified": False},
        ],
    }


def _engine() -> dict[str, Any]:
    return {
        "name": "openai:Qwen/Qwen3-14B",
        "parameters": {"temperature": 0.0, "top_p": 1.0, "seed": 7, "repeat": None},
        "identity": {"model": "Qwen/Qwen3-14B", "server": "vllm 0.32"},
        "digest": digest("d"),
    }


def _release() -> dict[str, Any]:
    return {
        "name": "extractor-v7",
        "prompt": "extractor",
        "version": 7,
        "ref": "extractor@v7",
        "digest": digest("a"),
        "parent": digest("9"),
        "parent_ref": "extractor@v6",
        "author": "Dr B. Writer",
        "time": "2026-03-12T08:00:00Z",
        "why": "post-operative changes are no atelectasis",
        "contract": "label_values/1",
        "plan": "joint",
        "labels": [one["label"] for one in _labels()],
        "languages": ["en"],
    }


def _change() -> dict[str, Any]:
    return {
        "previous": "extractor-v6",
        "from_ref": "extractor@v6",
        "classes": ["R1", "R2"],
        "labels": [
            {
                "label": "atelectasis",
                "added": ["term: bibasal collapse", "exclusion: post-operative"],
                "removed": ["term: basal opacity"],
                "changed": 0,
            }
        ],
        "diff_digest": digest("f"),
        "improved": ["pneumothorax"],
        "unchanged": ["pleural_effusion", "cavity_and_cyst", "fracture"],
        "worse": _worse(),
        "rollback": "extractor-v6",
    }


def _history() -> list[dict[str, Any]]:
    return [
        {
            "ref": f"extractor@v{number}",
            "digest": digest(str(number)),
            "time": f"2026-03-0{number}T08:00:00Z",
            "author": "Dr B. Writer",
            "why": f"step {number}",
            "verdicts": number,
            "status": "committed",
            "macro_f1": 0.80 + number / 100,
        }
        for number in range(1, 8)
    ]


def full_facts() -> dict[str, Any]:
    """Return a release with everything, overridden, and worse in one label."""
    return {
        "format": "ranloop-release/1",
        "release": _release(),
        "frozen": {
            "time": "2026-03-15T12:00:00Z",
            "actor": "Dr C. Approver",
            "role": "approver",
            "meaning": "approval",
            "why": "second release for the registry",
            "objections": ["the gate on openi_test says FAIL (20 PASS, 1 FAIL)"],
            "override": "atelectasis is not used by the registry",
        },
        "supersedes": {
            "name": "extractor-v6",
            "statement_sha256": digest("8"),
            "ref": "extractor@v6",
        },
        "engine": _engine(),
        "protocol": _protocol(),
        "cohorts": [cohort("dev", "dev", "b"), cohort("holdout", "holdout", "7")],
        "evaluations": [
            evaluation("dev", "dev", _labels()),
            evaluation("holdout", "holdout", _labels()),
        ],
        "claim": _claim(),
        "selection": {
            "tried": 12,
            "apparent": 0.912,
            "corrected": 0.897,
            "low": 0.851,
            "high": 0.933,
            "expected_drop": 0.018,
            "note": "Corrects for the choice among versions only.",
        },
        "ceiling": {
            "readers": 3,
            "labels": [
                {
                    "label": "atelectasis",
                    "readers": 0.96,
                    "model": 0.93,
                    "difference": -0.03,
                    "low": -0.06,
                    "high": 0.0,
                }
            ],
            "note": "Each reader against the other two.",
        },
        "openings": [
            {
                "number": 1,
                "budget": 3,
                "time": "2026-02-01T09:00:00Z",
                "actor": "Dr C. Approver",
                "why": "first release",
                "prompt": "extractor@v6",
            },
            {
                "number": 2,
                "budget": 3,
                "time": "2026-03-15T11:59:00Z",
                "actor": "Dr C. Approver",
                "why": "second release for the registry",
                "prompt": "extractor@v7",
            },
        ],
        "development_only": False,
        "separation": {
            "checked": ["No exemplar stands near a text of holdout."],
            "remarks": ["The patients of 3 cases of dev are not known."],
        },
        "change": _change(),
        "history": _history(),
        "reading": {
            "readers": 3,
            "blind": 2,
            "votes": 960,
            "kappa": {"value": 0.88, "low": 0.85, "high": 0.91},
        },
        "compute": {
            "seconds": 912.4,
            "tokens": 1_482_000,
            "platform": "Linux x86_64",
            "python": "3.12.3",
            "packages": {"ranloop": "0.1.0", "scipy": "1.16.0"},
        },
        "ledger": {"seq": 57, "head": digest("5")},
        "tool": {"ranloop": "0.1.0"},
    }


def minimal_facts() -> dict[str, Any]:
    """Return a first release on development data, with every null and empty list."""
    facts = full_facts()
    facts["release"] |= {"parent": None, "parent_ref": "", "languages": []}
    facts["frozen"] |= {"objections": [], "override": "", "meaning": "", "why": ""}
    facts["engine"] = {
        "name": "rules",
        "parameters": {},
        "identity": {},
        "digest": digest("d"),
    }
    facts["protocol"] |= {"registered": "", "late": True}
    facts["cohorts"] = []
    facts["evaluations"] = []
    facts["claim"] = {
        "kind": "all",
        "alpha": 0.05,
        "verdict": "INSUFFICIENT",
        "cohort": "",
        "labels": [],
    }
    facts["separation"] = {"checked": [], "remarks": []}
    facts["change"] = {
        "previous": "",
        "from_ref": "",
        "classes": [],
        "labels": [],
        "diff_digest": "",
        "improved": [],
        "unchanged": [],
        "worse": [],
        "rollback": "",
    }
    facts["compute"] = {
        "seconds": None,
        "tokens": None,
        "platform": "",
        "python": "",
        "packages": {},
    }
    facts |= {"openings": [], "history": [], "development_only": True}
    nothing = ("supersedes", "selection", "ceiling", "reading")
    return facts | dict.fromkeys(nothing)


def sparse_facts() -> dict[str, Any]:
    """Return a release of which each part is small, missing or not as usual."""
    facts = full_facts()
    low = label("Edema", (30, 2, 1, 67), "FAIL", reasons=["low"], needs="more")
    low["excluded"] = {**EXCLUDED, "failed": 1200, "uncertain_predicted": 0}
    dev = evaluation("dev", "dev", [low]) | {"not_run": 1, "cases": 1, "draws": 3}
    dev |= {"statuses": {"engine_failed": 1, "answered": 1340}}
    none = label("Mass", (0, 0, 0, 5), "PASS")
    none["excluded"] = dict.fromkeys(EXCLUDED, 0)
    far = evaluation("far", "external", [none]) | {"created": ""}
    facts["evaluations"] = [dev, far]
    far = cohort("far", "external", "c") | {"source": "", "language": ""}
    facts["cohorts"] = [
        cohort("dev", "dev", "b") | {"cases": 1, "licence": "", "synthetic": True},
        far | {"licence": "CC0"},
        cohort("tax", "taxonomy", "d"),
    ]
    read = ("patients_known", "not_coded", "reference", "readers", "need")
    for one, values in zip(
        facts["cohorts"],
        ((1, True, None, None, None), (False, 3, 1, 1, 1), (0, None, 2, 3, 2)),
        strict=True,
    ):
        one |= dict(zip(read, values, strict=True))
    unfit = {"edema": "too rare", "mass": "read otherwise"}
    facts["cohorts"][0] |= {"not_comparable": unfit}
    facts["cohorts"][2] |= {"citation": "A paper"}
    facts["claim"] |= {"cohort": "gone", "labels": []}
    facts["release"] |= {"labels": ["edema"], "plan": "per_label", "parent_ref": ""}
    facts["frozen"] |= {"objections": ["one thing", "another"], "override": ""}
    facts["protocol"] |= {"late": True, "content": {}}
    facts["openings"] = facts["openings"][:1]
    facts["selection"] |= {"tried": 1, "corrected": None}
    facts["ceiling"] |= {"readers": None}
    facts["reading"] |= {"readers": 1, "blind": None, "votes": None, "kappa": None}
    facts["compute"] |= {"seconds": None, "tokens": 1, "python": ""}
    facts["change"] |= {"previous": "", "improved": ["a", "b"], "unchanged": []}
    facts["separation"] = {"checked": ["One.", "Two."], "remarks": []}
    facts["development_only"] = True
    facts["history"] = [
        one | {"verdicts": 0, "author": "Dr A"} for one in facts["history"][:2]
    ]
    return facts


def spoiled(value: Any, text: str) -> Any:
    """Return a copy with `text` put into every string that is not a fixed word.

    Into digests and times too, which no file could bring so far.
    """
    if isinstance(value, BaseModel):
        parts = {name: spoiled(one, text) for name, one in value}
        return value.model_copy(update=parts)
    if isinstance(value, Enum):
        return value
    if isinstance(value, dict):
        return {key: spoiled(one, text) for key, one in value.items()}
    if isinstance(value, list):
        return [spoiled(one, text) for one in value]
    fixed = {"PASS", "FAIL", "INSUFFICIENT", "all", "subset", "dev", "holdout", ""}
    return value if not isinstance(value, str) or value in fixed else text + value


def changed(facts: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a copy of `facts` with `value` at `path`."""
    copy = deepcopy(facts)
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy
