"""Secrets planted in the environment, in `.env` and in what the model says, in a run of real coding agents."""

import pytest
from tests.e2e.coding.conftest import KEY, PATIENCE, SETTINGS, Studio
from tests.e2e.conftest import every_file

from iterdev.agents.scripted.script import Rule, Script, Step
from iterdev.conformance.model.server import ModelServer

SHOP_KEY = "k7Qw9zX2mN4vB8cL1pR5"
PASSWORD = "correct-horse-battery"
SPOKEN_KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"

TEST = """
. ./.env
echo "connected with $SHOP_PASSWORD"
grep -q good work.txt
"""


def script() -> Script:
    """A developer who shows all that it can see, a tester who mends, both of whom speak of a key."""
    chatter = f"The key is {SPOKEN_KEY}."
    work = Step(write={"work.txt": "bad\n"}, say=chatter)
    look = Step(run="env")
    done = {"id": "DEV-001", "status": "completed", "findings": chatter, "wisdom": {"learnings": [chatter]}}
    mend = Step(write={"work.txt": "good\n"}, say=chatter)
    mended = {"id": "VERIFY-001", "status": "completed", "findings": chatter}
    read = Step(read="work.txt")
    developer = Rule(task="DEV-001", name="developer", steps=(read, work, look, Step(result=done)))
    tester = Rule(match="The tests fail", name="tester", steps=(read, mend, Step(result=mended)))
    return Script(rules=(developer, tester))


def seen_by(model: ModelServer, name: str) -> str:
    return "\n".join(request.body for request in model.requests if request.rule == name)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_planted_secrets_are_in_no_file_log_journal_or_prompt(agent: str, studio: Studio) -> None:
    repo = studio.repo
    repo.write(".gitignore", ".env\n")
    repo.write(".env", f"SHOP_PASSWORD={PASSWORD}\n")
    repo.write("check.sh", TEST)
    repo.write("work.txt", "good, until now\n")
    settings = SETTINGS.format(agent=agent, home=repo.home.parent)
    studio.configure(settings.replace('"python3 -m unittest -q"', '"sh ./check.sh"\ncopy = [".env"]'))

    with studio.asking(script()) as model:
        run = ("run", "-y", "--pipeline", "patch", f"Use the shop, its key is {SHOP_KEY}")
        done = repo.iterdev(*run, timeout=PATIENCE, SHOP_API_KEY=SHOP_KEY)

    assert done.returncode == 0, done.stdout + done.stderr
    places = {
        **{name: data.decode(errors="replace") for name, data in every_file(repo.path / ".workflow").items()},
        "what was printed": done.stdout + done.stderr,
        "what a person asks for": "".join(repo.iterdev(word).stdout for word in ("status", "report", "sessions")),
        "what was committed": repo.git("log", "--all", "--patch", "--format=%B"),
        "what the developer was asked": seen_by(model, "developer"),
        "what the tester was asked": seen_by(model, "tester"),
    }
    assert "[secret]" in places["what the tester was asked"]
    assert any("The key is [secret]." in text for name, text in places.items() if name.endswith(".log"))
    assert [(name, secret) for secret in (SHOP_KEY, PASSWORD) for name in places if secret in places[name]] == []
    # A coding agent tells its provider the key, and the model again what the model has said; nobody else hears of it.
    others = {name: text for name, text in places.items() if not name.endswith(" was asked")}
    assert [(name, secret) for secret in (SPOKEN_KEY, KEY) for name in others if secret in others[name]] == []
    first_question = next(request.body for request in model.requests if request.rule == "tester")
    assert SPOKEN_KEY not in first_question
