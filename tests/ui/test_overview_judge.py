"""The page Overview of a judge: against readers, with its gate or without one."""

from loop.run.manifest import find_run
from loop.ui.pages.overview import render_judge
from tests.judge.scenes import call, rate


def test_a_judge_is_shown_against_readers(workspace, tmp_path):
    """Its scores, its counts beside the experts', and that nothing is claimed."""
    rate(workspace, tmp_path)
    assert call(workspace, "run", "mine", "--cohort", "rp").exit_code == 0
    page = render_judge(workspace, find_run(workspace, "latest"))
    assert "mine@v1 on rp" in page and "no gate" in page
    assert "GREEN with readers, tau-b" in page
    assert "against rp:ratings1" in page
    assert "median of 2 experts" in page
    assert "zebra" not in page
    text = workspace.protocol.read_text()
    workspace.protocol.write_text(f"{text}\njudging: {{threshold: 0.99}}\n")
    claimed = render_judge(workspace, find_run(workspace, "latest"))
    assert "The judge against the protocol" in claimed
    assert "v-INSUFFICIENT" in claimed
