"""The flags, settings and environment of `codex exec` for an assignment.

The user's login is used. Codex reads none of their other settings, and none of the project's.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from iterdev.agents.contract import TOOLS, TOOLS_TOKEN, Assignment, ToolServer

KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")

BASE_SETTINGS: Mapping[str, object] = {
    "analytics.enabled": False,
    # These two clone a repository and call a web service at every start.
    "features.plugins": False,
    "features.apps": False,
    "features.hooks": False,
    "skills.include_instructions": False,
    # The default waits forever for a provider that refuses connections.
    "features.unbounded_connection_retries": False,
    # A request for approval is denied at once; it would wait for a person.
    "approval_policy": "never",
    # The agent's commands do not need the provider's key.
    "shell_environment_policy.exclude": [*KEYS, TOOLS_TOKEN],
    # Codex ignores the file in an untrusted project, together with settings that start programs.
    "developer_instructions": "When the repository has a file AGENTS.md, read it first and follow it.",
}


class Login(msgspec.Struct, frozen=True):
    """The user's settings that say where their login is stored and which provider it is for."""

    cli_auth_credentials_store: str = ""
    openai_base_url: str = ""


def read_login(home: Path) -> Login:
    try:
        return msgspec.toml.decode((home / "config.toml").read_bytes(), type=Login)
    except (OSError, UnicodeError, msgspec.DecodeError):
        return Login()


def codex_home(environment: Mapping[str, str], private: str = "") -> Path:
    folder = private or environment.get("CODEX_HOME") or ""
    return Path(folder) if folder else Path(environment.get("HOME", "")) / ".codex"


def real_workspace(work: Assignment) -> str:
    """The path by which Codex knows the workspace."""
    return os.path.realpath(work.workspace)


def override_flags(settings: Mapping[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        yield from ("-c", f"{name}={toml(value)}")


def settings_for(work: Assignment, home: Path) -> dict[str, object]:
    login, role = read_login(home), work.permissions
    base_url = work.environment.get("OPENAI_BASE_URL") or login.openai_base_url
    store = login.cli_auth_credentials_store
    return {
        **BASE_SETTINGS,
        # Otherwise Codex adds the repository to the trusted projects in the user's settings.
        "projects": {real_workspace(work): {"trust_level": "untrusted"}},
        # An outer sandbox limits what the role can write; but its commands have the network.
        "sandbox_mode": "danger-full-access" if work.sandboxed else "workspace-write" if role.write else "read-only",
        "sandbox_workspace_write.network_access": role.network,
        "sandbox_workspace_write.exclude_slash_tmp": "TMPDIR" in work.environment,
        **({} if role.network else {"web_search": "disabled"}),
        **({} if role.shell else {"features.shell_tool": False}),
        **({"openai_base_url": base_url} if base_url else {}),
        **({"cli_auth_credentials_store": store} if store else {}),
        **(tool_settings(work.tools) if work.tools else {}),
    }


def tool_settings(server: ToolServer) -> dict[str, object]:
    # By default a tool that is not declared read-only is denied.
    return {
        f"mcp_servers.{TOOLS}.url": server.url,
        f"mcp_servers.{TOOLS}.bearer_token_env_var": TOOLS_TOKEN,
        f"mcp_servers.{TOOLS}.default_tools_approval_mode": "approve",
    }


def toml(value: object) -> str:
    match value:
        case Mapping():
            return "{" + ", ".join(f"{toml(name)} = {toml(part)}" for name, part in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case _:
            # Strings, numbers and booleans are the same in TOML and JSON, except for surrogates.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def key_variable(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """The user's key under the name that Codex reads, unless they are logged in some other way."""
    openai, *own = (environment.get(name) for name in KEYS)
    logged_in = any(own) or (home / "auth.json").exists() or read_login(home).cli_auth_credentials_store
    return {"CODEX_API_KEY": openai} if openai and not logged_in else {}
