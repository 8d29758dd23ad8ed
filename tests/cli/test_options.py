"""Options that do not go together are refused by every verb, with what to write."""

import pytest
from typer.testing import CliRunner

from loop.cli.main import app

NO_FILE = "not-there.csv"
EVAL = ("meta-eval", NO_FILE, "--errors", NO_FILE)
OF_RATINGS = "--scale and --dimension are for --ratings: leave them out"
OF_RADJUDGE = "--tolerance and --with-context are for --radjudge"
OF_READING = "--reader, --overlap and --replace are for --for reading"
REVIEW = ("sample", "dev", "--for", "review")
KEY = ("key", "new", "Ann", "--role", "approver")
TLS = "--certificate and --key belong together"
BATCH = ("export", "extractor", "--to", "openai-batch", "--out", "out")
BEGIN = ("draft", "begin", "extractor", "--cohort", "dev", "--program", "p.json")
NO_PROGRAM = "--program takes no verdicts and no contract"
ONE_CASE = "--label and --raw are about one case. Name it after RUN."
LORA = "give --lora as NAME=PATH"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("agreement", "dev", "--uncertain", "drop"), "use leave-out or category"),
        (
            ("annotate", "a", "--dry-run", "--report", "b"),
            "give --dry-run or --report, not both",
        ),
        (("audit", "--export", "log.txt"), "name such a file"),
        ((*BEGIN, "--verdicts", "v.yaml"), NO_PROGRAM),
        ((*BEGIN, "--kept"), NO_PROGRAM),
        ((*BEGIN, "--verdict", "0a1b2c3d4e5f"), NO_PROGRAM),
        ((*BEGIN, "--contract", "binary"), NO_PROGRAM),
        (
            (*BATCH, "--cohort", "dev", "--input", NO_FILE),
            "name either --cohort or --input",
        ),
        ((*BATCH, "--why", " "), "--why needs a reason: the ledger records it"),
        ((*KEY, "--replace"), "--replace and --why belong together"),
        ((*KEY, "--why", "lost"), "--replace and --why belong together"),
        ((*KEY, "--replace", "--why", " "), "--replace and --why belong together"),
        ((*EVAL, "--scale", "1", "5"), OF_RATINGS),
        ((*EVAL, "--dimension", "overall"), OF_RATINGS),
        ((*EVAL, "--tolerance", "0"), OF_RADJUDGE),
        ((*EVAL, "--with-context", "x"), OF_RADJUDGE),
        (("prompt", "new", "mine", "--pool", "other"), "--pool is for --shots."),
        (("review", "--certificate", "a.pem"), TLS),
        (("review", "--key", "a.pem"), TLS),
        ((*REVIEW, "--reader", "Ann"), OF_READING),
        ((*REVIEW, "--overlap", "0"), OF_READING),
        ((*REVIEW, "--replace"), OF_READING),
        (
            ("sample", "dev", "--for", "reading", "--overlap", "0"),
            "--overlap is for readers: name them with --reader",
        ),
        (
            ("sample", "dev", "--for", "reading", "--name", "one"),
            "--name is for --for review: this one has a number",
        ),
        (("serve", "m", "--lora", "one"), LORA),
        (("serve", "m", "--lora", "one="), LORA),
        (("serve", "m", "--lora", "=path"), LORA),
        (("show", "latest", "--label", "edema"), ONE_CASE),
        (("show", "latest", "--raw"), ONE_CASE),
        (("plan",), "name a cohort with --cohort, or a prompt or run"),
        (
            ("plan", "-c", "dev", "--accuracy", "0"),
            "--accuracy is a share up to 1, got 0",
        ),
        (
            ("plan", "-c", "dev", "--accuracy", "1.01"),
            "--accuracy is a share up to 1, got 1.01",
        ),
        (
            ("init", "new", "--task", "new"),
            "--task new needs --labels FILE, and only that task takes it",
        ),
        (
            ("init", "new", "--labels", NO_FILE),
            "--task new needs --labels FILE, and only that task takes it",
        ),
        (("alias", "extractor@v1", "ward", "--why", " "), "--why needs a reason"),
    ],
)
def test_what_does_not_go_together_is_refused(workspace, monkeypatch, words, told):
    """Before anything is read or asked, and nothing is recorded."""
    monkeypatch.chdir(workspace.root)
    before = workspace.ledger.read_bytes()
    done = CliRunner().invoke(app, list(words), terminal_width=400)
    said = f"{done.output} {done.exception}".replace("\u2502", " ")
    assert told in " ".join(said.split())
    assert done.exit_code
    assert workspace.ledger.read_bytes() == before
    assert not (workspace.root / "new").exists()
