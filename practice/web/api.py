"""The routes of the API: read the request, ask the shelf, the records or the desk, answer JSON."""

from __future__ import annotations

import contextlib
import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from practice.judgelib.static import MAX_BYTES
from practice.judgelib.store import Standing
from practice.judgelib.text import Text
from practice.web import problems
from practice.web.answers import reply
from practice.web.desk import Desk
from practice.web.errors import ApiError
from practice.web.problems import Shelf
from practice.web.queue import Full
from practice.web.records import Records
from practice.web.security import too_large
from practice.web.stream import stream
from tools.store import Row, StoreError

NO_SANDBOX = Text(
    "这台机器上没有沙箱：代码以你自己的权限运行，请只运行你自己写的代码。",
    "There is no sandbox on this machine: code runs with your own rights, so run only your own.",
)


async def _body(request: Request) -> dict[str, Any]:
    try:
        data = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise ApiError(400, "请求不是合法的 JSON", "the request is not valid JSON") from None
    except ClientDisconnect:  # a tab that was closed is no fault of the server's
        raise ApiError(400, "请求中断了", "the request broke off") from None
    if not isinstance(data, dict):
        raise ApiError(400, "请求应为 JSON 对象", "the request must be a JSON object")
    return data


Body = Annotated[dict[str, Any], Depends(_body)]


def _source(body: dict[str, Any]) -> tuple[str, bytes]:
    """The source in a request, as text and as bytes."""
    text = body.get("source")
    if not isinstance(text, str):
        raise ApiError(400, "缺少文本 source", "the request needs the text `source`")
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:
        words = "source holds half a character (a lone surrogate)"
        raise ApiError(400, "source 里有不完整的字符", words) from None
    if len(raw) > MAX_BYTES:
        raise too_large()
    return text, raw


def _full(full: Full) -> ApiError:
    if full.whole:
        return ApiError(429, "队列已满，请稍后再试", "the queue is full; try again later")
    words = "too many of yours are waiting; try again when some are judged"
    return ApiError(429, "你等待判题的太多了，请等一些判完再试", words)


def make_api(shelf: Shelf, records: Records, desk: Desk, level: int) -> APIRouter:
    """All routes below /api."""
    api = APIRouter(prefix="/api")
    _reading(api, shelf, records, desk, level)
    _writing(api, shelf, records, desk)
    _jobs(api, desk)
    return api


def _standings(records: Records) -> dict[str, Standing]:
    """How far the reader is; nothing where that cannot be read: the page works all the same."""
    with contextlib.suppress(StoreError):
        return records.progress.standings()
    return {}


def _reading(api: APIRouter, shelf: Shelf, records: Records, desk: Desk, level: int) -> None:
    @api.get("/status")
    def status() -> Response:
        return reply(desk.count())

    @api.get("/problems")
    def overview() -> Response:
        drafts: set[str] = set()
        verified: set[int] = set()
        with contextlib.suppress(StoreError):
            drafts, verified = records.progress.drafts(), records.progress.steps()
        found = shelf.overview(_standings(records), drafts)
        said = [one for one in (NO_SANDBOX if level == 0 else None, records.notice) if one]
        notice = {"zh": " ".join(t.zh for t in said), "en": " ".join(t.en for t in said)}
        book = (shelf.root / "site").is_dir()
        found |= {"level": level, "notice": notice if said else None, "book": book}
        return reply(found | {"verified": sorted(verified)})

    @api.get("/problems/{id}")
    def detail(id: str) -> Response:
        problem = shelf.find(id)
        draft: Row | None = None
        with contextlib.suppress(StoreError):
            draft = records.progress.draft(id)
        return reply(shelf.detail(problem, _standings(records), draft))

    @api.get("/problems/{id}/history")
    def history(id: str) -> Response:
        return reply(problems.history(shelf.find(id), records.progress))

    @api.get("/problems/{id}/solution")
    def solution(id: str) -> Response:
        return reply(problems.solution(shelf.find(id), records.progress, spoil=False))

    @api.get("/step/{number}/file")
    def step_file(number: int, path: str) -> Response:
        text = shelf.step_file(number, path, _standings(records))
        return reply({"number": number, "path": path, "text": text})


def _writing(api: APIRouter, shelf: Shelf, records: Records, desk: Desk) -> None:
    @api.put("/problems/{id}/draft")
    def keep(id: str, body: Body) -> Response:
        records.progress.keep_draft(shelf.find(id).id, _source(body)[0])
        return Response(status_code=204)

    @api.delete("/problems/{id}/draft")
    def drop(id: str) -> Response:
        records.progress.keep_draft(shelf.find(id).id, None)
        return Response(status_code=204)

    @api.post("/problems/{id}/run")
    def run(id: str, body: Body, request: Request) -> Response:
        problem, (_, raw) = shelf.find(id), _source(body)
        try:
            return reply({"job": desk.run(problem, raw, request.scope["judge_reader"])}, 202)
        except Full as full:
            raise _full(full) from None

    @api.post("/problems/{id}/submit")
    def submit(id: str, body: Body, request: Request) -> Response:
        problem, (_, raw) = shelf.find(id), _source(body)
        try:
            return reply({"job": desk.submit(problem, raw, request.scope["judge_reader"])}, 202)
        except Full as full:
            raise _full(full) from None

    @api.post("/problems/{id}/hint")
    def hint(id: str, body: Body) -> Response:
        return reply(problems.take_hint(shelf.find(id), records.progress))

    @api.post("/problems/{id}/solution")
    def spoil(id: str, body: Body) -> Response:
        spoil = body.get("spoil") is True
        return reply(problems.solution(shelf.find(id), records.progress, spoil=spoil))


def _jobs(api: APIRouter, desk: Desk) -> None:
    @api.get("/jobs/{id}")
    def state(id: str) -> Response:
        event, data = desk.state(id)
        return reply({"state": event} | data)

    @api.get("/jobs/{id}/events")
    async def events(id: str, request: Request) -> Response:
        await run_in_threadpool(desk.state, id)  # an unknown job is a 404, not a stream
        return StreamingResponse(
            stream(desk, id, request),
            media_type="text/event-stream",
            headers={"cache-control": "no-store"},
        )
