"""`python -m minisgl`: the engine in a terminal."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from minisgl.core import SamplingParams
from minisgl.llm import LLM
from minisgl.llm.output import StreamOutput
from minisgl.llm.prompt import Message

_MODEL = "SmolLM2-135M-Instruct"
_EPILOG = """examples:
  python -m minisgl generate "The capital of France is" --max-tokens 8
  python -m minisgl chat --system "Answer in one sentence." --temperature 0.7
  echo "Once upon a time" | python -m minisgl generate -
"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 1 where a value is wrong or a request fails, 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    params = SamplingParams(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        max_tokens=options.max_tokens,
        seed=options.seed,
    )
    try:
        params.validate()
        dtype = getattr(torch, options.dtype) if options.dtype else None
        progress = sys.stderr.isatty()
        with LLM(options.model, device=options.device, dtype=dtype, progress=progress) as llm:
            for shape, layout in llm.engine.layouts.items():
                _say(f"weights {shape}: {layout}")
            options.run(llm, params, options)
    except (ValueError, RuntimeError) as error:
        _say(f"minisgl: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # nobody reads on, as behind `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's last flush
    return 0


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m minisgl", epilog=_EPILOG, formatter_class=raw)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    generate = commands.add_parser("generate", help="continue a text")
    generate.add_argument("prompt", help="the text; - reads it from standard input")
    generate.set_defaults(run=_generate)
    chat = commands.add_parser("chat", help="talk; an empty line or Ctrl-D ends it")
    chat.add_argument("--system", help="what the model is told before the conversation")
    chat.set_defaults(run=_chat)
    for one in (generate, chat):
        one.add_argument("--model", default=_default_model(), help="folder, or name on the hub")
        one.add_argument("--device", default="cpu", help="cpu, cuda, … (cpu)")
        one.add_argument(
            "--dtype", choices=["float32", "bfloat16", "float16"], help="of the weights"
        )
        one.add_argument("--max-tokens", type=int, default=256, help="at most so many (256)")
        one.add_argument("--temperature", type=float, default=0.0, help="0: always the best token")
        one.add_argument("--top-k", type=int, default=-1, help="only the k best tokens (-1: all)")
        one.add_argument("--top-p", type=float, default=1.0, help="only the best, up to this share")
        one.add_argument("--seed", type=int, help="the same seed gives the same text")
    return parser


def _default_model() -> str:
    """The folder that tools/fetch_model.py fills, else the model's name on the hub."""
    home = Path(os.environ.get("MINISGL_HOME") or "~/.cache/minisgl")
    folder = Path(os.path.expanduser(home / _MODEL))
    return os.environ.get("MINISGL_MODEL") or (
        str(folder) if folder.is_dir() else f"HuggingFaceTB/{_MODEL}"
    )


def _generate(llm: LLM, params: SamplingParams, options: argparse.Namespace) -> None:
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    print(prompt, end="", flush=True)
    _show(llm.stream(prompt, params))


def _chat(llm: LLM, params: SamplingParams, options: argparse.Namespace) -> None:
    messages: list[Message] = []
    if options.system:
        messages.append({"role": "system", "content": options.system})
    for question in _questions():
        messages.append({"role": "user", "content": question})
        try:
            answer = _show(llm.stream(messages, params))
        except KeyboardInterrupt:  # ends the answer, not the conversation
            messages.pop()
            _say("\n(stopped; the question is forgotten)")
        else:
            messages.append({"role": "assistant", "content": answer})


def _questions() -> Iterator[str]:
    while True:
        try:
            question = input("> ").strip()
        except EOFError:
            print()
            return
        if not question:
            return
        yield question


def _show(pieces: Iterable[StreamOutput]) -> str:
    """Print an answer as it comes, and then how fast it came."""
    start, text, times = time.perf_counter(), "", []
    reason = None
    for piece in pieces:
        print(piece.text, end="", flush=True)
        text, reason = text + piece.text, piece.finish_reason
        times += [time.perf_counter()] * len(piece.token_ids)
    print()
    if times:
        seconds = times[-1] - times[0]
        rate = f", then {(len(times) - 1) / seconds:.1f} tokens/s" if seconds else ""
        _say(f"({len(times)} tokens, {reason}: the first after {times[0] - start:.2f} s{rate})")
    return text


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
