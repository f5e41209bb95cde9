"""Plays a user who calls the team from inside of a real client, with a scripted model, and tells what was seen.

`python -m tests.conformance.clients NAME FORM FOLDER` does it in an empty folder, and prints one JSON document.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from tests.clis import install, pids_with
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import Terminal

from iterdev.agents.scripted.script import Call, Rule, Script, Step
from iterdev.conformance.agent_setup import KEY, configure_agent
from iterdev.conformance.model.playback import SIDE_CALL
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.surfaces.mcp.tools import TOOLS

LINE = """--pipeline patch "Fix $(touch never) it's; `touch never`" """
REQUIREMENT = "Fix $(touch never) it's; `touch never`"
TYPED, SKILL, DIALOG, PLUGIN = "typed", "skill", "dialog", "plugin"
"""How the team is called: by the user, by the model for the user, by the user of a client that asks by itself, and by
the user of the plugin.
"""
MARKETPLACE = Path(__file__).parents[2] / "marketplace"
QUESTION, END = "The team asks: approve or reject?", "The team is done."
TIMEOUT = 240
SUBMISSIONS, HEARD = 10, 3.0
"""How often Enter is pressed, and the seconds until the model has heard of it."""
THINKING = 4.0
"""Seconds that the model takes for the first answer of a process: codex does not wait until a server has started."""
WORK = 2
"""Seconds that the team works without anything to say."""

NO_PLUGINS = "plugins = false\n"
CODEX = f"""
model = "gpt-5.5"
model_provider = "local"
check_for_update_on_startup = false
[projects."{{project}}"]
trust_level = "trusted"
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
[model_providers.local]
name = "local"
base_url = "{{url}}/v1"
env_key = "LOCAL_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
[features]
{NO_PLUGINS}apps = false
unbounded_connection_retries = false
"""
SETTINGS = frozenset((".claude.json", "settings.json", "config.toml", "opencode.json"))
CODEX_ALLOWS = """
[plugins."iterdev@iterdev".mcp_servers.iterdev.tools.run]
approval_mode = "approve"
"""
CLAUDE_KNOWS = {
    "hasCompletedOnboarding": True,
    "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    "projects": {"{project}": {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
}
QUIET: dict[str, object] = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}
GEMINI = {**QUIET, "security": {"auth": {"selectedType": "gemini-api-key"}}}
QWEN = {
    **QUIET,
    "$version": 3,
    "security": {"auth": {"selectedType": "openai"}},
    "memory": {"enableManagedAutoMemory": False},
}


class Client(Struct, frozen=True, kw_only=True):
    """How a user of the client calls the team, and goes on in the same conversation."""

    form: str
    """What the user types, for the page."""
    first: tuple[str, ...]
    then: tuple[str, ...]
    variables: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """With {url}, the address of the model, and {project}, the repository."""
    add_plugin: str = ""
    """The word with which it installs a plugin."""
    terminal: tuple[str, str] = ("", "")
    """How it is started in a terminal, and what it says there when it asks."""


WORDS = "{words}"
CLAUDE = ("claude", "-p", "--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-4-5")
GEMINI_CLI = ("gemini", "-o", "stream-json", "-m", "gemini-2.5-pro")
QWEN_CODE = ("qwen", "-o", "stream-json", "-m", "scripted", "--auth-type", "openai")
OPENCODE = ("opencode", "run", "--format", "json", "--model", "scripted/model")
CLIENTS = {
    "claude": Client(
        form="/team-iterdev ...",
        first=(*CLAUDE, "/team-iterdev {line}"),
        then=(*CLAUDE, "--continue", "approve"),
        variables={
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
        },
        files={".claude.json": json.dumps(CLAUDE_KNOWS)},
        add_plugin="install",
        terminal=("claude --model claude-sonnet-4-5", "requests your input"),
    ),
    "codex": Client(
        form="$team-iterdev ...",
        first=("codex", "exec", "--json", "$team-iterdev {line}"),
        then=("codex", "exec", "resume", "--json", "--last", "approve"),
        variables={"LOCAL_API_KEY": KEY},
        files={".codex/config.toml": CODEX},
        add_plugin="add",
        terminal=("codex", "enter to submit"),
    ),
    "gemini": Client(
        form="/team-iterdev ...",
        first=(*GEMINI_CLI, "-p", "/team-iterdev {line}"),
        then=(*GEMINI_CLI, "--resume", "latest", "-p", "approve"),
        variables={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true"},
        files={".gemini/settings.json": json.dumps(GEMINI)},
    ),
    "qwen": Client(
        form="/team-iterdev ...",
        first=(*QWEN_CODE, "/team-iterdev {line}"),
        then=(*QWEN_CODE, "--continue", "approve"),
        variables={"QWEN_CODE_NO_RELAUNCH": "true"},
        files={".qwen/settings.json": json.dumps(QWEN)},
    ),
    "opencode": Client(
        form="/team-iterdev ...",
        first=(*OPENCODE, "--command", "team-iterdev", "--", WORDS),
        then=(*OPENCODE, "--continue", "approve"),
        variables={
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "NPM_CONFIG_REGISTRY": "http://127.0.0.1:9",
        },
    ),
}


CASES = (
    *((name, TYPED) for name in CLIENTS),
    ("claude", SKILL),
    *((name, form) for form in (DIALOG, PLUGIN) for name in ("claude", "codex")),
)
"""Every way in which the team is called."""
OWN_HOSTS = {
    ("codex", DIALOG): {"the name raw.githubusercontent.com"},
    ("codex", PLUGIN): {"the name github.com", "the name api.github.com", "the name chatgpt.com"},
}
"""Whom a client asks for whatever its settings say: Codex for its announcements, and its own list of plugins."""


class Observation(Struct, frozen=True, kw_only=True):
    instructed: bool
    """The model was told what the skill says, with what the user typed."""
    asked: bool
    """The question reached the user."""
    ended: bool
    """The end was reported to the user."""
    requirement: str
    standing: str
    while_working: int
    """Model calls while the team worked."""
    calls: int
    """Model calls of the client in all."""
    litter: str
    """What the repository has that it should not have, and after `skill remove` the settings of the client."""
    output: str


def tool(name: str, **arguments: object) -> Step:
    return Step(call=Call(tool=name, server="iterdev", arguments=arguments))


BY_NAME = (
    replace(tool("run", line=LINE), sleep=THINKING),
    tool("wait", seconds=3600),
    Step(say=QUESTION),
    replace(tool("answer", gate="plan", choice="approve"), sleep=THINKING),
    tool("wait", seconds=3600),
    Step(say=END),
)
BY_MODEL = (Step(call=Call(tool="Skill", arguments={"skill": "team-iterdev", "args": LINE})), *BY_NAME)
"""The form of Claude Code in which the model calls the skill."""


AS_TASK = (tool("run", line=LINE), Step(say="It works in the background."), Step(say=END))
"""What the model does in a client that knows tasks: it starts the team, and is told the end."""
IN_CALL = (replace(tool("run", line=LINE), sleep=THINKING), tool("wait", seconds=3600), Step(say=END))
"""What it does in a client that asks the user while a call of a tool lasts."""
TITLE = Rule(name=SIDE_CALL, match="Generate a concise, single-line task title", steps=(Step(say="Fix it"),))
"""Codex in a terminal has the model name the conversation, and offers it all tools for that."""


def observe(name: str, form: str, root: Path) -> Observation:
    # What a skill of Claude Code allows lasts for the turn of its call, and in a terminal that is all that is needed.
    if form == DIALOG or (form == PLUGIN and name == "claude"):
        return _observe_in_terminal(name, form, root)
    return _observe_without_terminal(name, form, root)


def _observe_without_terminal(name: str, form: str, root: Path) -> Observation:
    """The model passes the question on, and the user answers in the next prompt."""
    client, repo = CLIENTS[name], _scratch(name, root)
    steps = BY_MODEL if form == SKILL else BY_NAME
    with serving(Script(rules=(Rule(match=r"\S", steps=steps),))) as model:
        _set_up(name, form, repo, model)
        outputs = [_run(repo, _typed(client.first, form)), _run(repo, client.then)]
        return _seen(repo, model, *outputs, waits_in=len(steps) - 2)


def _observe_in_terminal(name: str, form: str, root: Path) -> Observation:
    """The client itself asks the user: by a dialog of its own, or by a form."""
    client, repo = CLIENTS[name], _scratch(name, root)
    program, asks = client.terminal
    called = called_by(client, form).replace("...", LINE.strip())
    steps = AS_TASK if name == "claude" else IN_CALL
    with serving(Script(rules=(TITLE, Rule(match=r"\S", steps=steps)))) as model:
        _set_up(name, form, repo, model)
        with closing(Terminal(repo)) as terminal:
            terminal.type(program)
            terminal.until("for shortcuts")
            if name == "claude":
                _look_at_servers(terminal)
            # What is typed while the client starts may be lost.
            _do_until(lambda: terminal.type(called), lambda: "Fix $(touch" in terminal.screen())
            _do_until(lambda: terminal.press("Enter"), lambda: bool(model.requests))
            asked = terminal.until(asks, "approve: Accept the plan")
            _do_until(lambda: terminal.press("Enter"), lambda: asks not in terminal.screen())
            ended = terminal.until(END)
        return _seen(repo, model, asked.replace(asks, QUESTION), ended)


def _look_at_servers(terminal: Terminal) -> None:
    """Until Claude Code has connected: it does not wait for that before it calls the model."""
    offered = f"{len(TOOLS)} tools"
    _do_until(lambda: terminal.type("/mcp"), lambda: offered in terminal.screen())
    _do_until(lambda: terminal.press("Escape"), lambda: offered not in terminal.screen())


def _do_until(act: Callable[[], None], reached: Callable[[], bool]) -> None:
    """Types until it is taken: an Enter that comes too soon after something else belongs to that."""
    for _ in range(SUBMISSIONS):
        act()
        end = time.monotonic() + HEARD
        while time.monotonic() < end:
            if reached():
                return
            time.sleep(0.1)


def _scratch(name: str, root: Path) -> Repo:
    """A repository whose developer takes its time, on a machine with one client."""
    repo = make_repo(root)
    (root / "bin").mkdir()
    install(name, root / "bin")
    clock = f"date +%s.%N >> {repo.home}/worked"
    repo.behave(developer={"run": f"{clock}; sleep {WORK}; {clock}"})
    return repo


def _set_up(name: str, form: str, repo: Repo, model: ModelServer) -> None:
    """Has the client use only the model there, and installs the skills in it."""
    client = CLIENTS[name]
    for path, text in client.files.items():
        (repo.home / path).parent.mkdir(parents=True, exist_ok=True)
        filled = text.replace("{url}", model.url).replace("{project}", str(repo.path))
        (repo.home / path).write_text(filled, encoding="utf-8")
    env = {**repo.env, **configure_agent(model.url, name, repo.home), **client.variables}
    repo.env = env | {"PATH": f"{repo.home.parent / 'bin'}:{env['PATH']}"}
    if form == PLUGIN:
        _install_plugin(name, client, repo)
    else:
        _run(repo, repo.command("skill", "install", "--client", name, "--allow"))


def _install_plugin(name: str, client: Client, repo: Repo) -> None:
    config = repo.home / ".codex/config.toml"
    if name == "codex":
        text = config.read_text(encoding="utf-8").replace(NO_PLUGINS, "")
        config.write_text(text + CODEX_ALLOWS, encoding="utf-8")
    _run(repo, [name, "plugin", "marketplace", "add", str(MARKETPLACE)])
    _run(repo, [name, "plugin", client.add_plugin, "iterdev@iterdev"])


def called_by(client: Client, form: str) -> str:
    """What the user types; a plugin's skills have its name before theirs."""
    return client.form.replace("team-", "iterdev:team-") if form == PLUGIN else client.form


def _typed(command: Sequence[str], form: str) -> list[str]:
    """The command with what the user types: the line in one word, or as a shell would give it."""
    *program, last = command
    if form == SKILL:
        return [*program, "Have team-iterdev fix it."]
    named = last.replace("team-", "iterdev:team-") if form == PLUGIN else last
    return [*program, *(shlex.split(LINE) if last == WORDS else [named.format(line=LINE)])]


def _run(repo: Repo, command: Sequence[str]) -> str:
    nothing = subprocess.DEVNULL
    done = subprocess.run(
        command,
        cwd=repo.path,
        env=repo.env,
        stdin=nothing,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return f"{done.stdout}\n{done.stderr}"


def _seen(repo: Repo, model: ModelServer, asked: str, ended: str, waits_in: int | None = None) -> Observation:
    """`waits_in` is the turn in which the model waits for the team, which may have begun by then."""
    requests = [request for request in model.requests if not request.is_side_call]
    told = next((request.body for request in requests if "Change nothing in it" in request.body), "")
    worked = repo.home / "worked"
    begin, *_, end = [float(line) for line in worked.read_text().split()] if worked.exists() else [0.0, 0.0]
    document = json.loads(repo.iterdev("status", "--json").stdout or "{}")
    return Observation(
        instructed=json.dumps(LINE.strip())[1:-1] in told,
        asked=QUESTION in _said(asked),
        ended=END in _said(ended),
        requirement=str(document.get("requirement")),
        standing=f"{document.get('phase')}, {'succeeded' if document.get('succeeded') else 'not succeeded'}",
        while_working=sum(begin < request.time < end and request.turn != waits_in for request in requests),
        calls=len(requests),
        litter="".join((repo.git("status", "--porcelain"), *_left_after_removal(repo))),
        output=f"{asked[-3000:]}\n{ended[-3000:]}",
    )


def _left_after_removal(repo: Repo) -> list[str]:
    """The settings that still name the server, also if the client has written them anew since."""
    repo.iterdev("skill", "remove")
    named = (path for path in repo.home.rglob("*") if path.name in SETTINGS and path.is_file())
    return [str(path) for path in named if "--no-prompts" in path.read_text(encoding="utf-8")]


def _said(output: str) -> str:
    """What the client shows; Gemini CLI gives a sentence in several pieces."""
    pieces = re.findall(r'"role":"assistant","content":"([^"]*)","delta":true', output)
    return output + "".join(pieces)


def observe_offline(name: str, form: str, folder: Path) -> tuple[dict[str, object], list[str]]:
    """What is seen in a network that has nothing but loopback, and whom the client asked for."""
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    record, scratch = folder / "record.json", folder / "s"
    scratch.mkdir()
    here = Path(__file__).parent
    script = [sys.executable, str(here / "shut_off.py"), str(record)]
    play = [sys.executable, "-m", "tests.conformance.clients", name, form, str(scratch)]
    done = subprocess.run(
        ["unshare", "--net", *mapped, *script, *play],
        cwd=here.parents[1],
        capture_output=True,
        text=True,
        timeout=3 * TIMEOUT,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout), json.loads(record.read_text(encoding="utf-8"))


def end_processes(root: Path) -> None:
    """Ends what a client left, such as a server, and the engine of a session that was not answered."""
    for pid in pids_with(str(root)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    name, form, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    try:
        seen = observe(name, form, folder)
    finally:
        end_processes(folder / "home")
    sys.stdout.write(msgspec.json.encode(seen).decode())
