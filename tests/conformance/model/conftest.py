"""Real coding agents, each in a private home and a scratch repository, with the scripted model only."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec import Struct
from tests.clis import alive, find_cli
from tests.conformance.default_script import default_script

from iterdev.conformance.model.server import ModelServer, serving
from iterdev.host.processes.spawn import Supervisor

PATIENCE = 180.0
"""Seconds for a run, on a machine that has other things to do."""

ANSWER = {
    "type": "object",
    "properties": {"status": {"type": "string"}, "files": {"type": "array", "items": {"type": "string"}}},
    "required": ["status", "files"],
    "additionalProperties": False,
}
SCHEMA = json.dumps(ANSWER)


@pytest.fixture(scope="session")
def cli() -> Callable[[str], Path]:
    return find_cli


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The scripted model, playing the script of the package."""
    with serving(default_script()) as server:
        yield server


class Ended(Struct, frozen=True):
    """A run of a coding agent, after its whole process tree has ended."""

    code: int
    timed_out: bool
    stdout: str
    stderr: str

    @property
    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]

    @property
    def last(self) -> dict[str, object]:
        return self.events[-1]


class Command(Struct, frozen=True):
    argv: Sequence[str]
    env: Mapping[str, str]


class CodingAgent:
    """One CLI with a home and a repository of its own."""

    def __init__(self, name: str, program: Path, model: ModelServer, folder: Path) -> None:
        self.name, self.program, self.url = name, str(program), model.url
        # Close to the root: claude keeps a socket in TMPDIR, whose path has 107 characters at most.
        self.home, self.workspace, self.tmp = (folder / part for part in ("home", "workspace", "tmp"))
        for path in (self.home, self.workspace, self.tmp):
            path.mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet", self.workspace], check=True)

    def ask(self, prompt: str, *, limit: float = PATIENCE) -> Ended:
        """Lets it work on a prompt, and ends whatever it leaves behind."""
        command = COMMANDS[self.name](self, prompt)
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.home), "TMPDIR": str(self.tmp)}

        async def turn() -> Ended:
            output = {"stdout": b"", "stderr": b""}
            async with Supervisor() as supervisor:
                started = supervisor.spawn(command.argv, cwd=str(self.workspace), env=env | command.env, limit=limit)
                async with started as process:
                    await process.close_input()
                    async for stream, chunk in process.output():
                        output[stream] += chunk
                    done = await process.wait()
            return Ended(done.code, done.timed_out, output["stdout"].decode(), output["stderr"].decode())

        return anyio.run(turn)

    def processes(self) -> list[str]:
        """Whatever still runs with its home."""
        return alive(f"HOME={self.home}\0")

    def written(self, name: str) -> str:
        return (self.workspace / name).read_text(encoding="utf-8")

    def configure(self, name: str, text: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def agent(cli: Callable[[str], Path], model: ModelServer, tmp_path: Path) -> Iterator[Callable[[str], CodingAgent]]:
    """Makes a coding agent by its name, in the folder of the test; nothing of it may be left running."""
    made: list[CodingAgent] = []

    def make(name: str) -> CodingAgent:
        made.append(CodingAgent(name, cli(name), model, tmp_path))
        return made[-1]

    yield make
    assert [left for agent in made for left in agent.processes()] == []


def claude(agent: CodingAgent, prompt: str) -> Command:
    argv = [agent.program, "-p", prompt, "--output-format", "stream-json", "--verbose"]
    argv += ["--permission-mode", "acceptEdits", "--json-schema", SCHEMA, "--model", "claude-sonnet-4-5"]
    argv += ["--strict-mcp-config", "--setting-sources", ""]
    env = {
        "ANTHROPIC_BASE_URL": agent.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CONFIG_DIR": str(agent.home / ".claude"),
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
    return Command(argv, env | dict.fromkeys((*quiet, "DISABLE_ERROR_REPORTING"), "1"))


CODEX_CONFIG = """
model = "gpt-5.5"
model_provider = "local"
approval_policy = "never"
[model_providers.local]
name = "local"
base_url = "{url}/v1"
env_key = "LOCAL_API_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
[analytics]
enabled = false
[features]
plugins = false
apps = false
unbounded_connection_retries = false
"""


def codex(agent: CodingAgent, prompt: str) -> Command:
    agent.configure(".codex/config.toml", CODEX_CONFIG.format(url=agent.url))
    agent.configure("schema.json", SCHEMA)
    argv = [agent.program, "exec", "--json", "--output-schema", str(agent.home / "schema.json")]
    argv += ["--dangerously-bypass-approvals-and-sandbox", "-C", str(agent.workspace), prompt]
    return Command(argv, {"CODEX_HOME": str(agent.home / ".codex"), "LOCAL_API_KEY": "dummy"})


def gemini(agent: CodingAgent, prompt: str) -> Command:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            "maxAttempts": 1,
            "retryFetchErrors": False,
        },
    }
    agent.configure(".gemini/settings.json", json.dumps(settings))
    argv = [agent.program, "-p", prompt, "-o", "stream-json", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"]
    env = {
        "GOOGLE_GEMINI_BASE_URL": agent.url,
        "GEMINI_API_KEY": "dummy",
        "GEMINI_CLI_HOME": str(agent.home),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    return Command([*argv, "--skip-trust"], env)


def qwen(agent: CodingAgent, prompt: str) -> Command:
    settings = {
        "$version": 3,
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        "security": {"auth": {"selectedType": "openai"}},
        "model": {"generationConfig": {"maxRetries": 1}},
        "memory": {"enableManagedAutoMemory": False},
    }
    agent.configure(".qwen/settings.json", json.dumps(settings))
    argv = [agent.program, prompt, "-o", "stream-json", "--approval-mode", "yolo", "-m", "scripted"]
    env = {
        "OPENAI_BASE_URL": f"{agent.url}/v1",
        "OPENAI_API_KEY": "dummy",
        "OPENAI_MODEL": "scripted",
        "QWEN_HOME": str(agent.home / ".qwen"),
        "QWEN_CODE_NO_RELAUNCH": "true",
    }
    return Command([*argv, "--auth-type", "openai", "--json-schema", SCHEMA], env)


COMMANDS = {"claude": claude, "codex": codex, "gemini": gemini, "qwen": qwen}
