"""How each coding agent is configured to use the scripted model, in a private home and without a login.

A new coding agent needs one row here.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.agents import registry
from iterdev.agents.contract import Agent
from iterdev.core.settings import AgentSettings

KEY = "scripted"
"""Any key will do: it is not checked."""

OPENCODE = {
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{url}/v1", "apiKey": "{key}"},
            "models": {"model": {"tool_call": True}},
        }
    }
}
OPENAI = {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "{key}"}
KIMI = """
telemetry = false
default_model = "scripted"
[providers.scripted]
type = "openai"
base_url = "{url}/v1"
api_key = "{key}"
[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 200000
capabilities = ["tool_use"]
"""


class Client(Struct, frozen=True, kw_only=True):
    """In every text, {url} is the address of the model, and {key} the key of the provider."""

    model: str = ""
    """A name of a model that the program knows."""
    variables: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """Contents by their paths in the private home."""


CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        model="claude-sonnet-4-5", variables={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "{key}"}
    ),
    "codex": Client(model="gpt-5.5", variables=OPENAI),
    "gemini": Client(model="gemini-2.5-pro", variables={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"}),
    "qwen": Client(model="scripted", variables={"OPENAI_MODEL": "scripted", **OPENAI}),
    "opencode": Client(model="scripted/model", files={".config/opencode/opencode.json": json.dumps(OPENCODE)}),
    "copilot": Client(
        model="scripted",
        variables={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "{key}",
        },
    ),
    "goose": Client(
        model="gpt-4o",
        variables={
            "GOOSE_PROVIDER": "openai",
            "GOOSE_DISABLE_KEYRING": "1",
            "OPENAI_HOST": "{url}",
            "OPENAI_BASE_PATH": "v1/chat/completions",
            "OPENAI_API_KEY": "{key}",
        },
    ),
    "kimi": Client(files={".kimi-code/config.toml": KIMI}),
}


def agent_in_home(name: str, home: Path) -> Agent:
    return registry.make(name, {name: AgentSettings(model=CLIENTS[name].model, home=str(home))}, home)


def configure_agent(url: str, name: str, home: Path) -> dict[str, str]:
    """Writes the configuration files, and returns the variables, with which an agent uses only the model there."""
    for path, text in CLIENTS[name].files.items():
        Path(home, path).parent.mkdir(parents=True, exist_ok=True)
        Path(home, path).write_text(_filled(text, url, KEY), encoding="utf-8")
    return {"HOME": str(home)} | variables(name, url)


def variables(name: str, url: str, key: str = KEY) -> dict[str, str]:
    """The variables with the address and the key of the provider."""
    return {variable: _filled(text, url, key) for variable, text in CLIENTS[name].variables.items()}


def _filled(text: str, url: str, key: str) -> str:
    return text.replace("{url}", url).replace("{key}", key)
