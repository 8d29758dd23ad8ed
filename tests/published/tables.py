"""Tables of text handed to the auditor, and what it says about them."""

from loop.published.printed import TextTable
from loop.published.result_table import make_table
from loop.published.table_audit import audit_tables


def table_of(rows, caption="", *, name="T", **options):
    """Return rows of text, the first of which is the header, as a table."""
    header, *body = (tuple(row) for row in rows)
    return make_table(TextTable(name, caption, header, tuple(body), 0), **options)


def audited(rows, caption="", *, notes=None, **options):
    """Return the audit of one table of text."""
    return audit_tables([table_of(rows, caption, **options)], notes)


def only(audit, check):
    """Return the one finding of a check."""
    (found,) = audit.about(check)
    return found


def whole(finding):
    """Return what a finding says, in words and as numbers."""
    return finding.part, finding.severity.value, finding.what, dict(finding.numbers)
