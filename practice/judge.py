"""The judge: exercises on the real engine, graded in a sandbox.

Without a command it says where you stand and what to do next. Your files are in
workspace/practice/. `submit` ends with status 0 only when everything was right.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)

from practice.judgelib.commands import main  # noqa: E402  (the root must be importable first)
from tools.environment import use_environment  # noqa: E402

if __name__ == "__main__":
    use_environment(ROOT, "torch", "uvicorn")
    sys.exit(main(ROOT, __doc__ or ""))
