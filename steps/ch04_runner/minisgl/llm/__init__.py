"""The engine for Python users: prompts in, text out."""

from minisgl.llm.llm import LLM
from minisgl.llm.output import GenerateOutput

__all__ = ["LLM", "GenerateOutput"]
