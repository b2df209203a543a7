"""Who may ask, and what a page may do.

The server runs code for whoever can post to it, and any page of the web that the reader has open
can make his browser send requests to 127.0.0.1. So: the Host must be a name of this machine (else
another site has its name point here), a change must come from a page of this server, and must be
JSON, which no form can send.
"""

from __future__ import annotations

import hashlib
import ipaddress
import itertools
import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from practice.judgelib.static import MAX_BYTES
from practice.web.answers import compact
from practice.web.errors import ApiError, as_json
from practice.web.queue import Reader

# Cookies know no ports: a plain `session` would sign the reader out of his own local programs.
COOKIE = "minisgl-session"
COOKIE_VALUE = re.compile(r"[A-Za-z0-9_-]{22}")
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+))(?::[0-9]{1,5})?")
# JSON may write a byte of source as six characters.
BODY_BYTES = 6 * MAX_BYTES + 4096
# Of address and headers; the parser below bounds only those that come in several pieces.
HEAD_BYTES = 16 << 10
READING = ("GET", "HEAD", "OPTIONS")

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# The book's theme writes scripts and styles into its pages, and searches in a worker.
BOOK_CSP = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self' data:; img-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; "
    "manifest-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine and cannot mean another."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """The outermost layer: refuses what must not come in, and gives every answer its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a websocket: closing without an answer refuses it
        fresh = ""
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                given = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    given.setdefault(name, value)
                if fresh and not scope["path"].startswith(("/static/", "/book/")):
                    kept = f"{COOKIE}={fresh}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000"
                    given.append("set-cookie", kept)
            await send(message)

        try:
            refuse(scope)
            cookie = _cookie_of(scope)
            fresh = "" if cookie else secrets.token_urlsafe(16)
            # Queue and store tell sessions apart by a trace of the cookie, no more. Those who
            # come without one, which no page does, are one session.
            session = hashlib.sha256(cookie.encode()).hexdigest()[:16] if cookie else ""
            scope["judge_reader"] = Reader(scope["client"][0], session)
            await self._app(scope, _limited(receive), send_with_headers)
        except ApiError as error:
            await _answer(send_with_headers, error)
        except Exception as error:  # ours: answered here, where the headers are, then logged
            if not started:
                await _answer(send_with_headers, _failure(error))
            raise


def refuse(scope: Scope) -> None:
    """Raise ApiError for a request that this server must not serve.

    It comes before anything is parsed: what it costs is bounded by `HEAD_BYTES`.
    """
    head = [scope["raw_path"], scope["query_string"], *itertools.chain(*scope["headers"])]
    if sum(map(len, head)) > HEAD_BYTES:
        raise ApiError(431, "请求头太大", "the address and headers are too large")
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if not is_loopback(_name_of(host)):
        zh, en = f"不接受主机名 {host[:80]!r}", f"host {host[:80]!r} is not this server"
        raise ApiError(403, zh, f"{en}: open it as http://127.0.0.1")
    if scope["method"] in READING:
        return
    origin = headers.get("origin")
    same = headers.get("sec-fetch-site") == "same-origin"
    if origin not in (f"http://{host}", f"https://{host}") and (origin or not same):
        where = repr(origin[:80]) if origin else "-"
        words = f"only pages of this server may post to it (origin: {where})"
        raise ApiError(403, f"只接受本页面发出的请求（来源：{where}）", words)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "请求必须是 application/json", "the request must be application/json")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > BODY_BYTES:
        raise too_large()


def too_large() -> ApiError:
    """The refusal of a source that is larger than the judge takes."""
    limit = f"{MAX_BYTES // 1024} KiB"
    return ApiError(413, f"代码太大：最多 {limit}", f"too large: more than {limit}")


def _limited(receive: Receive) -> Receive:
    """Stop a body that is longer than its header said, or that has none."""
    left = BODY_BYTES

    async def receive_some() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise too_large()
        return message

    return receive_some


def _name_of(host: str) -> str:
    """The host without its port and brackets; empty where it is neither name nor address."""
    found = HOST.fullmatch(host)
    return (found[1] or found[2]) if found else ""


def _cookie_of(scope: Scope) -> str:
    """This server's cookie; empty where there is none. Others' are not parsed: that can be slow."""
    for part in Headers(scope=scope).get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE and COOKIE_VALUE.fullmatch(value):
            return value
    return ""


def _failure(error: Exception) -> ApiError:
    what = type(error).__name__
    return ApiError(500, f"服务器出错：{what}", f"the server failed: {what}")


async def _answer(send: Send, error: ApiError) -> None:
    body = compact(as_json(error.zh, error.en)).encode()
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    kind.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": kind})
    await send({"type": "http.response.body", "body": body})
