"""Three questions to the real model, answered by the package: what `make demo` shows."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `minisgl` and `tools` lie there

from minisgl import LLM, SamplingParams
from tools.devlib.model import MODEL, model_home
from tools.environment import pipe_may_close
from tools.lang import tr

QUESTIONS = (
    "What is the capital of France?",
    "In one sentence, what does a key-value cache do for a language model?",
    "Write a Python function that adds two numbers.",
)


@pipe_may_close()
def main() -> None:
    """Load the embedded model, or the one that MINISGL_MODEL names, and stream three answers."""
    model = os.environ.get("MINISGL_MODEL") or model_home() / MODEL
    with LLM(model) as llm:
        num_tokens = 0
        began = time.perf_counter()
        for question in QUESTIONS:
            print(f"\n> {question}")
            messages = [{"role": "user", "content": question}]
            for piece in llm.stream(messages, SamplingParams(max_tokens=64)):
                print(piece.text, end="", flush=True)
                num_tokens += len(piece.token_ids)
            print(" …" if piece.finish_reason == "length" else "")
        seconds = time.perf_counter() - began
    speed = num_tokens / seconds
    print(
        tr(
            f"\n{num_tokens} 个 token，{seconds:.1f} 秒：每秒 {speed:.1f} 个",
            f"\n{num_tokens} tokens in {seconds:.1f} s: {speed:.1f} tokens/s",
        )
    )


if __name__ == "__main__":
    main()
