"""Errors raised by loop on purpose, as a tree.

LoopError
├── WorkspaceError        no workspace here, or it cannot be written
│   └── WriteError        a file could not be written; nothing was changed
├── DataError             a file under prompts/, labels/ or given by the user is wrong
│   ├── UnknownLabelError a label the taxonomy does not have
│   ├── OverlapError      cohorts of different roles share a case, patient or text
│   ├── EditedVersionError  a committed prompt version no longer has its digest
│   ├── SealedError       labels of a holdout were asked for without an opening
│   └── LedgerError       the ledger's chain is broken
│       └── TornLedgerError  only its last line is incomplete (in loop.core.ledger)
├── StoreError            the private store cannot be read or written
├── EngineError           an engine as a whole cannot answer
│   └── UnknownEngineError
├── ConflictError         someone else changed the same thing first; retryable
└── PermissionRefused     whoever asks may not do that (in loop.core.people.users)
    └── SignInRequired    nobody is signed in, or not any more

A message says what happened, where, and what to do next, in that order. It never
holds case text or a secret. Wrong arguments in code are `ValueError`.
"""

from __future__ import annotations


class LoopError(Exception):
    """Base of every error that loop raises on purpose.

    The command line prints these without a traceback and exits with 1; any other
    exception is a bug in loop and keeps its traceback.
    """

    retryable: bool = False


class WorkspaceError(LoopError):
    """There is no workspace here, or it cannot be used."""


class WriteError(WorkspaceError):
    """A file could not be written; what was there before is unchanged."""


class DataError(LoopError):
    """A file is missing, malformed, or contradicts another file."""


class UnknownLabelError(DataError):
    """A label name that the taxonomy does not have."""


class OverlapError(DataError):
    """Cohorts of different roles share a case, a patient or a text."""


class EditedVersionError(DataError):
    """A committed prompt version no longer matches its recorded digest."""


class SealedError(DataError):
    """Labels or votes of a holdout were asked for, and no opening allows it."""


class LedgerError(DataError):
    """The ledger's hash chain is broken or a line cannot be read."""


class StoreError(LoopError):
    """The private store cannot be read or written."""


class EngineError(LoopError):
    """An engine as a whole failed; one failed prompt is a completion instead."""


class NoEffectError(EngineError):
    """What an engine was asked for changes nothing of its answers."""


class UnknownEngineError(EngineError):
    """No engine is registered under the requested name."""


class ConflictError(LoopError):
    """Someone else changed the same thing first; nothing of yours was lost."""

    retryable = True
