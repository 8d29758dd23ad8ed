"""A file of the form of RadJudge: ten categories of three tests, texts made up."""

import json


def ranking(name, truth, expected, *candidates, **context):
    """Return one test; contexts are by the candidate's name."""
    named = {f"C{number}": {"text": text} for number, text in enumerate(candidates, 1)}
    for one, said in context.items():
        named[one]["context"] = said
    return {
        "id": name,
        "ground_truth": truth,
        "candidates": named,
        "expected_ranking": expected,
    }


EFFUSION = "Small left pleural effusion."
CLEAR = "The lungs are clear. The heart is normal."
PNEUMOTHORAX = "Large right pneumothorax."

CATEGORIES = (
    (
        "False-finding penalisation",
        ranking("1a", CLEAR, "C1 > C2", CLEAR, "Large right pneumothorax."),
        ranking(
            "1b",
            EFFUSION,
            "C1 > C2",
            EFFUSION,
            "Small left pleural effusion. Pulmonary edema.",
        ),
        ranking(
            "1c",
            EFFUSION,
            ["C1 > C2", "C2 > C3"],
            EFFUSION,
            "Small left pleural effusion. Pulmonary edema.",
            "Small left pleural effusion. Pulmonary edema. Right pneumothorax.",
        ),
    ),
    (
        "Patient context sensitivity",
        ranking(
            "2a",
            "Tortuous aorta. Left pleural effusion.",
            "C1 > C2",
            "Left pleural effusion.",
            "Left pleural effusion.",
            C1={"age": "84"},
            C2={"age": "23", "indication": "Chest pain"},
        ),
        ranking(
            "2b",
            "Healed rib fracture.",
            "C1 > C2",
            CLEAR,
            CLEAR,
            C1={"age": "79"},
            C2={"age": "4"},
        ),
        ranking("2c", CLEAR, "C1 = C2", CLEAR, CLEAR, C1={"age": "20"}),
    ),
    (
        "Normal-finding handling",
        ranking("3a", CLEAR, "C1 = C2", CLEAR, "No pneumothorax. No effusion."),
        ranking(
            "3b",
            "Left pleural effusion. No pneumothorax.",
            "C1 = C2",
            "Left pleural effusion.",
            "Left pleural effusion. No pneumothorax.",
        ),
        ranking("3c", CLEAR, "C1 > C2", "No acute abnormality.", "Pneumonia."),
    ),
    (
        "Paraphrase robustness",
        ranking(
            "4a",
            "Cardiomegaly.",
            "C1 = C2",
            "Cardiomegaly.",
            "The heart is enlarged.",
        ),
        ranking(
            "4b",
            EFFUSION,
            "C1 = C2",
            EFFUSION,
            "There is a small pleural effusion on the left.",
        ),
        ranking(
            "4c",
            "Right upper lobe mass.",
            "C1 = C2",
            "Mass in the right upper lobe.",
            "Right upper lobe mass.",
        ),
    ),
    (
        "Location errors",
        ranking("5a", EFFUSION, "C1 > C2", EFFUSION, "Small right pleural effusion."),
        ranking(
            "5b",
            "Right upper lobe consolidation.",
            "C1 > C2",
            "Right upper lobe consolidation.",
            "Left lower lobe consolidation.",
        ),
        ranking(
            "5c", PNEUMOTHORAX, "C1 > C2", PNEUMOTHORAX, "Large left pneumothorax."
        ),
    ),
    (
        "Measurement errors",
        ranking(
            "6a",
            "A 2 cm nodule in the right upper lobe.",
            "C1 > C2",
            "A 2 cm nodule in the right upper lobe.",
            "A 6 cm nodule in the right upper lobe.",
        ),
        ranking(
            "6b", PNEUMOTHORAX, "C1 > C2", PNEUMOTHORAX, "Tiny right pneumothorax."
        ),
        ranking(
            "6c",
            "A 10 mm nodule.",
            "C1 = C2",
            "A 10 mm nodule.",
            "A 1 cm nodule.",
        ),
    ),
    (
        "Diagnostic precision",
        ranking(
            "7a", "Pulmonary edema.", "C1 > C2", "Pulmonary edema.", "Lung opacities."
        ),
        ranking("7b", "Pneumonia.", "C1 > C2", "Pneumonia.", "Opacity."),
        ranking(
            "7c", "Rib fracture.", "C1 > C2", "Rib fracture.", "A bony abnormality."
        ),
    ),
    (
        "Clinical-significance weighting",
        ranking(
            "8a",
            "Right pneumothorax. Mild scoliosis.",
            "C1 > C2",
            "Right pneumothorax.",
            "Mild scoliosis.",
        ),
        ranking(
            "8b",
            "Right pneumothorax. Calcified granuloma.",
            "C1 > C2",
            "Right pneumothorax.",
            "Calcified granuloma.",
        ),
        ranking(
            "8c",
            "Large pleural effusion. Old rib fracture.",
            "C1 > C2",
            "Large pleural effusion.",
            "Old rib fracture.",
        ),
    ),
    (
        "Partial credit",
        ranking(
            "9a",
            "Cardiomegaly. Left pleural effusion. Pulmonary edema.",
            "C1 > C2 > C3",
            "Cardiomegaly. Left pleural effusion. Pulmonary edema.",
            "Cardiomegaly. Left pleural effusion.",
            "Cardiomegaly.",
        ),
        ranking(
            "9b", EFFUSION, "C1 > C2", "Small right pleural effusion.", "Clear lungs."
        ),
        ranking(
            "9c",
            "Cardiomegaly. Edema.",
            ["C1 = C2"],
            "Cardiomegaly.",
            "The heart is enlarged.",
        ),
    ),
    (
        "Clinical practicality",
        ranking("10a", EFFUSION, "C1 > C2", EFFUSION, "Findings as described before."),
        ranking(
            "10b",
            "Endotracheal tube in good position.",
            "C1 = C2",
            "Endotracheal tube in good position.",
            "The endotracheal tube is well positioned.",
        ),
        ranking("10c", PNEUMOTHORAX, "C1 > C2", PNEUMOTHORAX, CLEAR),
    ),
)


def radjudge_data():
    """Return the whole file as data."""
    return [{"category": name, "tests": list(tests)} for name, *tests in CATEGORIES]


def write_radjudge(path, data=None):
    """Write a file of tests and return its path."""
    path.write_text(json.dumps(radjudge_data() if data is None else data), "utf-8")
    return path
