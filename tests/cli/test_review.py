"""``ranloop review``: what it refuses before it listens, and how it stops."""

import json
import signal
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from loop.cli.main import app
from loop.core.people.roster import add_user
from loop.core.people.users import UserRole

pytestmark = pytest.mark.slow


def review(workspace, *options):
    """Run the verb; only what is refused returns."""
    return CliRunner().invoke(
        app, ["review", "--workspace", str(workspace.root), *options]
    )


def test_a_port_in_use_is_named_with_the_way_out(workspace):
    """Two people start it on one machine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = review(workspace, "--port", str(port))
    assert f"port {port}" in str(refused.exception)
    assert "--port" in str(refused.exception)


def test_an_open_address_without_users_is_refused(workspace):
    """Clinical text would be open to the whole network."""
    refused = review(workspace, "--host", "0.0.0.0", "--port", "0")
    assert "ranloop user add" in str(refused.exception)


def test_sign_in_without_anybody_to_sign_in_is_refused(workspace):
    """A page that nobody can open helps nobody."""
    refused = review(workspace, "--sign-in", "--port", "0")
    assert "ranloop user add" in str(refused.exception)


def test_a_certificate_needs_its_key(workspace):
    """Half of TLS is none."""
    refused = review(workspace, "--certificate", "cert.pem")
    assert refused.exit_code == 2
    assert "--key" in refused.output


@pytest.fixture
def peopled(workspace):
    """Return a workspace in which one person can sign in."""
    add_user(workspace, "Dr. A", (UserRole.EDITOR,), "correct horse battery")
    return workspace


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.0.2.1"])
def test_other_machines_are_not_served_unencrypted_unasked(peopled, host):
    """Passwords and case texts would travel in the clear; each way out is named."""
    refused = review(peopled, "--host", host, "--port", "0")
    for said in ("unencrypted", "--certificate", "--proxy", "--insecure"):
        assert said in str(refused.exception)


@pytest.mark.parametrize("given", ["nginx", "10.0.0.1/8", "0.0.0.0/0"])
def test_a_proxy_is_an_address_or_a_network(peopled, given):
    """A name could be made to point elsewhere, and everybody is no proxy."""
    refused = review(peopled, "--proxy", given)
    assert refused.exit_code == 2
    assert "--proxy" in refused.output


def test_a_proxy_needs_people_who_sign_in(workspace):
    """Others reach it then, whatever it listens on."""
    refused = review(workspace, "--proxy", "127.0.0.1", "--port", "0")
    assert "ranloop user add" in str(refused.exception)


def started(workspace, *options):
    """Start the verb on a free port and return its process."""
    command = [sys.executable, "-m", "loop", "review", "-w", workspace.root]
    return subprocess.Popen(
        [*command, "--port", "0", "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("options", "warned"), [(("--insecure",), True), (("--proxy", "10.0.0.1"), False)]
)
def test_with_consent_or_a_proxy_other_machines_are_served(peopled, options, warned):
    """The warning does not stand in the one JSON object."""
    process = started(peopled, "--host", "0.0.0.0", *options)
    said = "".join(iter(process.stdout.readline, "}\n")) + "}"
    process.send_signal(signal.SIGINT)
    more, complaints = process.communicate(timeout=60)
    assert json.loads(said)["url"].startswith("http://0.0.0.0:")
    assert more == ""
    assert ("passwords and case texts travel unencrypted" in complaints) is warned


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_when_told(workspace, how):
    """Ctrl-C ends it, without a traceback and without a process left behind."""
    add_user(workspace, "Dr. A", (UserRole.EDITOR,), "correct horse battery")
    process = subprocess.Popen(
        [sys.executable, "-m", "loop", "review", "-w", workspace.root, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "workbench of" in process.stdout.readline()
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
