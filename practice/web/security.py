"""Who may ask, and what a page may do.

The server runs code for whoever can post to it, and any page of the web that the reader has open
can make his browser send requests to 127.0.0.1. So: the Host must be a name of this machine (else
another site has its name point here), a change must come from a page of this server, and must be
JSON, which no form can send.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from practice.judgelib.static import MAX_BYTES
from practice.web.answers import compact
from practice.web.errors import ApiError, as_json

# Cookies know no ports: a plain `session` would sign the reader out of his own local programs.
COOKIE = "minisgl-session"
COOKIE_VALUE = re.compile(r"[A-Za-z0-9_-]{22}")
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+))(?::[0-9]{1,5})?")
# JSON may write a byte of source as six characters.
BODY_BYTES = 6 * MAX_BYTES + 4096
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
        headers = Headers(scope=scope)
        cookie = _cookie_of(headers)
        fresh = None if cookie else secrets.token_urlsafe(16)
        # Of the cookie only a trace goes into queue and store: they tell sessions apart.
        secret = (cookie or fresh or "").encode()
        scope["judge_session"] = hashlib.sha256(secret).hexdigest()[:16]

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
            refuse(scope["method"], headers)
            await self._app(scope, _limited(receive), send_with_headers)
        except ApiError as error:
            await _answer(send_with_headers, error)
        except Exception as error:  # ours: answered here, where the headers are, then logged
            if not started:
                await _answer(send_with_headers, _failure(error))
            raise


def refuse(method: str, headers: Headers) -> None:
    """Raise ApiError for a request that this server must not serve."""
    host = headers.get("host", "")
    if not is_loopback(_name_of(host)):
        zh, en = f"不接受主机名 {host[:80]!r}", f"host {host[:80]!r} is not this server"
        raise ApiError(403, zh, f"{en}: open it as http://127.0.0.1")
    if method in READING:
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


def _cookie_of(headers: Headers) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found and COOKIE_VALUE.fullmatch(found.value) else None


def _failure(error: Exception) -> ApiError:
    what = type(error).__name__
    return ApiError(500, f"服务器出错：{what}", f"the server failed: {what}")


async def _answer(send: Send, error: ApiError) -> None:
    body = compact(as_json(error.zh, error.en)).encode()
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    kind.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": kind})
    await send({"type": "http.response.body", "body": body})
