"""The plugins for marketplaces of Claude Code and Codex: the same skills and server as `iterdev skill install`.

A plugin's skills have its name before theirs, as in `/iterdev:team-iterdev`; the program is found on the PATH.
"""

import json

from iterdev import __version__
from iterdev.app.clients.layout import PATIENCE, SERVER, openai_policy, server_command, skill_file
from iterdev.app.clients.skill_text import SKILLS

PROGRAM = "iterdev"
DESCRIPTION = "Runs a team of coding agents on a git repository, and never loses their work"
HOME = f"plugins/{PROGRAM}"
CLAUDE_SERVER = f"plugin_{PROGRAM}_{SERVER}"
"""What Claude Code calls the MCP server of a plugin."""


def plugin_files() -> dict[str, str]:
    """Every file by its path below the folder that is added as a marketplace."""
    about = {"name": PROGRAM, "version": __version__, "description": DESCRIPTION, "license": "MIT"}
    entry = {"name": PROGRAM, "description": DESCRIPTION}
    owner, server = {"name": "iterdev"}, server_command(PROGRAM)
    files = {
        ".claude-plugin/marketplace.json": {
            "name": PROGRAM,
            "description": DESCRIPTION,
            "owner": owner,
            "plugins": [{**entry, "source": f"./{HOME}/claude"}],
        },
        f"{HOME}/claude/.claude-plugin/plugin.json": {**about, "author": owner},
        f"{HOME}/claude/.mcp.json": {"mcpServers": {SERVER: server}},
        ".agents/plugins/marketplace.json": {
            "name": PROGRAM,
            "interface": {"displayName": PROGRAM},
            "plugins": [
                {
                    "name": PROGRAM,
                    "source": {"source": "local", "path": f"./{HOME}/codex"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Productivity",
                }
            ],
        },
        f"{HOME}/codex/.codex-plugin/plugin.json": {**about, "skills": "./skills/", "mcpServers": "./.mcp.json"},
        f"{HOME}/codex/.mcp.json": {"mcpServers": {SERVER: {**server, "tool_timeout_sec": PATIENCE}}},
    }
    texts = {path: json.dumps(document, indent=2) + "\n" for path, document in files.items()}
    for skill in SKILLS:
        folder = f"skills/{skill.name}"
        texts[f"{HOME}/claude/{folder}/SKILL.md"] = skill_file(skill, PROGRAM, for_claude=True, server=CLAUDE_SERVER)
        texts[f"{HOME}/codex/{folder}/SKILL.md"] = skill_file(skill, PROGRAM)
        texts[f"{HOME}/codex/{folder}/agents/openai.yaml"] = openai_policy(skill)
    return texts
