"""A small made-up folder in the form of RadPref."""

import json


def candidate(rating, false=(), missing=None, attributes=()):
    """Return what a rater says of one candidate.

    `false`: significance of each false finding; `missing`: significance by index of
    the missing ones; `attributes`: values of each finding with wrong attributes.
    """
    errors = [
        {"error_type": "false", "clinical_significance": one} for one in false
    ] + [
        {
            "error_type": "attribute",
            "attributes": {str(at): one for at, one in enumerate(values)},
        }
        for values in attributes
    ]
    return {
        "rating": rating,
        "finding_errors": {str(at): one for at, one in enumerate(errors)},
        "missing_findings": {
            str(at): {"clinical_significance": one}
            for at, one in (missing or {}).items()
        },
    }


def case(name, findings, sources=("gpt", "medgemma")):
    """Return one case with two made-up candidates."""
    return {
        "id": name,
        "ground_truth_report": f"Reference {name}.",
        "ground_truth_findings": [f"finding {at}" for at in range(findings)],
        "C1_report": f"First {name}.",
        "C2_report": f"Second {name}.",
        "C1_source": sources[0],
        "C2_source": sources[1],
    }


def write_folder(folder, cases, raters, *, published=False):
    """Write the files; `raters`: user id to annotations by case id."""
    name = "preference_data.json" if published else "cases.json"
    form = (
        "radiologist_annotations/user_{}.json" if published else "radiologist_{}.json"
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(cases), encoding="utf-8")
    for number, (user, annotations) in enumerate(raters.items(), 1):
        path = folder / form.format(number)
        path.parent.mkdir(exist_ok=True)
        data = {"user_id": user, "annotations": annotations}
        path.write_text(json.dumps(data), encoding="utf-8")
    return folder
