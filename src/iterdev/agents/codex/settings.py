"""How `codex exec` is started for an assignment: its flags, its settings and its environment.

The user's login is used as it is. Nothing else of theirs is: Codex reads neither their settings nor the project's.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from iterdev.agents.contract import TOOLS, TOOLS_TOKEN, Assignment, Permissions, ToolServer

KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")

QUIET: Mapping[str, object] = {
    "analytics.enabled": False,
    # These two clone a repository and ask a web service at every start.
    "features.plugins": False,
    "features.apps": False,
    "features.hooks": False,
    "skills.include_instructions": False,
    # By itself it waits for ever for a provider that refuses connections.
    "features.unbounded_connection_retries": False,
    # A question that nobody can answer is a refusal.
    "approval_policy": "never",
    # Commands of the agent need no key of the provider.
    "shell_environment_policy.exclude": [*KEYS, TOOLS_TOKEN],
    # In a project that is not trusted Codex leaves the file out, together with settings that start programs.
    "developer_instructions": "When the repository has a file AGENTS.md, read it first and follow it.",
}


class Login(msgspec.Struct, frozen=True):
    """The part of the user's settings without which their login is not found, or goes to the wrong place."""

    cli_auth_credentials_store: str = ""
    openai_base_url: str = ""


def login_of(home: Path) -> Login:
    try:
        return msgspec.toml.decode((home / "config.toml").read_bytes(), type=Login)
    except (OSError, UnicodeError, msgspec.DecodeError):
        return Login()


def home_of(environment: Mapping[str, str], private: str = "") -> Path:
    folder = private or environment.get("CODEX_HOME") or ""
    return Path(folder) if folder else Path(environment.get("HOME", "")) / ".codex"


def real_workspace(work: Assignment) -> str:
    """The path by which Codex knows the workspace."""
    return os.path.realpath(work.workspace)


def flags(settings: Mapping[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        yield from ("-c", f"{name}={toml(value)}")


def settings_for(work: Assignment, home: Path) -> dict[str, object]:
    login = login_of(home)
    base_url = work.environment.get("OPENAI_BASE_URL") or login.openai_base_url
    store = login.cli_auth_credentials_store
    return {
        **QUIET,
        # Otherwise Codex writes into the user's own settings that it trusts the repository from now on.
        "projects": {real_workspace(work): {"trust_level": "untrusted"}},
        **permitted(work.permissions, has_own_tmp="TMPDIR" in work.environment),
        # What the role may not write, it cannot write there; but its commands have the network.
        **({"sandbox_mode": "danger-full-access"} if work.sandboxed else {}),
        **({"openai_base_url": base_url} if base_url else {}),
        **({"cli_auth_credentials_store": store} if store else {}),
        **(tools(work.tools) if work.tools else {}),
    }


def permitted(permissions: Permissions, *, has_own_tmp: bool) -> dict[str, object]:
    return {
        "sandbox_mode": "workspace-write" if permissions.write else "read-only",
        "sandbox_workspace_write.network_access": permissions.network,
        "sandbox_workspace_write.exclude_slash_tmp": has_own_tmp,
        **({} if permissions.network else {"web_search": "disabled"}),
        **({} if permissions.shell else {"features.shell_tool": False}),
    }


def tools(server: ToolServer) -> dict[str, object]:
    # Without a word on approval, a tool that does not declare itself harmless is refused.
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
            # Strings, numbers and booleans are written alike in both languages, but for surrogates.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """The user's key under the name that Codex reads, unless they have logged in to it in another way."""
    openai, *own = (environment.get(name) for name in KEYS)
    logged_in = any(own) or (home / "auth.json").exists() or login_of(home).cli_auth_credentials_store
    return {"CODEX_API_KEY": openai} if openai and not logged_in else {}
