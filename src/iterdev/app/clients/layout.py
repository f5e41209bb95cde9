"""What is installed for each client: files of ours, and entries in its settings.

Two folders of skills serve all of them; a client whose users cannot call a skill by its name gets a command as well.
"""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from iterdev.app.clients.skill_text import ALLOWED, SKILLS, Skill, body

SERVER = "iterdev"
ARGUMENTS = ("mcp", "--no-prompts")
"""Of the command: Gemini CLI renames commands that a prompt has the name of."""
PATIENCE = 4000
"""Seconds for one call of a tool: `wait` takes up to an hour, so that the model need not be asked meanwhile."""
CLAUDE_TYPED = "what stands after `Arguments:` at the end of this text"
TYPED = "what the user typed after the name of this skill"


class ClientName(StrEnum):
    claude = "claude"
    codex = "codex"
    gemini = "gemini"
    qwen = "qwen"
    opencode = "opencode"


class Scope(StrEnum):
    user = "user"
    project = "project"


class OwnFile(Struct, frozen=True, kw_only=True):
    """A file that nobody else writes."""

    path: Path
    text: str
    comment: tuple[str, str] = ("<!-- ", " -->")


class JsonEntry(Struct, frozen=True, kw_only=True):
    path: Path
    keys: tuple[str, ...]
    value: object


class JsonItems(Struct, frozen=True, kw_only=True):
    """Items of a list."""

    path: Path
    keys: tuple[str, ...]
    items: tuple[str, ...]


class TomlTables(Struct, frozen=True, kw_only=True):
    path: Path
    keys: tuple[str, ...]
    """The table that all of the text is in."""
    text: str


Part = OwnFile | JsonEntry | JsonItems | TomlTables


class Place(Struct, frozen=True, kw_only=True):
    """Where the settings of clients are."""

    scope: Scope
    root: Path
    """The home of the user, or the top of the repository."""
    environment: Mapping[str, str]
    program: str
    """The absolute path of iterdev: a client may have another PATH."""
    allow: bool = False
    """Whether the client may call the tools without asking that neither accept nor undo work."""

    def folder(self, variable: str, name: str) -> Path:
        """A folder of the user's settings, which a variable can move."""
        moved = self.environment.get(variable) if self.scope is Scope.user else None
        return Path(moved) if moved else self.root / name


def parts(client: ClientName, place: Place) -> tuple[Part, ...]:
    """All that is installed for a client."""
    made = {
        ClientName.claude: _claude,
        ClientName.codex: _codex,
        ClientName.gemini: _gemini,
        ClientName.qwen: _qwen,
        ClientName.opencode: _opencode,
    }
    return tuple(made[client](place))


def skill_file(skill: Skill, program: str, *, for_claude: bool = False, server: str = SERVER) -> str:
    """SKILL.md; Claude Code fills in the arguments, and the others give what was typed beside the file.

    `server` is the name by which Claude Code knows the MCP server.
    """
    lines = ["---", f"name: {skill.name}", f"description: {json.dumps(skill.description)}"]
    if for_claude:
        tools = " ".join(f"mcp__{server}__{tool}" for tool in ALLOWED)
        lines += [f"argument-hint: {json.dumps(skill.hint)}", f"allowed-tools: {tools}"]
    typed = CLAUDE_TYPED if for_claude else TYPED
    given = "\nArguments: $ARGUMENTS\n" if for_claude else ""
    return "\n".join([*lines, "---", "", body(skill, program, typed) + given])


def openai_policy(skill: Skill) -> str:
    """What only Codex reads: the model does not use the skill by itself."""
    policy = "policy:\n  allow_implicit_invocation: false\n"
    return f"interface:\n  display_name: {json.dumps(skill.name)}\n{policy}"


def _claude(place: Place) -> Iterator[Part]:
    own = place.folder("CLAUDE_CONFIG_DIR", ".claude")
    for skill in SKILLS:
        text = skill_file(skill, place.program, for_claude=True)
        yield OwnFile(path=own / "skills" / skill.name / "SKILL.md", text=text)
    moved = place.scope is Scope.user and "CLAUDE_CONFIG_DIR" in place.environment
    servers = (own if moved else place.root) / (".claude.json" if place.scope is Scope.user else ".mcp.json")
    yield JsonEntry(path=servers, keys=("mcpServers", SERVER), value={"type": "stdio", **server_command(place.program)})
    if place.allow:
        follow = (f"Bash({place.program} {command} *)" for command in ("follow", "status"))
        called = (f"Skill({skill.name})" for skill in SKILLS)
        items = (*(f"mcp__{SERVER}__{tool}" for tool in ALLOWED), *called, *follow)
        yield JsonItems(path=own / "settings.json", keys=("permissions", "allow"), items=items)


def _codex(place: Place) -> Iterator[Part]:
    yield from _shared_skills(place)
    for skill in SKILLS:
        path = place.root / ".agents/skills" / skill.name / "agents/openai.yaml"
        yield OwnFile(path=path, text=openai_policy(skill), comment=("# ", ""))
    config = place.folder("CODEX_HOME", ".codex") / "config.toml"
    lines = [f"[mcp_servers.{SERVER}]", f"command = {json.dumps(place.program)}", f"args = {json.dumps(ARGUMENTS)}"]
    lines.append(f"tool_timeout_sec = {PATIENCE}")
    for tool in ALLOWED if place.allow else ():
        lines += ["", f"[mcp_servers.{SERVER}.tools.{tool}]", 'approval_mode = "approve"']
    yield TomlTables(path=config, keys=("mcp_servers", SERVER), text="\n".join(lines))


def _gemini(place: Place) -> Iterator[Part]:
    yield from _shared_skills(place)
    own = place.folder("GEMINI_CLI_HOME", "") / ".gemini"
    for skill in SKILLS:
        prompt = body(skill, place.program, "the text between the two marks at the end") + "\n<line>{{args}}</line>\n"
        text = f"description = {json.dumps(skill.description)}\nprompt = {json.dumps(prompt)}\n"
        yield OwnFile(path=own / "commands" / f"{skill.name}.toml", text=text, comment=("# ", ""))
    value = {**server_command(place.program), "timeout": PATIENCE * 1000}
    yield JsonEntry(path=own / "settings.json", keys=("mcpServers", SERVER), value=value)
    if place.allow:
        tools = json.dumps(list(ALLOWED))
        text = f'[[rule]]\nmcpName = "{SERVER}"\ntoolName = {tools}\ndecision = "allow"\npriority = 100\n'
        yield OwnFile(path=own / "policies" / "iterdev.toml", text=text, comment=("# ", ""))


def _qwen(place: Place) -> Iterator[Part]:
    yield from _shared_skills(place)
    settings = place.folder("QWEN_HOME", ".qwen") / "settings.json"
    value = {**server_command(place.program), "timeout": PATIENCE * 1000}
    yield JsonEntry(path=settings, keys=("mcpServers", SERVER), value=value)
    if place.allow:
        items = tuple(f"mcp__{SERVER}__{tool}" for tool in ALLOWED)
        yield JsonItems(path=settings, keys=("permissions", "allow"), items=items)


def _opencode(place: Place) -> Iterator[Part]:
    yield from _shared_skills(place)
    if place.scope is Scope.user:
        own = Path(place.environment.get("XDG_CONFIG_HOME") or place.root / ".config") / "opencode"
        config, commands = own, own / "command"
    else:
        config, commands = place.root, place.root / ".opencode/command"
    for skill in SKILLS:
        prompt = body(skill, place.program, "the text between the two marks at the end")
        text = f"---\ndescription: {json.dumps(skill.description)}\n---\n\n{prompt}\n<line>$ARGUMENTS</line>\n"
        yield OwnFile(path=commands / f"{skill.name}.md", text=text)
    file = config / "opencode.jsonc"
    path = file if file.exists() else config / "opencode.json"
    value = {"type": "local", "command": [place.program, *ARGUMENTS], "enabled": True, "timeout": PATIENCE * 1000}
    yield JsonEntry(path=path, keys=("mcp", SERVER), value=value)


def _shared_skills(place: Place) -> Iterator[Part]:
    """The folder that Codex, Gemini CLI, Qwen Code and OpenCode all read."""
    for skill in SKILLS:
        path = place.root / ".agents/skills" / skill.name / "SKILL.md"
        yield OwnFile(path=path, text=skill_file(skill, place.program))


def server_command(program: str) -> dict[str, object]:
    return {"command": program, "args": list(ARGUMENTS)}
