"""What must not come in, and what every answer carries."""

import contextlib
import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import GOOD, JSON, SLOW, TOTAL, Live, Reader, wait_until, write_problem

from practice.judgelib.static import MAX_BYTES
from practice.web import serve
from practice.web.security import BODY_BYTES, HEAD_BYTES, is_loopback
from practice.web.serve import CONNECTIONS_EACH, MOST_CONNECTIONS


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINISGL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINISGL_LANG", "en")
    write_problem(tmp_path)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Live(tmp_path) as server:
        yield server


@pytest.fixture
def reader(live: Live) -> Reader:
    return live.reader()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One server for the many requests that must leave no trace."""
    root = tmp_path_factory.mktemp("shared")
    write_problem(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINISGL_HOME", str(root / "home"))
        with Live(root) as server:
            yield server


@pytest.fixture
def anyone(shared: Live) -> Reader:
    return shared.reader()


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 202),
        ({"Content-Type": "application/json; charset=utf-8"}, 202),
        ({"Origin": "", "Sec-Fetch-Site": "same-origin"}, 202),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),  # another program of this machine
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Origin": "", "Content-Type": FORM}, 403),
        ({"Origin": "", "Content-Type": "text/plain"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": FORM}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),  # DNS rebinding
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost.evil.example:80"}, 403),
    ],
)
def test_only_this_server_s_own_page_can_post(
    anyone: Reader, headers: dict[str, str], status: int
) -> None:
    before = anyone.get(f"{TOTAL}/history")
    for what in ("submit", "run"):
        answer = anyone.ask("POST", f"{TOTAL}/{what}", {"source": GOOD}, headers)
        assert answer.status == status, answer.body
        if status != 202:
            assert "job" not in answer.json and answer.error
    for method, path in (("PUT", "draft"), ("POST", "hint"), ("DELETE", "draft")):
        answer = anyone.ask(method, f"{TOTAL}/{path}", {"source": GOOD}, headers)
        assert (answer.status in (200, 204)) == (status == 202)
    added = len(anyone.get(f"{TOTAL}/history")) - len(before)
    assert added == (status == 202)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "", "10.0.0.1", "[::2]:80", "[::1]evil.example"),
        *("[::1]:evil", "127.0.0.1:evil.example", "localhost:1:2", "[127.0.0.1"),
    ],
)
def test_another_name_sees_nothing_at_all(anyone: Reader, host: str) -> None:
    for path in ("/", "/api/problems", TOTAL, "/static/index.html", "/book/", "/nothing"):
        connection = http.client.HTTPConnection("127.0.0.1", anyone.port, timeout=20)
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        response = connection.getresponse()
        assert response.status == 403 and "set-cookie" not in response.read().decode()
        connection.close()


@pytest.mark.parametrize("host", ["localhost:9000", "LOCALHOST", "127.0.0.1:1", "[::1]:8000"])
def test_names_of_this_machine_are_served_also_through_a_forwarded_port(
    anyone: Reader, host: str
) -> None:
    assert anyone.ask("GET", "/api/problems", headers={"Host": host}).status == 200
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert anyone.ask("POST", f"{TOTAL}/run", {"source": GOOD}, headers).status == 202


def test_what_is_loopback() -> None:
    for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost", "Localhost"):
        assert is_loopback(host)
    for host in ("", "0.0.0.0", "::", "192.168.0.1", "localhost.", "127.0.0.1.nip.io", "127.1"):
        assert not is_loopback(host)


def raw(port: int, head: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send these bytes and no more, and read the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        lines = f"{head}\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nContent-Type: {JSON}\r\n"
        sock.sendall(lines.encode() + b"\r\n" + body)
        response = http.client.HTTPResponse(sock)
        response.begin()
        return response.status, response.read()


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(anyone: Reader) -> None:
    head = f"POST {TOTAL}/submit HTTP/1.1\r\nContent-Length: 10000000000"
    status, body = raw(anyone.port, head, b'{"source": "')
    assert status == 413 and "more than 256 KiB" in json.loads(body)["error"]["en"]


def test_a_body_that_does_not_say_so_is_cut_off(anyone: Reader) -> None:
    head = f"POST {TOTAL}/submit HTTP/1.1\r\nTransfer-Encoding: chunked"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    status, _ = raw(anyone.port, head, chunk * (BODY_BYTES // 0x10000 + 1))  # and no end
    assert status == 413


def test_a_tab_that_is_closed_while_it_sends_is_no_fault_of_the_server(
    reader: Reader, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = f"PUT {TOTAL}/draft HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
    lines += f"Content-Type: {JSON}\r\nContent-Length: 300\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", reader.port), timeout=10) as sock:
        sock.sendall(lines.encode())
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass
    assert reader.get(TOTAL)["draft"] is None
    assert caplog.text == "" and "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
@pytest.mark.parametrize(
    "header",
    [
        *('Cookie: a="' + "\\" * size for size in (15_000, 60_000)),
        *("Cookie: " + "a=;" * (size // 3) for size in (15_000, 60_000)),
        "Host: " + "1:" * 30_000,
        "Content-Type: " + "/" * 60_000,
        "Accept: " + "text/html," * 20_000,
    ],
)
def test_no_header_keeps_the_server_busy(anyone: Reader, header: str, host: str) -> None:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", anyone.port), timeout=10) as sock:
        hosts = "" if header.startswith("Host") else f"Host: {host}\r\n"
        sock.sendall(f"GET /api/status HTTP/1.1\r\n{hosts}{header}\r\n\r\n".encode())
        response = http.client.HTTPResponse(sock)
        response.begin()
        if len(header) > HEAD_BYTES:
            assert response.status in (400, 431)
        else:
            assert response.status == (200 if host == "127.0.0.1" else 403)
        assert response.status < 400 or response.headers["set-cookie"] is None
    assert time.monotonic() - began < 1.0


def test_an_address_of_any_length_is_refused_as_early(anyone: Reader) -> None:
    assert raw(anyone.port, f"GET /{'a' * HEAD_BYTES} HTTP/1.1")[0] == 431
    assert raw(anyone.port, f"GET /api/status?{'a' * HEAD_BYTES} HTTP/1.1")[0] == 431


def idle(port: int, said: bytes = b"") -> socket.socket:
    """A connection that has said no more than this."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.sendall(said)
    return sock


POST = f"POST {TOTAL}/run HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
POST += f"Content-Type: {JSON}\r\nContent-Length: 300\r\n\r\n{{"


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 1", POST.encode()])
def test_a_request_that_does_not_come_is_not_waited_for(
    live: Live, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.5)
    reader = live.reader()
    began = time.monotonic()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError), idle(live.port, said) as sock:
        sock.settimeout(0.1)
        while time.monotonic() - began < 10:
            sock.sendall(b"x" if said else b"")  # byte by byte it is no request either
            with contextlib.suppress(TimeoutError):
                if not sock.recv(4096):
                    break
    assert time.monotonic() - began < 5
    # What has come whole is answered however long that takes.
    assert reader.verdict(reader.post("run", SLOW.replace("0.01", "0.8")))["verdict"]


def test_connections_that_ask_for_nothing_stop_nobody(reader: Reader) -> None:
    request = b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for said in [b"", b"GET", POST.encode(), request] * (MOST_CONNECTIONS // 4 + 1):
            stack.enter_context(idle(reader.port, said))
            if len(said) < 4:
                continue
            assert reader.ask("GET", "/api/status").status == 200


def test_streams_of_one_address_leave_room_for_others(tmp_path: Path) -> None:
    write_problem(tmp_path, case_s=30)
    with contextlib.ExitStack() as stack:
        live = stack.enter_context(Live(tmp_path))
        reader = live.reader()
        job = reader.post("run", SLOW.replace("0.01", "9"))
        ask = f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        socks = [stack.enter_context(idle(reader.port, ask)) for _ in range(CONNECTIONS_EACH)]
        assert all(sock.recv(4096).startswith(b"HTTP/1.1 200") for sock in socks)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            reader.ask("GET", "/api/status")
        socks.pop().close()
        wait_until(lambda: len(live._server.server_state.connections) < CONNECTIONS_EACH)
        assert reader.ask("GET", "/api/status").status == 200
    assert CONNECTIONS_EACH < MOST_CONNECTIONS


def test_sizes_at_the_limit(reader: Reader) -> None:
    def source(size: int) -> str:
        return GOOD + "#" * (size - len(GOOD))

    for what in ("submit", "run"):
        assert reader.ask("POST", f"{TOTAL}/{what}", {"source": source(MAX_BYTES)}).status == 202
        answer = reader.ask("POST", f"{TOTAL}/{what}", {"source": source(MAX_BYTES + 1)})
        assert answer.status == 413 and "256 KiB" in answer.error
    wide = {"source": "#" + "\x01" * (MAX_BYTES - 1)}  # six characters of JSON for each
    assert reader.ask("PUT", f"{TOTAL}/draft", wide).status == 204
    assert reader.ask("PUT", f"{TOTAL}/draft", {"source": source(MAX_BYTES + 1)}).status == 413


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "needs the text `source`"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"source=1", "not valid JSON"),
        (b"[" * 200_000, "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"source": 1}', "needs the text `source`"),
        (b'{"source": null}', "needs the text `source`"),
        (b'{"source": "\\ud800"}', "lone surrogate"),
    ],
)
def test_a_body_that_is_none_is_a_400(anyone: Reader, body: bytes, words: str) -> None:
    for method, path in (("POST", "submit"), ("POST", "run"), ("PUT", "draft")):
        answer = anyone.ask(method, f"{TOTAL}/{path}", body)
        assert answer.status == 400 and words in answer.error


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/problems/nothing", 404),
        ("GET", "/api/problems/..%2f..%2fjudge.py", 404),
        ("POST", "/api/problems/nothing/submit", 404),
        ("POST", "/api/problems/nothing/hint", 404),
        ("PUT", "/api/problems/nothing/draft", 404),
        ("GET", "/api/problems/nothing/solution", 404),
        ("GET", "/api/jobs/nothing", 404),
        ("GET", f"/api/jobs/{'0' * 32}", 404),
        ("GET", f"/api/jobs/{'0' * 32}/events", 404),
        ("GET", "/api/step/1/file?path=../../../etc/passwd", 404),
        ("GET", "/api/step/1/file?path=/etc/passwd", 404),
        ("GET", "/api/step/1/file", 404),
        ("GET", "/api/step/x/file?path=a", 404),
        ("GET", "/api/step/99/file?path=a", 404),
        ("GET", "/api/step/99999999999999999999/file?path=a", 404),
        ("GET", "/api/nothing", 404),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
        ("GET", "/static/nothing.js", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/static/..%2f..%2fjudge.py", 404),
        ("GET", "/static//etc/passwd", 404),
        ("GET", "/static/%00", 404),
        ("DELETE", "/api/problems", 405),
        ("POST", "/", 405),
    ],
)
def test_what_is_not_there_is_a_clear_error(
    anyone: Reader, method: str, path: str, status: int
) -> None:
    answer = anyone.ask(method, path, {"source": GOOD})
    assert answer.status == status, answer.body
    assert answer.error and b"root:" not in answer.body


def test_every_answer_carries_its_policy(anyone: Reader) -> None:
    for path in ("/", "/p/ch01-total", "/api/problems", TOTAL, "/api/nothing", "/static/nothing"):
        headers = anyone.ask("GET", path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy and "*" not in policy and "http" not in policy
        for rule in ("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"):
            assert rule in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_our_own_fault_is_one_line_in_both_languages_and_carries_the_policy(
    live: Live, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(live.desk, "count", broken)
    answer = reader.ask("GET", "/api/status")
    assert (answer.status, answer.error) == (500, "the server failed: RuntimeError")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert b"secret" not in answer.body


def test_the_session_is_a_cookie_that_scripts_and_other_sites_do_not_get(live: Live) -> None:
    reader = live.reader()
    given = reader.ask("GET", "/").headers["set-cookie"]
    assert re.match(r"minisgl-session=[\w-]{22};", given)
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(given.split("; "))
    assert reader.ask("GET", "/api/problems").headers["set-cookie"] is None
    reader.cookie = "minisgl-session=../../x; session=other"
    assert reader.ask("GET", "/").headers["set-cookie"]
    reader.cookie = "a=b; =; \x01"
    assert reader.ask("GET", "/").status == 200


def test_the_store_keeps_no_cookie(live: Live, tmp_path: Path) -> None:
    reader = live.reader()
    reader.get("/api/problems")
    reader.verdict(reader.post("submit", GOOD))
    secret = reader.cookie.partition("=")[2].encode()
    assert secret and secret not in (tmp_path / "home" / "practice.jsonl").read_bytes()


def test_the_book_is_served_once_it_is_built(reader: Reader, tmp_path: Path) -> None:
    assert reader.get("/api/problems")["book"] is False
    answer = reader.ask("GET", "/book/")
    assert answer.status == 404 and b"make book" in answer.body
    for name, text in {
        "index.html": "<script>1</script>book",
        "ch01/index.html": "one",
        "assets/a.js": "1",
        "404.html": "not in the book",
    }.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)
    (tmp_path / "secret").write_text("secret")
    assert reader.get("/api/problems")["book"] is True
    answer = reader.ask("GET", "/book/")
    assert answer.status == 200 and answer.body == b"<script>1</script>book"
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self' 'unsafe-inline'" in policy and "http" not in policy
    assert reader.ask("GET", "/book/ch01/").body == b"one"
    for short, full in (("/book", "/book/"), ("/book/ch01", "/book/ch01/")):
        answer = reader.ask("GET", short)
        assert answer.status == 307 and answer.headers["location"].endswith(full)
    answer = reader.ask("GET", "/book/assets/a.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    answer = reader.ask("GET", "/book/nothing")
    assert answer.status == 404 and answer.body == b"not in the book"
    for path in ("/book/../secret", "/book/%2e%2e/secret", "/book//secret", "/book/%00"):
        answer = reader.ask("GET", path)
        assert answer.status == 404 and answer.body != b"secret"
