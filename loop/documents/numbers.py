"""How numbers are printed: the same everywhere, and never NaN."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

NOT_ESTIMABLE = "\N{EN DASH}"
"""Printed where a number has no meaning; every document explains it."""

_MINUS = "\N{MINUS SIGN}"


class Limits(Protocol):
    """Anything with a lower and an upper limit."""

    @property
    def low(self) -> float | None:
        """Lower limit."""
        ...

    @property
    def high(self) -> float | None:
        """Upper limit."""
        ...


def share(value: float | None, digits: int = 3) -> str:
    """Return a share, kappa or F1 with `digits` decimals.

    Examples
    --------
    >>> share(0.9666), share(-0.0001), share(None) == NOT_ESTIMABLE
    ('0.967', '0.000', True)
    """
    if value is None:
        return NOT_ESTIMABLE
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", _MINUS)


def significant(value: float, digits: int = 6) -> str:
    """Return a number of any size, with as many significant digits as asked.

    Examples
    --------
    >>> significant(-0.22245301) == _MINUS + "0.222453", significant(12.0)
    (True, '12')
    """
    return f"{value:.{digits}g}".replace("-", _MINUS)


def signed(value: float | None, digits: int = 3) -> str:
    """Return a difference with its sign; zero has none.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5) == _MINUS + "0.500", signed(0.0)
    ('+0.012', True, '0.000')
    """
    if value is None:
        return NOT_ESTIMABLE
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return text[1:]
    return text.replace("-", _MINUS)


def interval(limits: Limits | None, digits: int = 3) -> str:
    """Return ``[low, high]``, or a dash where there is none."""
    if limits is None or limits.low is None or limits.high is None:
        return NOT_ESTIMABLE
    return f"[{share(limits.low, digits)}, {share(limits.high, digits)}]"


def signed_interval(limits: Limits | None, digits: int = 3) -> str:
    """Return the interval of a difference, with signs."""
    if limits is None or limits.low is None or limits.high is None:
        return NOT_ESTIMABLE
    return f"[{signed(limits.low, digits)}, {signed(limits.high, digits)}]"


def p_value(p: float) -> str:
    """Return a p-value; a small one is never printed as zero.

    Examples
    --------
    >>> p_value(0.03125), p_value(1e-9), p_value(1.0)
    ('0.031', '< 0.001', '1.000')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def percent(part: float | None, digits: int = 1) -> str:
    """Return a share as a percentage.

    Examples
    --------
    >>> percent(0.125)
    '12.5 %'
    """
    return NOT_ESTIMABLE if part is None else f"{100 * part:.{digits}f} %"


def count(number: int | None) -> str:
    """Return a count with separators from 10,000 on; a dash for None."""
    if number is None:
        return NOT_ESTIMABLE
    return f"{number:,}" if number >= 10_000 else str(number)


class Units(Protocol):
    """What was resampled, of which kind, and for how many cases it is known."""

    @property
    def unit(self) -> str:
        """``"case"`` or ``"patient"``."""
        ...

    @property
    def units(self) -> int:
        """How many there are."""
        ...

    @property
    def known(self) -> int:
        """Cases whose patient is known; any other case is a unit of its own."""
        ...


def resampled(method: Units, cases: int) -> str:
    """Return what the bootstrap resampled, and for how many cases patients are known.

    Examples
    --------
    >>> from types import SimpleNamespace as Method
    >>> resampled(Method(unit="patient", units=25, known=30), 40)
    '25 patients (patient known for 30 of 40 cases, any other case counts as one)'
    >>> resampled(Method(unit="patient", units=20, known=40), 40)
    '20 patients (patient known for 40 of 40 cases)'
    >>> resampled(Method(unit="case", units=40, known=0), 40)
    '40 cases (patient known for 0 of 40 cases)'
    """
    of = f"patient known for {count(method.known)} of {count(cases)} cases"
    if 0 < method.known < cases:
        of += ", any other case counts as one"
    return f"{count(method.units)} {method.unit}s ({of})"


def listed(words: Iterable[str], most: int = 40) -> str:
    """Join ids with commas; name how many were left off after `most`."""
    every = list(words)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"
