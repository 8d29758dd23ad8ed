"""Tables printed honestly from real confusion tables, in many manners."""

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import NamedTuple

import numpy as np

from loop.published.proportions import METHODS


class Manner(NamedTuple):
    """How an author prints."""

    places: int = 3
    half_up: bool = True
    percent: bool = False
    method: str = "Clopper-Pearson"
    from_rounded: bool = False
    """Whether averages, F1 and differences are made from the printed values."""

    def shown(self, value):
        """Return a share as printed."""
        if value is None:
            return "-"
        scaled = Decimal(repr(float(value))) * (100 if self.percent else 1)
        places = self.places - 2 if self.percent else self.places
        mode = ROUND_HALF_UP if self.half_up else ROUND_HALF_EVEN
        return str(scaled.quantize(Decimal(1).scaleb(-places), mode)) + (
            "%" if self.percent else ""
        )

    def kept(self, value):
        """Return what later numbers are made from."""
        if value is None or not self.from_rounded:
            return value
        return float(self.shown(value).rstrip("%")) / (100 if self.percent else 1)


class Result(NamedTuple):
    """Counts of one system on one label."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self):
        """All cases."""
        return sum(self)

    def rates(self, manner):
        """Return accuracy, precision, recall, specificity and F1; 0 where undefined."""
        tp, fp, fn, tn = self
        p, r = ratio(tp, tp + fp), ratio(tp, tp + fn)
        f1 = ratio(2 * tp, 2 * tp + fp + fn)
        if manner.from_rounded:
            p_kept, r_kept = manner.kept(p), manner.kept(r)
            f1 = ratio(2 * p_kept * r_kept, p_kept + r_kept)
        return {
            "Accuracy": (tp + tn) / self.n, "Precision": p, "Recall": r,
            "Specificity": ratio(tn, tn + fp), "F1": f1,
        }  # fmt: skip


def ratio(part, whole):
    """Return a share, 0 without a denominator, as the best known library prints."""
    return part / whole if whole else 0.0


def draw(rng, n, positives):
    """Return one system's counts on `n` cases, of which so many are positive."""
    tp = int(rng.binomial(positives, rng.uniform(0.3, 1)))
    fp = int(rng.binomial(n - positives, rng.uniform(0, 0.3)))
    return Result(tp, fp, positives - tp, n - positives - fp)


def before_after(seed, manner, *, n, labels):
    """Return the rows of a table of labels before and after, with averages."""
    rng = np.random.default_rng(seed)
    names = ("Accuracy", "Precision", "Recall", "Specificity", "F1")
    rows, kept = [], []
    for index in range(labels):
        positives = int(rng.binomial(n, rng.uniform(0.005, 0.6)))
        pre, post = (draw(rng, n, positives).rates(manner) for _ in range(2))
        other = draw(rng, n, positives).rates(manner)["F1"] if index % 3 else None
        values = [rates[name] for name in names for rates in (pre, post)]
        kept_f1 = manner.kept(pre["F1"]), manner.kept(post["F1"]), manner.kept(other)
        values += [kept_f1[1] - kept_f1[0], other]
        values.append(None if other is None else kept_f1[1] - kept_f1[2])
        kept.append([manner.kept(value) for value in values])
        rows.append([f"Label {index}", *map(manner.shown, values)])
    columns = list(zip(*kept, strict=True))
    means = [mean(column) for column in columns]
    header = ["Label", *(f"{name} {when}" for name in names for when in WHEN)]
    header += ["Delta F1", "Older F1", "Delta to Older"]
    return [header, *rows, ["Average", *map(manner.shown, means)]]


WHEN = ("pre", "post")


def mean(values):
    """Return the mean of what is there."""
    given = [value for value in values if value is not None]
    return sum(given) / len(given) if given else None


def with_intervals(seed, manner, *, n, labels, models=3):
    """Return the rows of a table of accuracies with intervals."""
    rng = np.random.default_rng(seed)
    rows = []
    for index in range(labels):
        cells = []
        for _ in range(models):
            k = int(rng.binomial(n, rng.uniform(0.5, 1)))
            low, high = METHODS[manner.method](np.array([k]), np.array([n]), 0.95)
            ends = f"{manner.shown(low[0])}, {manner.shown(high[0])}"
            cells.append(f"{manner.shown(k / n)} [{ends}]")
        rows.append([f"Label {index}", *cells])
    return [["Label", *(f"Model {chr(65 + i)}" for i in range(models))], *rows]


def systems(seed, manner, *, n, models):
    """Return the rows of a table of systems scored on one reference set."""
    rng = np.random.default_rng(seed)
    positives = int(rng.binomial(n, rng.uniform(0.05, 0.6)))
    names = ("Accuracy", "Precision", "Recall", "F1")
    rows = []
    for index in range(models):
        rates = draw(rng, n, positives).rates(manner)
        rows.append([f"System {index}", *(manner.shown(rates[x]) for x in names)])
    return [["Model", *names], *rows]
