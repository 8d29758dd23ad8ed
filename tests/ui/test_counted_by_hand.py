"""What pages show of twelve cases and two versions that are counted by hand."""

import html
import re

import pytest

from loop.ui.pages import overview
from loop.ui.pages.versions.view import render_versions
from tests.two_rounds import make_rounds
from tests.ui.visits import opened, visit


@pytest.fixture(scope="module")
def place(first_version, tmp_path_factory):
    """Return the workspace after both rounds."""
    return make_rounds(first_version, tmp_path_factory.mktemp("rounds"))[0]


def plain(shown):
    """Return the words of a page, as they are read."""
    return " ".join(re.sub(r"<[^>]*>", " ", html.unescape(shown)).split())


def test_the_overview_counts_what_the_command_line_counts(place):
    """Its summary, the gate of each label, and what changed since the parent."""
    with opened(place) as context:
        shown = overview.refresh(visit(context), "tiny", "dev")
    said = plain(shown)
    assert said.partition(" What these words mean")[0] == (
        "Synthetic cohort: made-up texts. These numbers say nothing about real "
        "reports. tiny@v2 on dev INSUFFICIENT 0 pass 0 fail 21 insufficient macro-F1 "
        "0.778 [0.250, 1.000] rules, uncertain answers wrong, reference 1 +0.203 "
        "[−0.455, +0.638] since tiny@v1 Versions tried here 2 all committed Score "
        "corrected for selection – macro-F1, the best of 2 versions Cases 12 0 "
        "unparsed , 0 engine failed"
    )
    needs = (
        "11 of at least 59 cases; 4 of at least 10 positives; 7 of at least 10 "
        "negatives; needs about 48 more cases (6 positives)"
    )
    rows = [plain(one) for one in shown.split("<tr ")[2:]]
    lesion, effusion = (
        next(row for row in rows if f"> {name} " in row)
        for name in ("Lung Lesion", "Pleural Effusion")
    )
    assert "INSUFFICIENT 11 4 0.818 [0.482, 0.977] Lung Lesion" in lesion
    assert lesion.endswith(f" 0.56 [0.06, 1.00] 0.667 +2 −1 {needs}")
    assert "INSUFFICIENT 11 4 0.909 [0.587, 0.998] Pleural Effusion" in effusion
    assert effusion.endswith(f" 0.81 [0.47, 1.00] 0.889 +1 −0 {needs}")
    assert (
        "0 of 21 labels pass, macro-F1 0.778; if read as absent: 0, 0.778; if read as "
        "present: 0, 0.873; if left out: 0, 0.844."
    ) in said


def test_the_versions_stand_with_their_scores(place):
    """Newest first, each with what was changed in it."""
    with opened(place) as context:
        said = plain(render_versions(context, "tiny", "dev"))
    newest, first = re.findall(
        r"Not to be trusted: not in the ledger (.*?)(?= v1 | Drafts )", said
    )
    assert newest == (
        "0 +2 terms, −1 term 0.778 [0.250, 1.000] rules, uncertain answers wrong, "
        "reference 1, 12 cases 0 of 21"
    )
    assert first == (
        "0 first version 0.575 [0.125, 0.900] rules, uncertain answers wrong, "
        "reference 1, 12 cases 0 of 21"
    )
