"""Made-up reports in which the findings, and how often they are said, are known."""

import json

from loop.core.ledger import Actor
from loop.labels.importing.importer import import_cohort
from loop.labels.importing.source import ImportOptions

WHO = Actor(name="Dr A")

CLEAR = "The lungs are clear. No pleural effusion or pneumothorax."

SAID = (
    # Said of the first so many reports each; every report says something of its own.
    (12, "There are degenerative changes of the thoracic spine."),
    (9, "Mild scoliosis of the spine."),
    (8, "There is a small left pleural effusion."),
    (7, "The heart is mildly enlarged."),
    (6, "The aorta is tortuous."),
    (6, "Possible hiatal hernia."),
    (3, "Azygos fissure anomaly."),
)


def report(number):
    """Return one report: what the list says of its number, and denials."""
    said = [sentence for count, sentence in SAID if number < count]
    return " ".join([*said, CLEAR])


def reports(count=30):
    """Return so many reports; those after the twelfth find nothing."""
    return [report(number) for number in range(count)]


def add_cohort(
    place, texts, *, name="made", role="taxonomy", language="en", patients=None
):
    """Import texts as a cohort; their ids are r0, r1, and so on."""
    source = place.root.parent / f"{name}.jsonl"
    languages = [language] * len(texts) if isinstance(language, str) else language
    lines = [
        json.dumps(
            {"case_id": f"r{number}", "text": text, "language": spoken}
            | ({"patient_id": patients[number]} if patients else {})
        )
        for number, (text, spoken) in enumerate(zip(texts, languages, strict=True))
    ]
    source.write_text("\n".join(lines), "utf-8")
    import_cohort(place, source, ImportOptions(name=name, role=role), actor=WHO)
    return name
