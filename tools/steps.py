"""The chapters as steps of the package: look at them, build, run, test and prove them.

  read      list · tree N · diff N [PATH] · show N PATH[:Symbol] · build N [-o DIR]
  run       run N · test N
  write     start N [-o DIR] [--from DIR] · verify N [-o DIR]
  maintain  check [N…] [--all] · record N… · keep · propagate N PATH

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

from tools.steplib.commands import main  # noqa: E402  (the root must be importable first)

if __name__ == "__main__":
    sys.exit(main(ROOT, __doc__ or ""))
