"""What a request can be told instead of an answer: a status and one line in both languages."""

from __future__ import annotations


class ApiError(Exception):
    """Refuse a request with this HTTP status and line."""

    def __init__(self, status: int, zh: str, en: str) -> None:
        super().__init__(status, en)
        self.status = status
        self.zh, self.en = zh, en


def as_json(zh: str, en: str) -> dict[str, dict[str, str]]:
    """The body of every refusal."""
    return {"error": {"zh": zh, "en": en}}
