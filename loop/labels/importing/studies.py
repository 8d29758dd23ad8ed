"""Which studies are chest studies, from what the report says was examined."""

from __future__ import annotations

import re

_SPINE = re.compile(r"\b(?:thoracic|t)[ -]?spine\b", re.IGNORECASE)
_CHEST = re.compile(
    r"\b(?:chest|cxr|thorax|thoracic|lungs?|pulmonary|ribs?|babygram)\b|胸|肺|肋",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:abdom(?:en|inal)|kub|pelvi[cs]|hips?|femurs?|knees?|tibia|fibula|ankles?|"
    r"foot|feet|toes?|shoulders?|humerus|elbows?|forearms?|wrists?|hands?|fingers?|"
    r"thumbs?|skull|head|brain|sinus(?:es)?|orbits?|facial|mandible|neck|"
    r"(?:cervical|lumbar|lumbosacral|thoracic|[clt])[ -]?spine|spine|sacrum|coccyx|"
    r"mammo(?:gram|graphy)|breasts?|extremit(?:y|ies)|barium|esophagram|renal|kidneys?|"
    r"liver|thyroid|scrot(?:um|al)|scoliosis)\b"
    r"|腹|盆|髋|膝|踝|足|肩|肘|腕|手|颅|头|鼻窦|颈椎|腰椎|脊柱|骶|乳腺|股骨|胫|肱骨",
    re.IGNORECASE,
)


def is_chest(exam: str) -> bool:
    """Whether `exam`, the words for what was examined, can be a chest study.

    False only when another region is named and the chest is not: an empty or unclear
    text never excludes a case.

    Examples
    --------
    >>> is_chest("CHEST (PA AND LAT)"), is_chest("RIGHT KNEE"), is_chest("")
    (True, False, True)
    """
    if _CHEST.search(_SPINE.sub(" ", exam)):
        return True
    return _ELSEWHERE.search(exam) is None
