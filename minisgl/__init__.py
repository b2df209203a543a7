"""mini-sglang, built one step at a time: a small engine that serves large language models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minisgl.core import SamplingParams
    from minisgl.llm import LLM

__all__ = ["LLM", "SamplingParams"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are asked for: a tool that wants one module gets one."""
    places = {"LLM": "minisgl.llm", "SamplingParams": "minisgl.core"}
    if name in places:
        return getattr(import_module(places[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Offer the public names, which are not there before they are asked for."""
    return sorted(__all__)
