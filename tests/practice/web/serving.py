"""Servers for the tests: one in this process, and a real one of its own that can be killed."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "practice"))  # for `fakes`, whichever tests are run

from fakes import TOML  # noqa: E402
from fakes import write_problem as write_fake  # noqa: E402

from practice.web import serve  # noqa: E402
from practice.web.app import Settings, create_app  # noqa: E402
from practice.web.desk import Desk  # noqa: E402

GOOD = "def total(numbers, start):\n    for n in numbers:\n        start += n\n    return start\n"
BAD = GOOD.replace("+=", "-=")
ENDLESS = "def total(numbers, start):\n    while True: pass\n"
SLOW = GOOD.replace("    for", "    import time; time.sleep(0.01)\n    for", 1)
TOTAL = "/api/problems/ch01-total"
JSON = "application/json"


def write_problem(root: Path, case_s: float = 1.0) -> None:
    """The small problem under `root`, with limits that end an endless loop soon."""
    limits = f"\n[limits]\nwall_s = {1.5 * case_s}\ncase_s = {case_s}\n"
    write_fake(root, **{"problem.toml": TOML + limits})


@dataclass
class Answer:
    """What a server said."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The English line of a refusal; fails where there is no Chinese one."""
        assert self.json["error"]["zh"]
        return str(self.json["error"]["en"])


@dataclass
class Reader:
    """One browser: keeps its cookie and says where its page is from."""

    port: int
    cookie: str = ""
    origin: str | None = field(default=None)

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Ask and read the whole answer; `body`: bytes as they are, else JSON."""
        with self.open(method, path, body, headers) as response:
            answer = Answer(response.status, response.headers, response.read())
        given = answer.headers["set-cookie"]
        self.cookie = given.partition(";")[0] if given else self.cookie
        return answer

    @contextlib.contextmanager
    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Ask and give the answer as it comes."""
        sent = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": JSON}
        sent |= {"Cookie": self.cookie} if self.cookie else {}
        sent |= headers or {}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, data, {k: v for k, v in sent.items() if v})
            yield connection.getresponse()

    def get(self, path: str) -> Any:
        """The JSON of a GET that must succeed."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.json

    def post(self, what: str, source: str) -> str:
        """Post `run` or `submit` for the small problem; the job's id."""
        answer = self.ask("POST", f"{TOTAL}/{what}", {"source": source})
        assert answer.status == 202, answer.body
        return str(answer.json["job"])

    def events(self, job: str) -> list[tuple[str, Any]]:
        """Every event of a job's stream, to its end."""
        answer = self.ask("GET", f"/api/jobs/{job}/events")
        assert answer.status == 200, answer.body
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(parsed(answer.body.decode("ascii")))

    def verdict(self, job: str) -> Any:
        """The data of the last event, which must be the verdict."""
        name, data = self.events(job)[-1]
        assert name == "verdict"
        return data


def parsed(stream: str) -> Iterator[tuple[str, Any]]:
    """The events of a stream, without its comments."""
    for block in stream.split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            yield name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


class Live:
    """A server in a thread of this process, to look into; a context manager."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.app = create_app(Settings(root, **settings))
        self.desk: Desk = self.app.state.desk
        listener = serve._bind("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self._server = serve._Server(self.app)
        self._thread = threading.Thread(target=self._server.run, args=([listener],))

    def __enter__(self) -> "Live":
        self._thread.start()
        wait_until(lambda: self._server.started)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def reader(self) -> Reader:
        """A new browser."""
        return Reader(self.port)


class Child:
    """`judge.py serve` as a process of its own; a context manager that leaves none behind."""

    def __init__(self, root: Path, *arguments: str, ahead: bool = True) -> None:
        """`ahead=False`: nothing is loaded ahead of need, which no test of a page waits for."""
        code = "import sys; from pathlib import Path; from practice.judgelib.commands import main; "
        if not ahead:
            code += "from practice.web import work; work.Boxes.warm = lambda *_: None; "
        code += f"sys.exit(main(Path({str(root)!r}), '', sys.argv[1:]))"
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", code, "serve", "--port", "0", *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), self.process.communicate()
        self.port = int(address.rstrip("/").rpartition(":")[2])

    @property
    def address(self) -> str:
        """Where its page is."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def reader(self) -> Reader:
        """A new browser, once the server answers."""
        reader = Reader(self.port)
        reader.get("/api/status")
        return reader

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


def wait_until(true: Callable[[], Any], seconds: float = 30.0) -> None:
    """Return once `true()` holds; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)
