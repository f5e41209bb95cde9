"""The script of `model/default.toml`: scenarios by name, and the roles of a sprint."""

from pathlib import Path

from iterdev.agents.scripted.script import Script, load


def default_script() -> Script:
    return load(Path(__file__).parent / "model" / "default.toml", "model")
