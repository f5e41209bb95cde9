"""A coding agent that makes one change: python agent.py CHANGE, a file with the change as JSON."""

import json
import os
import sys
from pathlib import Path

import msgspec
from packages import Change

sys.stdin.read()
msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Change).apply(Path.cwd())
result = {"id": os.environ["ITERDEV_TASK"], "status": "completed", "findings": "Made the change.", "error": ""}
Path(os.environ["ITERDEV_RESULT"]).write_text(json.dumps(result), encoding="utf-8")
