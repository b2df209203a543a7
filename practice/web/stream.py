"""How a job stands, as a stream of server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from practice.web.answers import compact
from practice.web.desk import Desk, Event
from practice.web.errors import ApiError
from tools.store import StoreError

# How often a stream looks at its place in the queue, and whether anybody still listens.
LOOK_SECONDS = 1.0


async def stream(desk: Desk, id: str, request: Request) -> AsyncIterator[str]:
    """The events of a job until its verdict; ends as well when the server or the reader goes."""
    bell, loop = asyncio.Event(), asyncio.get_running_loop()

    def ring() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(bell.set)

    sent: Event | None = None
    with desk.listening(id, ring):
        while not desk.stopped:
            bell.clear()
            event = desk.live(id)
            if event is None:
                try:
                    event = await run_in_threadpool(desk.state, id)
                except (ApiError, StoreError):
                    return  # whoever asks again is told why
            # A comment shows that the stream is alive where there is nothing new.
            name, data = event
            yield ":\n\n" if event == sent else f"event: {name}\ndata: {compact(data)}\n\n"
            sent = event
            if name == "verdict" or await request.is_disconnected():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(bell.wait(), LOOK_SECONDS)
