"""Sections of a report: what was found, what was concluded, and everything else."""

from __future__ import annotations

import re
from typing import NamedTuple

_FINDINGS = (
    "FINDINGS AND IMPRESSION|FINDINGS/IMPRESSION|FINDINGS & IMPRESSION|"
    "FINDINGS/CONCLUSION|FINDINGS AND CONCLUSION|IMPRESSION AND FINDINGS|"
    "IMPRESSION/FINDINGS|RADIOGRAPHIC FINDINGS|CHEST FINDINGS|DETAILED FINDINGS|"
    "FINDINGS|FINDING|REPORT|"
    "影像学表现|影像学所见|影像表现|影像所见|放射学表现|检查所见|所见"
)
_IMPRESSION = (
    "FINAL IMPRESSION|IMPRESSIONS|IMPRESSION|IMPRESSON|IMP|CONCLUSIONS|CONCLUSION|"
    "OPINION|INTERPRETATION|SUMMARY|DIAGNOSIS|"
    "影像学诊断|影像诊断|放射学诊断|诊断意见|诊断印象|诊断结论|诊断提示|诊断|印象|结论|意见"
)
_EXAM = (
    "EXAMINATION|EXAMINATIONS|EXAM|STUDY|PROCEDURE|TYPE OF EXAM|EXAM TYPE|"
    "检查项目|检查部位|检查名称"
)
_OTHER = (
    "REASON FOR EXAMINATION|REASON FOR THIS EXAMINATION|REASON FOR EXAM|"
    "REASON FOR STUDY|INDICATIONS|INDICATION|CLINICAL INDICATION|CLINICAL HISTORY|"
    "CLINICAL INFORMATION|PATIENT HISTORY|MEDICAL HISTORY|HISTORY|COMPARISONS|"
    "COMPARISON|COMPARED TO|TECHNIQUE|VIEWS|VIEW|DATE|TIME|RECOMMENDATIONS|"
    "RECOMMENDATION|NOTIFICATIONS|NOTIFICATION|ADDENDUM|WET READ|PRELIMINARY REPORT|"
    "DOSE|CONTRAST|ATTESTATION|"
    "临床诊断|临床资料|临床病史|病史|检查方法|检查技术|检查目的|对比|比较|建议|备注|报告医师|审核医师"
)
_KINDS = {
    "findings": _FINDINGS,
    "impression": _IMPRESSION,
    "exam": _EXAM,
    "other": _OTHER,
}
_KIND = {name: kind for kind, names in _KINDS.items() for name in names.split("|")}
_NAMES = "|".join(sorted(map(re.escape, _KIND), key=len, reverse=True))
# At the start of a line any case will do; inside a line only capitals after the end of
# a sentence, because "the impression: stable" is prose. Chinese headings come in
# brackets or with a full-width colon.
_COLON = r"[:\uff1a]"
_STOP = r"[.\u3002;\uff1b]"
_HEADING = re.compile(
    rf"^[ \t]*[【\[]?(?ai:(?P<line>{_NAMES}))[ \t]*(?:[】\]][ \t]*{_COLON}?|{_COLON})"
    rf"|(?:(?<={_STOP})|(?<={_STOP}\s))[ \t]*(?P<inline>{_NAMES})[ \t]*{_COLON}",
    re.MULTILINE,
)
# "PORTABLE AP CHEST RADIOGRAPH: ..." opens the findings of a report without headings.
_VIEW = re.compile(
    r"^[ \t]*[A-Z][A-Z0-9 ,()/&.-]{0,80}\b(?:CHEST|CXR|RADIOGRAPHS?|LUNGS?)\b"
    r"[A-Z0-9 ,()/&.-]{0,80}:",
    re.MULTILINE,
)
_TITLE = re.compile(
    r"^[ \t]*(?:FINAL REPORT|WET READ VERSION #\d+|PRELIMINARY REPORT)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_BLANK = re.compile(r"\n[ \t\r]*\n")


class ParsedSections(NamedTuple):
    """What a report says, taken apart."""

    findings: str
    """All findings sections; the body of a report without headings."""

    impression: str
    """All impression or conclusion sections."""

    exam: str
    """What was examined, for telling chest studies from others; may be empty."""

    headed: bool
    """Whether findings or impression stood under a heading of their own."""

    @property
    def text(self) -> str:
        """The text to be read: findings and impression under one spelling of heading.

        A report without headings keeps none: nothing is claimed about its parts.
        """
        if not self.headed:
            return self.findings
        parts = (("FINDINGS", self.findings), ("IMPRESSION", self.impression))
        return "\n\n".join(f"{name}:\n{body}" for name, body in parts if body)


def split_sections(report: str) -> ParsedSections:
    """Return the sections of one report.

    Indication, history, comparison, technique, recommendation, addendum and
    preliminary readings are left out: a question is no finding.
    """
    report = _TITLE.sub("", report.replace("\r\n", "\n").replace("\r", "\n"))
    blocks = _blocks(report)
    found = {kind: _join(blocks, kind) for kind in _KINDS}
    headed = bool(found["findings"] or found["impression"])
    body = found["findings"] or _unlabelled(blocks)
    exam = found["exam"] or _title(blocks[0][1])
    return ParsedSections(body, found["impression"], exam, headed)


def _blocks(report: str) -> list[tuple[str, str]]:
    """Return ``(kind, text)`` pieces; the first is what stands before any heading."""
    heads = list(_HEADING.finditer(report))
    if not any(_kind(head) == "findings" for head in heads):
        heads = sorted([*heads, *_views(report, heads)], key=re.Match.start)
    pieces, kind, start = [], "preamble", 0
    for head in heads:
        pieces.append((kind, report[start : head.start()]))
        kind, start = _kind(head), head.end()
    pieces.append((kind, report[start:]))
    return pieces


def _views(report: str, heads: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return headings that name a view, where no other heading stands."""
    taken = [(head.start(), head.end()) for head in heads]
    return [
        view
        for view in _VIEW.finditer(report)
        if all(view.end() <= start or view.start() >= end for start, end in taken)
    ]


def _kind(head: re.Match[str]) -> str:
    """Kind of a heading; a view names none and opens findings."""
    if head.re is _VIEW:
        return "findings"
    return _KIND[(head["line"] or head["inline"]).upper()]


def _unlabelled(blocks: list[tuple[str, str]]) -> str:
    """Return the body of a report that has no findings heading.

    A section such as HISTORY then ends at its first blank line.
    """
    body = []
    for kind, text in blocks:
        if kind == "preamble":
            body.append(text)
        elif kind in ("exam", "other"):
            body.extend(_BLANK.split(text.lstrip(), maxsplit=1)[1:])
    return "\n\n".join(filter(None, map(_clean, body)))


def _title(preamble: str) -> str:
    """Return the first line of what precedes all headings, if it looks like a title."""
    first = preamble.strip().partition("\n")[0]
    return first if first.isupper() and len(first) <= 80 else ""


def _join(blocks: list[tuple[str, str]], kind: str) -> str:
    return "\n\n".join(filter(None, (_clean(t) for k, t in blocks if k == kind)))


def _clean(text: str) -> str:
    """Return `text` without indentation and without blank ends; words untouched."""
    return "\n".join(line.strip() for line in text.strip().split("\n")).strip()
