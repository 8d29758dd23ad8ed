"""Facts of made-up judges: a full release, and a first one without a holdout."""

from copy import deepcopy
from typing import Any

from loop.release.judge_facts import JudgeReleaseFacts
from loop.release.statement import Approval
from tests.release.documents.example import digest, full_facts

APPROVALS = (
    Approval(
        digest("3"), "Dr C. Approver", "approver", "approval", "2026-03-15T12:00:00Z"
    ),
    Approval(
        digest("4"), "Dr B. Writer", "author", "authorship", "2026-03-15T12:00:00Z"
    ),
)


def number(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    note: str = "",
) -> dict[str, Any]:
    """Return a number with its interval."""
    return {"value": value, "low": low, "high": high, "note": note}


def cohort(name: str, role: str, letter: str, **changes: Any) -> dict[str, Any]:
    """Return a cohort of rated pairs."""
    return {
        "name": name,
        "role": role,
        "source": "Radiology department, general hospital",
        "licence": "not for redistribution",
        "citation": "Example A et al. 2026",
        "language": "en",
        "digest": digest(letter),
        "cases": 212,
        "references": 53,
        "synthetic": False,
        "patients_known": True,
        "ratings": 2,
        "ratings_digest": digest("e"),
        "raters": 3,
        "dimension": "overall",
        "scale": "1-5",
    } | changes


def check(aspect: str, what: str, verdict: str, *numbers: Any, **words: str) -> Any:
    """Return one line of a gate."""
    observed, limit, threshold = numbers
    return {
        "aspect": aspect,
        "what": what,
        "verdict": verdict,
        "observed": observed,
        "limit": limit,
        "threshold": threshold,
        "reason": words.get("reason", ""),
        "needs": words.get("needs", ""),
    }


def error(name: str, *counts: float, f1: Any, two: float | None) -> dict[str, Any]:
    """Return the errors of one kind."""
    tp, fp, fn = counts
    return {
        "name": name,
        "categories": [name.rstrip("s").replace(" ", "_")],
        "n": 208,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "f1": f1,
        "two_raters": two,
    }


def evaluation(name: str, role: str, **changes: Any) -> dict[str, Any]:
    """Return one evaluation of a judge."""
    return {
        "cohort": name,
        "role": role,
        "run": f"20260314-1010-{name}",
        "draws": 3,
        "runs": [f"20260314-1010-{name}", f"20260314-1011-{name}", "20260314-1012-x"],
        "created": "2026-03-14T10:10:00Z",
        "cases": 212,
        "statuses": {"engine_failed": 1, "answered": 208, "unparsed": 3},
        "verdict": "FAIL",
        "registered_late": False,
        "rows": 207,
        "rows_digest": digest("2"),
        "unit": "patient",
        "resamples": 2000,
        "seed": 7,
        "agreement": {
            "n": 206,
            "units": 51,
            "tau_b": number(0.612, 0.541, 0.678),
            "spearman": number(0.734, 0.652, 0.801),
            "pearson": number(0.701, None, None, "not estimable"),
            "one_rater": 0.573,
            "two_raters": 0.655,
        },
        "errors": [
            error(
                "all categories",
                151.5,
                22.0,
                40.5,
                f1=number(0.829, 0.78, 0.87),
                two=0.9,
            ),
            error("omissions", 61, 9, 18, f1=number(0.819, 0.74, 0.88), two=0.88),
            error("attributes", 0, 0, 0, f1=number(None), two=None),
        ],
        "counts_digest": digest("1"),
        "floors": [{"group": "omission", "f1": number(0.819, 0.75, 0.87)}],
        "bias": [
            {
                "by": "length",
                "scores": number(-0.112, -0.201, -0.019),
                "ratings": -0.051,
                "difference": number(-0.061, -0.132, 0.014),
            },
            {
                "by": "position",
                "scores": number(0.021),
                "ratings": None,
                "difference": None,
            },
        ],
        "copies": {"pairs": 11, "best": 9, "unanswered": 1},
        "repeats": {
            "pairs": 201,
            "incomplete": 5,
            "sd": number(0.031, 0.02, 0.043),
            "identical": number(0.871, 0.82, 0.91),
            "icc": number(0.942, 0.91, 0.96),
        },
        "gate": [
            check("answers", "share without an answer", "PASS", 0.0189, None, 0.02),
            check("units", "units with a score", "PASS", 51, None, 20),
            check(
                "agreement",
                "tau-b with the mean of 3 raters",
                "FAIL",
                0.612,
                0.541,
                0.6,
                reason="the limit is below the threshold",
                needs="about 40 more units",
            ),
        ],
        "suspicious": ["its tau-b with one rater is above that of two raters"],
        "signature": f"judge:green|{name}|n:207",
    } | changes


def full_judge() -> JudgeReleaseFacts:
    """Return a judge with everything: overridden, compared, drawn, with ensembles."""
    facts = _shared()
    facts |= {
        "cohorts": [
            cohort("pairs", "dev", "b"),
            cohort("held", "holdout", "7", patients_known=False, synthetic=True),
        ],
        "evaluations": [
            evaluation("pairs", "dev", suspicious=[], verdict="PASS", repeats=None),
            evaluation("held", "holdout", rows=198, cases=203, seed=0, resamples=500),
        ],
        "claim": {"kind": "judging", "verdict": "FAIL", "cohort": "held"},
    }
    return JudgeReleaseFacts.model_validate(facts)


def first_judge() -> JudgeReleaseFacts:
    """Return a first release on development data, of which little is known."""
    facts = _shared()
    facts["release"] |= {"parent": None, "parent_ref": "", "languages": []}
    facts["frozen"] |= {"objections": [], "override": ""}
    facts["engine"] |= {"name": "rules", "parameters": {}, "identity": {}}
    facts["protocol"]["content"]["judging"] |= {
        "rule": "point",
        "f1_floors": {"omission": None},
        "copy_test": False,
    }
    facts["protocol"] |= {"late": True, "registered": ""}
    one = evaluation(
        "pairs",
        "dev",
        draws=1,
        runs=[],
        verdict="PASS",
        unit="reference",
        errors=[],
        floors=[],
        bias=[],
        repeats=None,
        suspicious=[],
        copies={"pairs": 0, "best": 0, "unanswered": 0},
    )
    one["agreement"] |= {"tau_b": number(0.612), "one_rater": None, "two_raters": None}
    one["gate"] = one["gate"][:1]
    facts |= {
        "supersedes": None,
        "reads": [],
        "cohorts": [cohort("pairs", "dev", "b", language="", citation="")],
        "evaluations": [one],
        "claim": {"kind": "judging", "verdict": "PASS", "cohort": "pairs"},
        "openings": [],
        "development_only": True,
        "separation": {"checked": [], "remarks": []},
        "change": {
            **dict.fromkeys(("previous", "from_ref", "diff_digest", "rollback"), ""),
            "classes": [],
            "labels": [],
            "agreement": None,
            "difference": None,
            "f1": [],
        },
        "history": [],
        "shots": None,
        "ensembles": [],
    }
    facts["score"] |= {"weights": [1.0, 1.0, 0.5], "better": "higher"}
    return JudgeReleaseFacts.model_validate(facts)


def _shared() -> dict[str, Any]:
    """Return what both have alike."""
    facts = deepcopy(full_facts())
    kept = ("frozen", "supersedes", "engine", "protocol", "openings", "separation")
    kept += ("development_only", "compute", "ledger", "tool")
    made: dict[str, Any] = {name: facts[name] for name in kept}
    made["release"] = facts["release"] | {
        "name": "strict-v2",
        "prompt": "strict",
        "version": 2,
        "ref": "strict@v2",
        "parent_ref": "strict@v1",
        "contract": "green_sections/1",
        "labels": ["false_finding", "omission", "omitted_change"],
    }
    made["protocol"]["content"]["judging"] = {
        "score": "green",
        "measure": "tau_b",
        "threshold": 0.6,
        "rule": "lower",
        "min_units": 20,
        "max_unanswered": 0.02,
        "f1_floors": {"omission": 0.7, "false_prediction": 0.65},
        "copy_test": True,
    }
    return made | {
        "format": "ranloop-release/3",
        "reads": [
            {"ref": "extractor@v11", "digest": digest("6")},
            {"ref": "split@v1", "digest": digest("5")},
        ],
        "categories": {"version": 1, "digest": digest("c")},
        "score": {
            "name": "errors",
            "title": "GREEN-EC",
            "about": "Significant errors.",
            "weights": None,
            "better": "lower",
        },
        "change": {
            **{name: facts["change"][name] for name in ("classes", "diff_digest")},
            "labels": [
                {
                    "label": "omission",
                    "added": ["term: no"],
                    "removed": [],
                    "changed": 0,
                }
            ],
            "previous": "strict-v1",
            "from_ref": "strict@v1",
            "rollback": "strict-v1",
            "agreement": {"name": "tau-b of GREEN-EC", "before": 0.66, "after": 0.61},
            "difference": number(-0.048, -0.081, -0.011),
            "f1": [
                {"name": "omissions", "before": 0.79, "after": 0.82},
                {"name": "attributes", "before": None, "after": None},
            ],
        },
        "history": [
            {
                "ref": f"strict@v{one}",
                "digest": digest(str(one)),
                "time": f"2026-03-0{one}T08:00:00Z",
                "author": "Dr B. Writer",
                "why": f"step {one}",
                "verdicts": one,
                "verdict_roles": {"reviewer": 1} if one == 2 else {},
                "status": "committed",
                "observed": None if one == 1 else 0.612,
                "measured": "" if one == 1 else "green, rules, pairs:ratings2",
            }
            for one in (1, 2)
        ],
        "shots": {
            "pool": "rated",
            "kind": "random",
            "n": 4,
            "seed": 9,
            "score": "inverse",
            "examples": 4,
            "digest": digest("8"),
        },
        "ensembles": [_ensemble("both", True), _ensemble("other", None)],
    }


def _ensemble(name: str, beats: bool | None) -> dict[str, Any]:
    return {
        "ref": f"{name}@v1",
        "digest": digest("d"),
        "rows_digest": digest("f"),
        "method": "ridge",
        "unit": "points",
        "intercept": 3.14159,
        "members": [
            {
                "name": "judge:strict",
                "title": "Strict",
                "coefficient": -0.51234,
                "centre": 1.75,
            },
            {"name": "bleu", "title": "BLEU", "coefficient": 0.25, "centre": 0.5},
        ],
        "cohort": "pairs",
        "ratings": "pairs:ratings2",
        "pairs": 207,
        "tau_b": None if beats is None else number(0.68, 0.61, 0.74),
        "beats": beats,
    }
