"""A tiny prompt, and evaluations of it that say what their counts say."""

from typing import Any

import numpy as np

from loop.core.digests import digest_text
from loop.core.records import Guide
from loop.evaluate.gates import GateVerdict, combine_verdicts
from loop.evaluate.protocol import Protocol
from loop.prompts.version import PromptVersion
from loop.release.consistency import decide_again, shipped_digest
from loop.release.facts import LabelFacts
from loop.stats.confusion import Confusion, average_f1, effective_labels, micro_f1
from loop.stats.intervals import clopper_pearson
from loop.stats.kappa import cohen_kappa

PROTOCOL = Protocol(min_cases=20)
PROTOCOL_DIGEST = digest_text("a protocol")
ENGINE = {"name": "rules", "parameters": {}, "identity": {"engine": "rules"}}
COUNTS = (Confusion(12, 0, 0, 48), Confusion(20, 1, 0, 39))

VERSION = PromptVersion(
    name="tiny",
    number=1,
    system="{% for guide in guides %}\n- {{ guide.name }}\n{% endfor %}\n",
    user="Text: {{ text }}\n",
    guides=(
        Guide(label="fracture", name="Fracture", definition="A broken bone."),
        Guide(label="pneumothorax", name="Pneumothorax", definition="Pleural air."),
    ),
    author="A. Author",
    time="2026-02-01T08:00:00Z",
    why="first",
)


def cohort(name: str, role: str) -> dict[str, Any]:
    """Return the facts of a cohort."""
    return {
        "name": name,
        "role": role,
        "source": "made up",
        "licence": "none",
        "citation": "",
        "language": "en",
        "digest": digest_text(name),
        "cases": 62,
        "synthetic": True,
        "patients_known": True,
        "reference": 1,
        "reference_digest": digest_text(f"{name} reference"),
        "readers": None,
        "need": None,
        "not_coded": 0,
    }


def evaluation(name: str, role: str) -> dict[str, Any]:
    """Return an evaluation that says what its counts say."""
    pairs = zip(VERSION.guides, COUNTS, strict=True)
    labels = [label_facts(guide, counts) for guide, counts in pairs]
    verdict = combine_verdicts(GateVerdict(one["gate"]["verdict"]) for one in labels)
    counts = np.array(COUNTS)
    limits = {"low": 0.9, "high": 1.0, "labels": int(effective_labels(counts))}
    macro, micro = float(average_f1(counts)), float(micro_f1(counts))
    return {
        "cohort": name,
        "role": role,
        "run": f"20260301-100000-{name}",
        "created": "2026-03-01T10:00:00+00:00",
        "cases": 62,
        "not_run": 0,
        "statuses": {"answered": 61, "unparsed": 0, "engine_failed": 1},
        "policy": "ran",
        "verdict": verdict.value,
        "registered_late": False,
        "labels": labels,
        "macro": {"name": "macro-F1", "value": macro, **limits},
        "supported": {"name": "macro-F1, supported", "value": macro, **limits},
        "micro": {"name": "micro-F1", "value": micro, **limits},
        "method": {
            "unit": "patient",
            "units": 62,
            "known": 62,
            "resamples": 2000,
            "seed": 0,
        },
        "signature": "acc+f1|tiny@v1",
        "counts_digest": shipped_digest([LabelFacts(**one) for one in labels]),
        "notes": [],
    }


def label_facts(guide: Guide, counts: Confusion) -> dict[str, Any]:
    """Return the facts of one label, made from its counts."""
    level = PROTOCOL.confidence
    kappa = cohen_kappa(counts, confidence=level)._asdict()
    names = ("no_majority", "missing", "uncertain_predicted", "unparsed", "not_asked")
    none = dict.fromkeys(names, 0)
    found = {
        "label": guide.label,
        "name": guide.name,
        **counts._asdict(),
        "n": counts.n,
        "not_coded": 0,
        "f1": counts.f1,
        "excluded": {**none, "uncertain_reference": 62 - counts.n, "failed": 0},
        "accuracy": rate(counts.correct, counts.n, level),
        "sensitivity": rate(counts.tp, counts.positives, level),
        "specificity": rate(counts.tn, counts.negatives, level),
        "kappa": kappa,
        "kappa_bootstrap": kappa,
    }
    unjudged = {"verdict": "PASS", "reasons": [], "needs": ""}
    label = LabelFacts.model_validate({**found, "gate": unjudged})
    gate = decide_again(label, PROTOCOL)
    said = {"reasons": list(gate.reasons), "needs": gate.needs}
    return found | {"gate": {"verdict": gate.verdict.value, **said}}


def rate(part: int, whole: int, level: float) -> dict[str, float | None]:
    """Return a share with its exact interval; nothing without a denominator."""
    if not whole:
        return {"value": None, "low": None, "high": None}
    limits = clopper_pearson(part, whole, confidence=level)
    return {"value": part / whole, **limits._asdict()}
