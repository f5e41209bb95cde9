"""An agent that cannot be asked to end, and leaves a time stamp four times a second: `agent.py FOLDER SECONDS`."""

import json
import os
import signal
import sys
import time
from pathlib import Path

INTERVAL = 0.25


def main(folder: str, seconds: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdin.read()
    task, began = os.environ["ITERDEV_TASK"], time.monotonic()
    with Path(folder, f"{task}.{time.monotonic_ns()}").open("w") as stamps:
        while time.monotonic() < began + float(seconds):
            stamps.write(f"{time.monotonic()}\n")
            stamps.flush()
            time.sleep(INTERVAL)
    Path(f"{task}.txt").write_text(f"{task}\n")
    result = {"id": task, "status": "completed", "findings": f"{task} is done"}
    Path(os.environ["ITERDEV_RESULT"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
