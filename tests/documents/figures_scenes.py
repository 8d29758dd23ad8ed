"""Histories and lineages made up for figures."""

from xml.etree import ElementTree

from loop.evaluate.score_history import Edge, Lineage, Node, VersionScore
from loop.evaluate.tried import WordingStatus

SVG = "{http://www.w3.org/2000/svg}"


def parsed(figure):
    """Return a figure as a tree; it must be XML and describe itself."""
    root = ElementTree.fromstring(figure)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text and root.find(f"{SVG}desc").text
    return root


def words(root):
    """Return every text that is drawn."""
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def score(number, **others):
    """Return one version with a score that grows with its number."""
    fields = {
        "number": number,
        "ref": f"made@v{number}",
        "digest": str(number),
        "parent": str(number - 1),
        "when": "2026-01-05T09:00:00Z",
        "who": "Dr A. Example",
        "why": "a reason",
        "verdicts": 1,
        "status": WordingStatus.COMMITTED,
        "run": "r",
        "macro_f1": number / 100 + 0.3,
        "low": number / 100 + 0.25,
        "high": number / 100 + 0.35,
        "labels_passed": 10,
        "labels_failed": 6,
        "labels_insufficient": 5,
    }
    return VersionScore(**{**fields, **others})


def lineage(versions, drafts=(), aliases=None, far=()):
    """Return a chain of versions; `drafts` names the parent of each draft."""
    nodes, edges = [], [Edge(f"m@v{a}", f"m@v{b}") for a, b in far]
    skipped = {b for _, b in far}
    for number in range(1, versions + 1):
        nodes.append(node(f"m@v{number}", number, aliases=(aliases or {}).get(number)))
        if number > 1 and number not in skipped:
            edges.append(Edge(f"m@v{number - 1}", f"m@v{number}"))
        for place, parent in enumerate(drafts):
            if parent == number:
                ref = f"m@draft:d{place}"
                status = WordingStatus.DRAFT if place % 2 else WordingStatus.REJECTED
                nodes.append(node(ref, 0, status=status))
                edges.append(Edge(f"m@v{number}", ref))
    return Lineage(prompt="m", nodes=tuple(nodes), edges=tuple(edges))


def node(ref, number, *, aliases=None, status=WordingStatus.COMMITTED, why="a reason"):
    """Return one node."""
    return Node(
        ref=ref,
        number=number,
        status=status,
        when="2026-01-05T09:00:00Z",
        who="Dr A. Example",
        why=why,
        aliases=aliases or (),
    )
