"""An agent that speaks the protocol in plain lines of JSON, and does what its prompt tells it to.

The first argument is a JSON object: what it says about itself. A prompt is a JSON list of steps. Every message that it
gets is added to received.jsonl in its folder.
"""

import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path

ABOUT = {"capabilities": {"loadSession": True, "mcpCapabilities": {"http": True}}, "opened": {}, "history": []}
ABOUT |= json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")
numbers = itertools.count(1000)


def put(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def get() -> dict:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    with Path("received.jsonl").open("a") as file:
        file.write(line)
    return json.loads(line)


def update(kind: str, **rest: object) -> None:
    put(method="session/update", params={"sessionId": "s-1", "update": {"sessionUpdate": kind, **rest}})


def say(text: str, **extra: object) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text}, **extra)


def ask(call: dict, options: list | None = None) -> None:
    """Asks for a permission, and writes the answer into its own folder."""
    plain = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_always", "allow_once", "reject_once")]
    params = {"sessionId": "s-1", "toolCall": {"toolCallId": "c-1", **call}, "options": options or plain}
    put(id=next(numbers), method="session/request_permission", params=params)
    outcome = get()["result"]["outcome"]
    say(json.dumps({"outcome": outcome}))


def wait_for_cancel() -> str:
    while get().get("method") != "session/cancel":
        pass
    return "cancelled"


def refused(method: str) -> None:
    put(id=next(numbers), method=method, params={})
    say(json.dumps({"error": get()["error"]["code"]}))


def tell(variable: str) -> None:
    say(json.dumps({"value": os.environ.get(variable), "argv": sys.argv[1:], "pid": os.getpid()}))


def store_later(text: str) -> None:
    """As agents do that end their turn first; what is not stored at the end is lost."""
    timer = threading.Timer(0.2, Path("stored").write_text, [text])
    timer.daemon = True
    timer.start()


DEEDS = {
    "say": say,
    "update": lambda value: update(**value),
    "raw": lambda line: print(line, flush=True),
    "stderr": lambda line: print(line, file=sys.stderr, flush=True),
    "ask": lambda value: ask(**value),
    "request": refused,
    "environment": tell,
    "write": lambda text: Path(os.environ["ITERDEV_RESULT"]).write_text(text),
    "sleep": time.sleep,
    "store later": store_later,
    "exit": sys.exit,
}


def prompt(number: int, steps: list) -> None:
    answer = {"stopReason": "end_turn"}
    for name, value in steps:
        match name:
            case "end":
                answer |= value
            case "error":
                put(id=number, error=value)
                return
            case "hang" | "deaf":
                say("waiting\n")
                answer["stopReason"] = wait_for_cancel()
                if name == "deaf":
                    return
            case _:
                DEEDS[name](value)
    put(id=number, result=answer)


while True:
    message = get()
    match message.get("method"):
        case "initialize":
            if "exit" in ABOUT:
                sys.exit(ABOUT["exit"])
            put(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": ABOUT["capabilities"]})
        case "session/new" | "session/load" as method:
            if "refuse" in ABOUT:
                put(id=message["id"], error=ABOUT["refuse"])
                continue
            for text in ABOUT["history"] if method == "session/load" else []:
                say(text)
            put(id=message["id"], result={"sessionId": "s-1", **ABOUT["opened"]})
        case "session/prompt":
            prompt(message["id"], json.loads(message["params"]["prompt"][0]["text"]))
        case "session/set_config_option":
            put(id=message["id"], result={"configOptions": []})
