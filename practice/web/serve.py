"""`serve`: bind, say where, and end at once when told to."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import sys
from pathlib import Path

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from practice.judgelib.sandbox import levels
from practice.judgelib.text import JudgeError
from practice.web.api import NO_SANDBOX
from practice.web.app import Settings, create_app
from practice.web.desk import Desk
from practice.web.security import is_loopback
from tools.lang import tr

# One reader needs no more, and each holds two boxes, one with torch in it.
MOST_WORKERS = 2
GRACE_SECONDS = 1
# Fewer than the open files that any system allows: out of these, no box could be made either.
MOST_CONNECTIONS = 200
CONNECTIONS_EACH = 100  # of one address
REQUEST_SECONDS = 10.0  # for a whole request to come, also for the next one of a connection


def serve(root: Path, host: str, port: int, level: int | None) -> int:
    """Serve the page until Ctrl-C, its end (0); JudgeError, one line, where it cannot be had."""
    listener = _bind(host, port)
    level = levels.best() if level is None else level
    app = create_app(Settings(root, level, _workers()))
    desk: Desk = app.state.desk
    shown = f"[{host}]" if ":" in host else host
    print(f"http://{shown}:{listener.getsockname()[1]}/", flush=True)
    print(tr("Ctrl-C 结束", "Ctrl-C ends it"), flush=True)
    if level == 0:
        print(NO_SANDBOX, file=sys.stderr)
    with contextlib.suppress(KeyboardInterrupt):
        _Server(app).run([listener])
    if not desk.join():
        # A worker is in the middle of a job, perhaps deep in torch: nothing may be torn down
        # under it. Its box ends with this process; the submission is judged by the next server.
        sys.stdout.flush()
        os._exit(0)
    return 0


class _Protocol(H11Protocol):
    """One connection: its request comes whole and in time, or others need its place more."""

    _due: asyncio.TimerHandle | None = None  # while a request, or the rest of one, is waited for

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        everyone = [one for one in self.connections if isinstance(one, _Protocol)]
        own = [one for one in everyone if one.address == self.address]
        for some, most in ((own, CONNECTIONS_EACH), (everyone, MOST_CONNECTIONS)):
            if len(some) > most:
                # The one that has waited longest for a request; where none has, this one waits.
                min(some, key=_Protocol.due).transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._due:
            self._due.cancel()

    @property
    def address(self) -> str:
        """Whom it is from."""
        return self.client[0] if self.client else ""

    def due(self) -> float:
        """When its request must have come; infinity where it has."""
        return self._due.when() if self._due else math.inf

    def _watch(self) -> None:
        coming = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if coming and self._due is None:
            self._due = self.loop.call_later(REQUEST_SECONDS, self.transport.close)
        elif not coming and self._due is not None:
            self._due.cancel()
            self._due = None


class _Server(uvicorn.Server):
    """Ends the streams of events first, which would otherwise be waited for."""

    def __init__(self, app: FastAPI) -> None:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            http=_Protocol,
            ws="none",
            backlog=MOST_CONNECTIONS,
        )
        super().__init__(config)
        self._desk: Desk = app.state.desk

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._desk.stop()
        await super().shutdown(sockets)


def _bind(host: str, port: int) -> socket.socket:
    if not is_loopback(host):
        raise JudgeError(
            f"只能绑定本机地址（127.0.0.1、::1、localhost），不能是 {host}：还没有账户",
            f"only a loopback address (127.0.0.1, ::1, localhost), not {host}: there are no "
            "accounts yet",
        )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise JudgeError(
            f"端口 {port} 用不了（{why}）；换一个：serve --port {port % 60000 + 1}",
            f"port {port} cannot be used ({why}); another: serve --port {port % 60000 + 1}",
        ) from None
    return listener


def _workers() -> int:
    """One core is left for the page; a job's time limits hold because its own is not shared."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(MOST_WORKERS, (cores or 1) - 1))
