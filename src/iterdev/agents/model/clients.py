"""The coding agents as clients of the scripted model: how each is told to ask it, in a private home, without a login.

Only facts about programs stand here. Every other place that starts an agent against the scripted model takes them from
here.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.agents import table
from iterdev.agents.contract import Agent
from iterdev.core.settings import AgentSettings

KEY = "scripted"
"""Any key will do: nobody looks at it."""

OPENCODE = {
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{url}/v1", "apiKey": KEY},
            "models": {"model": {"tool_call": True}},
        }
    }
}
KIMI = f"""
telemetry = false
default_model = "scripted"
[providers.scripted]
type = "openai"
base_url = "{{url}}/v1"
api_key = "{KEY}"
[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 200000
capabilities = ["tool_use"]
"""


class Client(Struct, frozen=True, kw_only=True):
    """In every text, {url} is where the model is."""

    model: str = ""
    """A name for which the program knows what the model can do."""
    variables: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """Contents by their paths in the private home."""


CLIENTS: Mapping[str, Client] = {
    "claude": Client(model="claude-sonnet-4-5", variables={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": KEY}),
    "codex": Client(model="gpt-5.5", variables={"OPENAI_BASE_URL": "{url}/v1", "CODEX_API_KEY": KEY}),
    "gemini": Client(model="gemini-2.5-pro", variables={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": KEY}),
    "qwen": Client(model="scripted", variables={"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": KEY}),
    "opencode": Client(model="scripted/model", files={".config/opencode/opencode.json": json.dumps(OPENCODE)}),
    "copilot": Client(
        model="scripted",
        variables={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": KEY,
        },
    ),
    "goose": Client(
        model="gpt-4o",
        variables={
            "GOOSE_PROVIDER": "openai",
            "GOOSE_DISABLE_KEYRING": "1",
            "OPENAI_HOST": "{url}",
            "OPENAI_BASE_PATH": "v1/chat/completions",
            "OPENAI_API_KEY": KEY,
        },
    ),
    "kimi": Client(files={".kimi-code/config.toml": KIMI}),
}


def client(name: str, home: Path) -> Agent:
    """The agent in a private home."""
    return table.make(name, {name: AgentSettings(model=CLIENTS[name].model, home=str(home))}, home)


def pointed_at(url: str, name: str, home: Path) -> dict[str, str]:
    """The variables with which the agent in that home asks the model there, and nobody else."""
    facts = CLIENTS[name]
    for path, text in facts.files.items():
        Path(home, path).parent.mkdir(parents=True, exist_ok=True)
        Path(home, path).write_text(text.replace("{url}", url), encoding="utf-8")
    return {"HOME": str(home)} | {name: value.replace("{url}", url) for name, value in facts.variables.items()}
