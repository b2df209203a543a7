"""The chapters as steps of the package: write them yourself, look at them, prove them.

Without a command it says where you stand and what is next.

A chapter that rewrites a file, in three moves:
  1. edit minisgl/PATH in place, and add it to `writes` of the chapter's step.toml
  2. `keep`: the version in the last commit goes to the chapter that wrote it, under steps/
  3. `record N`, then `check`
A fix in an early version: edit it where `tree N` says it lies, then `propagate N PATH`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)

from tools.environment import use_environment  # noqa: E402  (the root must be importable first)
from tools.steplib.commands import main  # noqa: E402

if __name__ == "__main__":
    use_environment(ROOT, "torch", "rich")
    sys.exit(main(ROOT, __doc__ or ""))
