"""Requests to a real server: only those that may pass do."""

import json

import pytest
from starlette.requests import Request

from loop.core.people.roster import add_user, disable_user, users_path
from loop.core.people.sign_ins import sign_ins_path
from loop.core.people.users import UserRole
from loop.ui.access.access import Access
from loop.ui.access.bodies import BODY_LIMITS, BodyLimits
from loop.ui.access.gate import (
    SIZES,
    Sizes,
    _is_seen,
    _strip_forwarded_headers,
    build_gate,
)
from loop.ui.access.hosts import Hosts
from loop.ui.access.http_protocol import TimedProtocol, server_config
from loop.ui.access.proxies import Proxies
from loop.ui.access.security_headers import with_security_headers
from loop.ui.access.sessions import SPANS, Spans
from tests.ui.access.conftest import Behind
from tests.ui.access.served import GOOD, Client, serving
from tests.ui.conftest import awaited

RUN = "/gradio_api/run/predict"
STREAM = "/gradio_api/heartbeat/s0yw8wdb1jq"
UPLOAD = "/upload"

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
ELSEWHERE = (
    {"Origin": "http://evil.example"},
    {"Origin": "http://localhost:1"},
    {"Origin": "null"},
    {"Origin": None},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": None, "Sec-Fetch-Site": "cross-site"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
)
HERE = (
    {"Origin": None, "Sec-Fetch-Site": "same-origin"},
    {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "same-origin"},
    {},
)
BESIDES = (
    "/config",
    "/gradio_api/api/predict",
    "/gradio_api/call/predict",
    "/gradio_api/call/predict/12ab",
    "/gradio_api/call/v2/predict",
    "/gradio_api/cancel",
    "/gradio_api/reset",
    "/gradio_api/queue/join",
    "/gradio_api/queue/data?session_hash=s0yw8wdb1jq",
    "/gradio_api/queue/status",
    "/gradio_api/startup-events",
    "/gradio_api/file=/srv/gradio/25ab/votes.csv",
    "/gradio_api/upload",
    "/gradio_api/upload_progress?upload_id=a1b2",
    "/gradio_api/user",
    "/gradio_api/token",
    "/gradio_api/login_check",
    "/robots.txt",
    "/pwa_icon",
    "/gradio_api/info",
    "/gradio_api/openapi.json",
    "/gradio_api/proxy=https://example.org/",
    "/gradio_api/vibe-code/",
    "/gradio_api/dev/reload",
    "/gradio_api/runs",
    "/gradio_api/run-history/buckets",
    "/gradio_api/deep_link",
    "/gradio_api/mcp/",
    "/gradio_api/stream/a/b/c/playlist.m3u8",
    "/gradio_api/custom_component/a/client/b/c.js",
    "/gradio_api/component_server",
    "/gradio_api/process_recording",
    "/gradio_api/file/etc/passwd",
    "/monitoring",
    "/monitoring/summary",
    "/svelte/svelte.js",
    "/login",
    "/logout",
    "/docs",
    "/openapi.json",
    "/.ranloop/users.yaml",
    "//gradio_api/info",
    "/%2fgradio_api/info",
    "/assets/%2e%2e/gradio_api/info",
    "/assets/..%2fgradio_api/info",
    "/gradio_api/run/%2e%2e/info",
    "/Gradio_API/run/predict",
    "/gradio_api/run/predict/",
    "/config/",
    "/?deep_link=x",
    "/?deep%5flink=x",
    "/gradio_api/file=/srv/%2e%2e/etc/passwd",
    "/gradio_api/file=https://example.org/",
)


def test_without_a_session_the_page_leads_to_the_sign_in(client):
    """And back to where one wanted to go."""
    answer = client.get("/?__theme=dark")
    assert answer.status == 303
    assert answer.headers["location"] == "/sign-in?next=%2F%3F__theme%3Ddark"
    assert client.get("/").headers["location"] == "/sign-in"


def test_without_a_session_nothing_is_read_or_done(client):
    """The answer is one that the front end understands."""
    answers = [
        client.get(path) for path in ("/gradio_api/app_id", STREAM, "/theme.css")
    ]
    answers += [client.post(path) for path in (RUN, UPLOAD)]
    for answer in answers:
        assert answer.status == 401
        assert json.loads(answer.text) == {"detail": "sign in again"}


def test_program_files_need_no_session(client):
    """Every copy of Gradio has them; the browser may keep them."""
    answer = client.get("/assets/index-DphvyggB.js")
    assert answer.status == 200
    assert "immutable" in answer.headers["cache-control"]


def test_a_session_passes_and_the_application_knows_whose(client):
    """The name comes from the session."""
    client.sign_in("reviewer")
    assert json.loads(client.get("/theme.css").text)["who"] == "reviewer"
    assert json.loads(client.post(RUN).text)["who"] == "reviewer"


def test_a_forged_cookie_is_none(client):
    """Only the server makes tokens."""
    for cookie in ("x", "", "a" * 43, "reviewer", '"', "\x7f;=,"):
        client.cookie = f"ranloop-{client.port}={cookie}"
        assert client.get("/theme.css").status == 401


def test_a_session_unused_for_too_long_has_ended(client, time):
    """The page says so, an event is told."""
    client.sign_in("reviewer")
    time.pass_s(1801)
    assert client.post(RUN).status == 401
    assert client.get("/").headers["location"] == "/sign-in?ended=1"


def test_polling_does_not_keep_a_session(client, time):
    """Events do."""
    client.sign_in("reviewer")
    time.pass_s(1000)
    client.get("/theme.css")
    time.pass_s(700)
    client.post(RUN)
    time.pass_s(1700)
    assert client.get("/theme.css").status == 200
    time.pass_s(101)
    assert client.get("/theme.css").status == 401


def test_a_user_disabled_meanwhile_is_out_at_once(client, users):
    """In the middle of a session."""
    client.sign_in("reviewer")
    assert client.post(RUN).status == 200
    disable_user(users, "reviewer")
    assert client.post(RUN).status == 401


def test_a_stream_is_passed_on_as_it_comes_and_ends_with_its_session(client, users):
    """Who is shut out hears nothing more, though they are still connected."""
    client.sign_in("reviewer")
    with client.listen(STREAM) as stream:
        assert stream.getheader("content-type").startswith("text/event-stream")
        assert stream.getheader("cache-control") == "no-store"
        assert stream.read(10) == b"data: here"
        disable_user(users, "reviewer")
        # Without an end this would wait until the time limit, and fail.
        stream.read()


def test_who_may_not_import_cannot_send_files(client):
    """Gradio itself would store them first and ask later."""
    for name in ("reader", "reviewer", "approver"):
        client.sign_in(name)
        answer = client.post(UPLOAD)
        assert answer.status == 403
        assert "editor or admin" in answer.text


def test_who_may_import_can_send_files(client):
    """Up to the limit for files."""
    client.sign_in("editor")
    assert client.post(UPLOAD, b"x" * 4000).status == 200
    assert client.post(UPLOAD, b"x" * 5001).status == 413


def test_an_event_has_a_limit_too(client):
    """Before a byte of it is read."""
    client.sign_in("editor")
    assert client.post(RUN, b"{}".ljust(1000)).status == 200
    answer = client.post(RUN, b"{}".ljust(1001))
    assert answer.status == 413
    assert "1000 bytes" in answer.text


def test_content_of_unsaid_length_is_refused(client):
    """It could not be limited."""
    client.sign_in("editor")
    assert client.post(RUN, None).status == 411
    chunked = {"Transfer-Encoding": "chunked"}
    assert client.post(RUN, b"2\r\n{}\r\n0\r\n\r\n", **chunked).status == 411


def test_other_sites_can_do_nothing_in_anybodys_name(client):
    """Another port of this machine is another site too."""
    client.sign_in("editor")
    for headers in ELSEWHERE:
        assert client.post(RUN, **headers).status == 403
        assert client.post("/sign-out", b"", **headers).status == 403
        assert client.post("/sign-in", b"", **headers).status == 403


def test_our_own_pages_can(client):
    """However much of it the browser tells."""
    client.sign_in("editor")
    for headers in HERE:
        assert client.post(RUN, **headers).status == 200


def test_other_sites_can_read_nothing(client):
    """Following a link to the page is all they can offer."""
    client.sign_in("editor")
    away = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/theme.css", **away).status == 403
    assert client.get("/", **away).status == 403
    away["Sec-Fetch-Mode"] = "navigate"
    assert client.get("/", **away).status == 200


def test_another_name_for_this_machine_is_refused(client):
    """With the way out."""
    client.sign_in("editor")
    for host in ("evil.example", "127.0.0.1.evil.example:80", "[::1", "a b", ""):
        answer = client.get("/", Host=host)
        assert answer.status == 400
        assert "--name" in answer.text or "Invalid" in answer.text


def test_the_names_of_this_machine_are_served(client):
    """The one in the address bar."""
    client.sign_in("editor")
    assert client.get("/", Host=f"localhost:{client.port}").status == 200


def test_what_gradio_serves_besides_does_not_exist(client):
    """Not even for an admin, and not under another spelling."""
    client.sign_in("admin")
    asked = [(path, ask(path)) for path in BESIDES for ask in (client.get, client.post)]
    assert [path for path, answer in asked if answer.status != 404] == []


def test_other_origins_are_permitted_nothing(client):
    """Whatever Gradio would permit; their first question is not answered."""
    client.sign_in("editor")
    answer = client.get("/theme.css")
    assert "access-control-allow-origin" not in answer.headers
    assert client.ask("OPTIONS", RUN, headers={"Origin": "http://a"}).status == 404


def test_every_answer_has_the_security_headers(client):
    """Refusals included; nothing but program files is kept by a browser."""
    client.sign_in("editor")
    answers = [
        client.get("/"),
        client.post(RUN),
        client.get("/nowhere"),
        client.get("/", Host="evil.example"),
        client.get("/sign-in"),
        client.post(RUN, Origin="null"),
    ]
    assert [answer.status for answer in answers] == [200, 200, 404, 400, 303, 403]
    for answer in answers:
        assert answer.headers | HEADERS == answer.headers
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy


def test_hearsay_about_the_address_is_not_passed_on(client):
    """Gradio would build its addresses from it."""
    client.sign_in("editor")
    answer = client.get("/theme.css", **{"X-Forwarded-Host": "evil.example"})
    assert json.loads(answer.text)["hearsay"] is None


def test_a_broken_list_of_users_lets_nobody_in_and_says_so(client, users):
    """To a visitor without its path."""
    client.sign_in("editor")
    users_path(users).write_text("users: [", "utf-8")
    asked = ("/theme.css", "/sign-in", "/")
    answers = [client.get(path) for path in asked]
    assert ["<main>" in one.text for one in answers] == [False, True, True]
    for answer in answers:
        assert answer.status == 503
        assert "list of users cannot be read" in answer.text
        assert "users.yaml" not in answer.text


def test_a_fault_behind_the_gate_is_logged_by_its_place_alone(access, caplog):
    """The server would print the error, and with it what was sent."""

    async def broken(scope, receive, send):
        raise KeyError("small left effusion")

    with serving(build_gate(broken, access)) as port:
        client = Client(port)
        client.sign_in("reader")
        answer = client.get("/")
        event = client.post(RUN)
    assert answer.status == event.status == 500
    assert "A fault in ranloop" in answer.text
    assert "<main>" in answer.text
    assert json.loads(event.text)["detail"].startswith("a fault in ranloop")
    assert "effusion" not in answer.text + event.text + caplog.text
    assert "KeyError at" in caplog.text
    assert "test_gate.py" in caplog.text


def test_a_websocket_is_closed_before_it_opens(access):
    """Nothing here speaks over one, so nothing is asked who it is."""
    sent = []

    async def send(message):
        sent.append(message)

    gate = build_gate(Behind(access), access)
    awaited(lambda: gate({"type": "websocket", "path": "/"}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_alone_at_this_machine_nobody_signs_in(workspace):
    """Other sites and other names are refused all the same."""
    access = Access.open(workspace, host="127.0.0.1", local="me")
    with serving(build_gate(Behind(access), access)) as port:
        client = Client(port)
        assert json.loads(client.get("/").text)["who"] == "me"
        assert client.get("/sign-in").headers["location"] == "/"
        assert client.post(RUN).status == 200
        assert client.post(RUN, Origin="http://evil.example").status == 403
        assert client.get("/", Host="evil.example").status == 400
        assert client.get("/gradio_api/info").status == 404


def test_users_added_while_it_runs_are_asked_for_at_once(workspace):
    """Nobody works on without a name; a page leads to the form, which says why."""
    access = Access.open(workspace, host="127.0.0.1", local="me")
    with serving(build_gate(Behind(access), access)) as port:
        client = Client(port)
        with client.listen(STREAM) as stream:
            assert stream.read(10) == b"data: here"
            add_user(workspace, "ann", (UserRole.ADMIN,), GOOD)
            # Without an end this would wait until the time limit, and fail.
            stream.read()
        assert client.post(RUN).status == 401
        answer = client.get("/?__theme=dark")
        where = "/sign-in?next=%2F%3F__theme%3Ddark&begun=1"
        assert (answer.status, answer.headers["location"]) == (303, where)
        page = client.get(where)
        assert "This workspace has users now" in page.text
        assert 'name="password"' in page.text
        assert client.get("/sign-in").status == 200
        assert client.sign_in("ann").status == 303
        assert json.loads(client.get("/theme.css").text)["who"] == "ann"
        client.cookie = ""
        assert client.post(RUN).status == 401


def test_a_person_who_lacks_a_right_is_told_on_a_page(client):
    """A link to a document was followed; a script is told in JSON as ever."""
    client.sign_in("reader")
    answer = client.get("/download/ledger.jsonl")
    assert answer.status == 403
    assert "takes the role" in answer.text
    assert "<main>" in answer.text
    assert 'name="password"' not in answer.text


def test_a_browser_tab_is_of_who_opened_it(client):
    """Whatever asks under its name; Gradio would serve anybody who knows that."""
    mine = json.dumps({"data": [], "session_hash": "s0yw8wdb1jq"}).encode()
    client.sign_in("editor")
    assert client.post(RUN, mine).status == 200
    client.sign_in("admin")
    for answer in (
        client.post(RUN, mine),
        client.post("/gradio_api/run/other", mine.replace(b"s0yw", b"\\u00730yw")),
        client.get(STREAM),
    ):
        assert answer.status == 403
        assert "opened by another person" in answer.text
    client.sign_in("EDITOR")
    assert client.post(RUN, mine).status == 200


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"\xff",
        b"[]",
        b"{",
        b'"session_hash"',
        b"[" * 900,
        b'{"session_hash": ""}',
        b'{"session_hash": 1}',
        b'{"session_hash": ["a"]}',
        b'{"session_hash": "../a"}',
        b'{"session_hash": "a\\n"}',
        b'{"session_hash": "' + b"a" * 65 + b'"}',
    ],
)
def test_an_event_that_no_page_of_ours_sends_is_refused(client, event):
    """Before anything behind takes it, and without a fault in the log."""
    client.sign_in("editor")
    assert client.post(RUN, event).status == 400


def behind_proxy(users, *proxies):
    """Return access and gate of a server that trusts `proxies`."""
    hosts = Hosts(bound="127.0.0.1", proxies=Proxies.parse(proxies))
    access = Access(users, hosts)
    return build_gate(Behind(access), access)


def addresses(workspace):
    """Return the addresses in the log of sign-ins, each once."""
    text = sign_ins_path(workspace).read_text("utf-8")
    return {json.loads(line)["address"] for line in text.splitlines()}


INVENTED = (
    "X-Forwarded-For",
    "X-Real-IP",
    "Forwarded",
    "X-Forwarded-Host",
    "X-Client-IP",
)


def test_invented_addresses_are_believed_from_nobody(client, users):
    """Neither in the log nor by the throttle, from this machine neither."""
    statuses = []
    for n in range(21):
        invented = {name: f"192.0.2.{n}" for name in INVENTED}
        form = f"name=user+{n}&password=wrong".encode()
        statuses.append(client.post("/sign-in", form, **invented).status)
    assert statuses[-2:] == [429, 429]
    assert addresses(users) == {"127.0.0.1"}


def test_an_invented_scheme_is_believed_from_nobody(client):
    """A cookie for TLS would be lost, and another origin would be ours."""
    said = {"X-Forwarded-Proto": "https", "Forwarded": "proto=https"}
    answer = client.post("/sign-in", f"name=editor&password={GOOD}".encode(), **said)
    assert "Secure" not in answer.headers["set-cookie"]
    client.cookie = answer.headers["set-cookie"].partition(";")[0]
    https = client.origin.replace("http:", "https:")
    refused = client.post(RUN, Origin=https, **said)
    assert refused.status == 403
    assert "ranloop review --proxy" in refused.text
    assert "--proxy" not in client.post(RUN, Origin=https).text
    form = client.post("/sign-in", b"", Origin=https, **said)
    assert form.status == 403
    assert "<main>" in form.text
    assert "ranloop review --proxy" in form.text


def test_a_trusted_proxy_is_believed(users):
    """For the log, the throttle, the cookie and the origin."""
    with serving(behind_proxy(users, "127.0.0.1")) as port:
        client = Client(port)
        client.origin = client.origin.replace("http:", "https:")
        via = {"X-Forwarded-Proto": "https"}
        form = f"name=editor&password={GOOD}".encode()
        for n in range(25):
            via["X-Forwarded-For"] = f"6.6.6.6, 192.0.2.{n}"
            wrong = client.post("/sign-in", f"name=u{n}&password=x".encode(), **via)
            assert wrong.status == 401
        answer = client.post("/sign-in", form, **via)
        assert "Secure" in answer.headers["set-cookie"]
        assert answer.headers["set-cookie"].startswith("__Host-")
        client.cookie = answer.headers["set-cookie"].partition(";")[0]
        assert client.post(RUN, **via).status == 200
        # From the same origin without a proxy's word for it, and the other way round.
        assert client.post(RUN).status == 403
        plain = client.origin.replace("https:", "http:")
        assert client.post(RUN, Origin=plain, **via).status == 403
    assert addresses(users) == {f"192.0.2.{n}" for n in range(25)}


def test_a_malformed_address_is_in_no_log(users):
    """Not even from a trusted proxy."""
    with serving(behind_proxy(users, "127.0.0.1")) as port:
        client = Client(port)
        for said in ('"}{"name": "admin"', "small left effusion", "\x85", "1.1.1.1.1"):
            form = b"name=editor&password=wrong"
            client.post("/sign-in", form, **{"X-Forwarded-For": said})
    assert addresses(users) == {"127.0.0.1"}


def test_who_goes_around_the_proxy_without_tls_is_sent_back(access):
    """Their password would travel unencrypted; this machine itself may."""
    proxies = Proxies.parse(["10.0.0.1"])
    assert not Hosts(bound="0.0.0.0", proxies=proxies).bypassed("127.0.0.1", "http")
    assert not Hosts(bound="0.0.0.0", proxies=proxies).bypassed("10.0.0.1", "http")
    assert not Hosts(bound="0.0.0.0", proxies=proxies).bypassed("10.0.0.2", "https")
    assert Hosts(bound="0.0.0.0", proxies=proxies).bypassed("10.0.0.2", "http")
    access.hosts = Hosts(bound="127.0.0.1", proxies=proxies)
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/sign-in",
        "scheme": "http",
        "client": ("10.0.0.2", 1),
        "headers": [(b"host", b"localhost"), (b"x-forwarded-proto", b"https")],
    }
    awaited(lambda: build_gate(Behind(access), access)(scope, None, send))
    assert sent[0]["status"] == 403
    assert b"--proxy" in sent[1]["body"]


def test_the_limits_are_those_that_were_decided():
    """In bytes and seconds; a person is kept for half an hour, at most for twelve."""
    assert Sizes(form=8_192, call=2_097_152, upload=209_715_200) == SIZES
    assert BodyLimits(whole_s=30.0, upload_rate=32_768) == BODY_LIMITS
    assert TimedProtocol.patience_s == 30.0
    assert Spans(idle_s=1_800, longest_s=43_200, each=20, most=2_000, tabs=20) == SPANS


def test_a_form_and_a_length_have_an_end(client):
    """The longest that is taken, and one more; a length of sixteen digits is none."""
    assert client.post("/sign-in", b"x" * 8192).status == 401
    client.sign_in("editor")
    for digits, status in ((15, 413), (16, 411)):
        head = f"POST {RUN} HTTP/1.1\r\nContent-Length: {'9' * digits}"
        with client.sent(head) as connection:
            assert connection.recv(100).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_tab_has_a_short_name(client):
    """Of 64 characters at most, wherever it is said."""
    client.sign_in("editor")
    for count, status in ((64, 200), (65, 400)):
        event = json.dumps({"session_hash": "a" * count}).encode()
        assert client.post(RUN, event).status == status
    assert client.get(f"/gradio_api/heartbeat/{'a' * 65}").status == 400
    assert client.post(RUN, b'{"session_hash": null}').status == 200


def test_nobody_signs_in_while_the_list_of_users_is_broken(client, users):
    """The form stays, with the name; it is no wrong password."""
    users_path(users).write_text("users: [", "utf-8")
    answer = client.sign_in("reader")
    assert answer.status == 503
    assert "list of users cannot be read" in answer.text
    assert 'value="reader"' in answer.text
    assert client.cookie == ""


def test_of_what_is_said_of_the_address_nothing_is_left():
    """Whatever else a browser sends is passed on as it came."""
    kept = [(b"host", b"a"), (b"x-forward", b"b"), (b"x-gradio", b"c"), (b"via", b"d")]
    told = [
        (b"forwarded", b"for=1.1.1.1"),
        (b"forwarded-x", b"1"),
        (b"x-forwarded-for", b"1.1.1.1"),
        (b"x-forwarded-proto", b"https"),
        (b"x-gradio-server", b"http://evil.example"),
    ]
    scope = {"type": "http", "headers": [*kept[:2], *told, *kept[2:]]}
    assert _strip_forwarded_headers(scope) == {"type": "http", "headers": kept}


def test_who_sees_a_page_is_told_on_one():
    """A page of ours, a link to a document, and the form; nothing that scripts ask."""
    asked = [
        (method, path)
        for method in ("GET", "HEAD", "POST")
        for path in ("/", "/download/a.csv", "/sign-in", "/theme.css", "/downloads")
        if _is_seen(Request({"type": "http", "method": method, "path": path}))
    ]
    assert asked == [
        *((method, path) for method in ("GET", "HEAD") for path in PAGES),
        ("POST", "/sign-in"),
    ]


PAGES = ("/", "/download/a.csv", "/sign-in")


def test_an_answer_carries_what_a_browser_has_to_know():
    """All of it; a page's own policy stays, permissions for others go."""
    sent = []

    async def send(message):
        sent.append(message)

    given = [
        (b"content-type", b"text/html"),
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-credentials", b"true"),
        (b"cache-control", b"public"),
        (b"x-frame-options", b"SAMEORIGIN"),
    ]
    start = {"type": "http.response.start", "status": 200}
    own = (b"content-security-policy", b"default-src 'self'")
    body = {"type": "http.response.body", "body": b"x"}
    sending = with_security_headers("/", send)
    awaited(lambda: sending(start | {"headers": [*given]}))
    awaited(lambda: sending(start | {"headers": [*given, own]}))
    awaited(lambda: sending(body))
    first, second, third = sent
    assert third == body
    told = {name.decode(): value.decode() for name, value in first["headers"]}
    assert told == HEADERS | {
        "content-type": "text/html",
        "permissions-policy": "camera=(), microphone=(), geolocation=(), "
        "display-capture=(), usb=(), payment=()",
        "content-security-policy": "default-src 'none'; script-src 'self' "
        "'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src "
        "'self' data:; font-src 'self' data:; connect-src 'self'; manifest-src 'self'; "
        "base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    }
    assert own in second["headers"]


def test_a_server_says_nothing_of_itself_and_believes_no_header(tmp_path):
    """Who is trusted is the gate's to say; further options go before."""
    config = server_config(Behind(None), port=7)
    assert (config.port, config.http, config.ws) == (7, TimedProtocol, "none")
    said = (config.proxy_headers, config.access_log, config.server_header)
    assert said == (False, False, False)
    assert (config.timeout_graceful_shutdown, config.log_level) == (3, "warning")
    assert (config.ssl_certfile, config.ssl_keyfile) == (None, None)
    files = {"certificate": tmp_path / "c", "key": tmp_path / "k"}
    config = server_config(Behind(None), timeout_graceful_shutdown=1, **files)
    assert config.timeout_graceful_shutdown == 1
    assert (config.ssl_certfile, config.ssl_keyfile) == tuple(files.values())


@pytest.mark.parametrize(
    ("path", "status", "kept"),
    [
        ("/assets/a.js", 200, "public, max-age=31536000, immutable"),
        ("/assets/a.js", 304, "public, max-age=31536000, immutable"),
        ("/static/a.png", 200, "public, max-age=3600"),
        ("/static/a.png", 304, "public, max-age=3600"),
        ("/assets/a.js", 404, "no-store"),
        ("/static/a.png", 404, "no-store"),
        ("/static/a.png", 303, "no-store"),
        ("/x/static/a.png", 200, "no-store"),
        ("/theme.css", 200, "no-store"),
        ("/", 304, "no-store"),
    ],
)
def test_only_program_files_that_are_there_may_be_kept(path, status, kept):
    """Also what the server says of a file that a browser has already."""
    sent = []

    async def send(message):
        sent.append(message)

    start = {"type": "http.response.start", "status": status, "headers": []}
    awaited(lambda: with_security_headers(path, send)(start))
    (message,) = sent
    assert dict(message["headers"])[b"cache-control"] == kept.encode()
