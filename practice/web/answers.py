"""How answers are written: JSON that can be sent whatever a submission printed."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import Response


def reply(data: Any, status: int = 200) -> Response:
    """An answer as JSON."""
    headers = {"cache-control": "no-store"}
    return Response(compact(data), status, headers, media_type="application/json")


def compact(data: Any) -> str:
    """One line of pure ASCII, also where a text holds half a character."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
