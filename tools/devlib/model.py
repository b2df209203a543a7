"""The embedded model's place. What is in it is the business of tools/fetch_model.py."""

from __future__ import annotations

import os
from pathlib import Path

from tools.devlib.environment import Environment
from tools.devlib.process import Failure, run
from tools.lang import tr

MODEL = "SmolLM2-135M-Instruct"
NO_HOME = (
    "找不到用户目录：把 MINISGL_HOME 设成一个可写的文件夹",
    "there is no home folder: set MINISGL_HOME to a folder that can be written to",
)


def model_home() -> Path:
    """The cache folder: MINISGL_HOME, or ~/.cache/minisgl. Raises Failure without a home."""
    try:
        home = os.environ.get("MINISGL_HOME") or Path.home() / ".cache" / "minisgl"
        return Path(home).expanduser().absolute()
    except RuntimeError:  # no HOME and no entry for this user, or ~ and a name that nobody has
        raise Failure(tr(*NO_HOME)) from None


def fetch_model(environment: Environment) -> Path:
    """Have tools/fetch_model.py make or check the embedded model; return its folder."""
    command = [str(environment.python), "tools/fetch_model.py"]
    status, text = run(command, environment.root, tee="stdout")
    if status or not text.strip():
        raise Failure(
            tr(
                "没有拿到模型，原因见上一行；处理后重新运行",
                "no model, for the reason above; fix that and run again",
            )
        )
    return Path(text.strip().split("\n")[-1])


def stored_model() -> list[Path]:
    """Everything of the embedded model that lies in the cache folder, half-made parts too."""
    home = model_home()
    return sorted([*home.glob(f"{MODEL}*"), *home.glob(f".{MODEL}*")])
