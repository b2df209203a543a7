"""The web server's parts put together, and the pages; the API is in `api`."""

from __future__ import annotations

import contextlib
import mimetypes
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from practice.judgelib.catalogue import load_catalogue
from practice.judgelib.sandbox import levels
from practice.judgelib.sessions import TooSoon
from practice.judgelib.text import JudgeError
from practice.web.answers import reply
from practice.web.api import make_api
from practice.web.desk import Desk
from practice.web.errors import ApiError, as_json
from practice.web.problems import Shelf
from practice.web.queue import EACH, WHOLE, FairQueue
from practice.web.records import Records
from practice.web.security import BOOK_CSP, Guard
from tools.store import StoreError

STATIC = Path(__file__).with_name("static")
NO_BOOK = (
    "<!doctype html><meta charset=utf-8><title>404</title>"
    "<p>书还没有生成：运行 <code>make book</code>"
    "<p>The book has not been built: run <code>make book</code>"
)


@dataclass(frozen=True)
class Settings:
    """What a server is started with. `level`: None takes the best that this machine gives."""

    root: Path
    level: int | None = None
    workers: int = 1
    queue: int = WHOLE
    queue_each: int = EACH


def create_app(settings: Settings) -> FastAPI:
    """The application; its desk, `app.state.desk`, works from startup to shutdown."""
    shelf, records = Shelf(settings.root, load_catalogue(settings.root)), Records()
    level = levels.best() if settings.level is None else settings.level
    queue = FairQueue(settings.queue, settings.queue_each)
    desk = Desk(shelf, records, level, settings.workers, queue)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        desk.start()
        try:
            yield
        finally:
            desk.stop()
            desk.join()
            records.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.desk = desk
    app.add_middleware(Guard)
    _explain_errors(app)
    app.include_router(make_api(shelf, records, desk, level))
    _pages(app, shelf, settings.root)
    return app


def _pages(app: FastAPI, shelf: Shelf, root: Path) -> None:
    # What a system says of these can be wrong, and a browser runs no module of another type.
    for ending in (".js", ".mjs"):
        mimetypes.add_type("text/javascript", ending)
    app.mount("/static", StaticFiles(directory=STATIC, check_dir=False))
    app.mount("/book", _Book(root / "site"))

    @app.get("/")
    def home() -> Response:
        return _page(200)

    @app.get("/p/{id}")
    def problem(id: str) -> Response:
        try:
            shelf.find(id)
        except ApiError:
            return _page(404)  # the page says it, with the way back to the list
        return _page(200)


def _page(status: int) -> Response:
    try:
        text = (STATIC / "index.html").read_text("utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise ApiError(500, f"没有页面文件：{why}", f"the page's file is missing: {why}") from None
    return HTMLResponse(text, status, {"cache-control": "no-store"})


class _Book:
    """The built book, from the moment on that it is built."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = StaticFiles(directory=folder, html=True, check_dir=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: Response
        if self._folder.is_dir():
            response = await self._files.get_response(self._files.get_path(scope), scope)
        else:
            response = HTMLResponse(NO_BOOK, 404)
        response.headers["content-security-policy"] = BOOK_CSP
        await response(scope, receive, send)


def _explain_errors(app: FastAPI) -> None:
    """Every error is a status with one line in both languages."""

    def api_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return reply(as_json(error.zh, error.en), error.status)

    def judge_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, JudgeError)
        status = 429 if isinstance(error, TooSoon) else 500
        return reply(as_json(error.text.zh, error.text.en), status)

    def store_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, StoreError)
        return reply(as_json(error.zh, error.en), 503)

    def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
            return _page(404)  # a person looks at it: the page says it, with the way back
        zh = {404: "没有这个页面", 405: "不能这样请求"}.get(error.status_code, "请求有误")
        return reply(as_json(zh, str(error.detail)), error.status_code)

    def wrong_parameter(_: Request, error: Exception) -> Response:
        return reply(as_json("地址里的参数有误", "a parameter of the address is wrong"), 404)

    app.add_exception_handler(ApiError, api_error)
    app.add_exception_handler(JudgeError, judge_error)
    app.add_exception_handler(StoreError, store_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, wrong_parameter)
