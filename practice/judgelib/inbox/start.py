"""The script that starts a box: its one argument is the judge's settings, as JSON.

The repository lies on the import path only while the box's own modules are loaded.
"""

import json
import sys

SETTINGS = json.loads(sys.argv[1])
sys.path.append(SETTINGS["root"])

from practice.judgelib.inbox.keeper import serve  # noqa: E402  (the root must be importable first)

if __name__ == "__main__":
    sys.path.remove(SETTINGS["root"])
    sys.path += SETTINGS["sites"]
    serve(SETTINGS)
