"""What ``ensemble`` prints of a fit, of all ensembles, and of other pairs."""

import json
import re

import pytest

from tests.judge.scenes import call, rate, table

pytestmark = pytest.mark.slow

MEMBERS = ("--members", "green,rouge_1", "--cohort", "rp")

FITTED = """\
plain@v1: mean of 2 members, fitted on 8 pairs of 7 references of rp

member                     better  coefficient  per SD  tau-b  95 %  Spearman  Pearson
-------------------------  ------  -----------  ------  -----  ----  --------  -------
GREEN of green@v1 (green)  higher      +1.1547  +0.500      –     –         –        –
ROUGE-1 (rouge_1)          higher      +1.4775  +0.500      –     –         –        –

Whether it is better than its best member was not measured. Fit it with --out-of-fold.

note: The score is the mean of the members in standard deviations of the fitted pairs (per SD), each
      turned so that more is better: 0 is an average pair. Ratings are not used.
note: 8 pairs are fewer than 10 for each of 2 members: coefficients are uncertain.
"""  # noqa: E501
"""GREEN of the pairs is 1, 0, 0, 1/2, 1, 1/2, 1, 0: half of 1 / its SD of 0.433."""

PINNED = """\
note: Fitted on rp (DIGEST) and rp:ratings1 (DIGEST); digest DIGEST, as recorded.
note: green: green@v1 DIGEST, rules DIGEST;
      green_green|green@v1:DIGEST|rules:DIGEST|parser:tolerant|empty:1
note: rouge_1: no prompt; rouge_1|F|stem:no|tok:words|mean:cases|rouge-score:0.1.2
note: Fitted again on its 8 rows it is the same.
"""

LISTED = """\
ensemble      method         members  cohort  pairs  tau-b out of fold
--------  ----------  --------------  ------  -----  -----------------
plain@v1        mean  green, rouge_1      rp      8                  –
rated@v1  regression  green, rouge_1      rp      8              0.828
"""

OF_THE_MEAN = """\
plain@v1: mean of 2 members, fitted on 8 pairs of 7 references of rp; scores in standard deviations

system  pairs  scored    mean   least    most
------  -----  ------  ------  ------  ------
one         2       2  +0.503  −0.032  +1.038
two         1       1  −1.102  −1.102  −1.102

note: Overlap with the fitted pairs, not compared: patients: not named for every case of the pairs.
signature: ensemble:plain@v1:"""  # noqa: E501

UNREAD = """\
system  pairs  scored  mean  least  most
------  -----  ------  ----  -----  ----
one         2       0     –      –     –
two         1       0     –      –     –

note: Pairs without a readable answer have no score, by member: green 3.
note: Overlap"""


def masked(text):
    """Return a text without digests."""
    return re.sub(r"\b[\da-f]{8,}\b", "DIGEST", text)


def test_an_ensemble_is_printed_whole(workspace, tmp_path):
    """As it was fitted, as it is kept, and as it scores pairs that it has not seen."""
    rate(workspace, tmp_path)
    assert call(workspace, "ensemble", "list").stdout == (
        "no ensemble yet; `ranloop ensemble fit` makes one\n"
    )
    words = ("ensemble", "fit", *MEMBERS, "--resamples", "20", "--method")
    plain = call(workspace, *words, "mean", "-n", "plain")
    assert plain.stdout == FITTED
    assert masked(plain.stderr.splitlines()[-1]) == (
        "kept as plain@v1, digest DIGEST, in the ledger"
    )
    again = call(workspace, *words, "mean", "-n", "plain")
    assert again.stdout == FITTED
    assert again.stderr.splitlines()[-1] == (
        "the same as plain@v1, which is kept: nothing is recorded anew"
    )
    measured = ("--out-of-fold", "-k", "4", "-n", "rated")
    assert call(workspace, *words, "regression", *measured).exit_code == 0
    assert call(workspace, "ensemble", "list").stdout == LISTED
    data = json.loads(call(workspace, "ensemble", "list", "--json").stdout)
    assert [
        (one["ensemble"], one["method"], one["members"], one["cohort"], one["pairs"])
        for one in data["ensembles"]
    ] == [
        ("plain@v1", "mean", ["green", "rouge_1"], "rp", 8),
        ("rated@v1", "regression", ["green", "rouge_1"], "rp", 8),
    ]
    shown = call(workspace, "ensemble", "show", "plain")
    assert masked(shown.stdout) == FITTED + PINNED
    rows = [
        ("n1", "one", *["Moderate right pleural effusion."] * 2),
        ("n1", "two", "Moderate right pleural effusion.", "No effusion."),
        (
            *("n2", "one", "Enlarged heart, no edema."),
            "Enlarged heart, no edema. Fracture of a rib.",
        ),
    ]
    header = ("id", "system", "reference", "candidate")
    pairs = table(tmp_path / "new.csv", header, rows)
    words = ("ensemble", "score", "plain", "--pairs", pairs)
    assert call(workspace, *words).stdout.startswith(OF_THE_MEAN)
    rated = call(workspace, "ensemble", "score", "rated", "--pairs", pairs).stdout
    assert "one         2       2  4.121  3.379  4.863\n" in rated
    unread = call(workspace, *words, "--language", "de").stdout
    assert UNREAD in unread
