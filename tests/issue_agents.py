"""Agents that play the issue team: a small program, and a script with the same behaviour."""

import json
import sys
from collections.abc import Iterable, Sequence

from tests.conftest import Repo

PROGRAM = r"""
"Does what plan.json says beside it: which files an issue is about, which audits reject, what a task writes or fails."
import json, os, pathlib, sys, time
prompt = sys.stdin.read()
task, role, issues = os.environ["ITERDEV_TASK"], os.environ["ITERDEV_ROLE"], os.environ["ITERDEV_ISSUES"].split(";")
beside = pathlib.Path(__file__).parent
plan = json.loads((beside / "plan.json").read_text()) if (beside / "plan.json").exists() else {}
result = {"id": task, "status": "completed", "findings": f"{task} done"}
files = lambda issue: plan.get("files", {}).get(issue, [f"{issue}.txt"])
if role == "explorer":
    result["contexts"] = [{"issue_id": issue, "relevant_files": files(issue)} for issue in issues]
elif role == "planner":
    result["solutions"] = [
        {"issue_id": issue, "approach": "write", "tasks": [{"id": "T1", "title": "write", "files": files(issue)}]}
        for issue in issues
    ]
elif role == "reviewer":
    score = 50 if task in plan.get("rejects", []) else 90
    dimension = {"score": score, "findings": ["too thin"] if score < 60 else []}
    names = ("technical_feasibility", "risk_assessment", "completeness")
    result["audits"] = [{"issue_id": issue, **dict.fromkeys(names, dimension)} for issue in issues]
elif role == "integrator":
    result["order"] = issues
elif role == "implementer":
    for issue in issues:
        for name in files(issue):
            with open(name, "a") as file:
                file.write(f"{issue}\n")
with open(beside / "calls.jsonl", "a") as log:
    log.write(json.dumps({"task": task, "role": role, "prompt": prompt}) + "\n")
if task in plan.get("hangs", []):
    time.sleep(600)
if task in plan.get("fails", []):
    result = {"id": task, "status": "failed", "findings": "", "error": "it broke"}
pathlib.Path(os.environ["ITERDEV_RESULT"]).write_text(json.dumps(result))
"""
DIMENSIONS = ("technical_feasibility", "risk_assessment", "completeness")


def use_program(repo: Repo, settings: str = "", **plan: object) -> None:
    """The program is the agent of every role."""
    path = repo.agent_folder / "agent.py"
    path.write_text(PROGRAM, encoding="utf-8")
    (repo.agent_folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    _configure(repo, f'command = ["{sys.executable}", "-I", "-S", "{path}"]', settings)


def use_script(repo: Repo, issues: Sequence[str], settings: str = "", *, batch: bool) -> None:
    """The scripted agent plays every role; in a batch, each of the first tasks is about one issue."""
    shares = [[issue] for issue in issues] if batch else [list(issues)]
    rules = [rule for number, share in enumerate(shares, 1) for rule in _planning(f"{number:03d}", share)]
    audits = [{"issue_id": issue, **{name: {"score": 90} for name in DIMENSIONS}} for issue in issues]
    rules.append({"role": "reviewer", "result": {"audits": audits}})
    rules.append({"role": "integrator", "result": {"order": list(issues)}})
    # Each BUILD task has a file of its own name.
    rules.append({"role": "implementer", "write": {"{task}.txt": "built\n"}, "result": {}})
    path = repo.agent_folder / "script.json"
    path.write_text(json.dumps({"rule": rules}), encoding="utf-8")
    _configure(repo, f'script = "{path}"', settings)


def _planning(number: str, issues: Sequence[str]) -> Iterable[dict[str, object]]:
    contexts = [{"issue_id": issue, "relevant_files": [f"{issue}.txt"]} for issue in issues]
    yield {"task": f"EXPLORE-{number}", "result": {"contexts": contexts}}
    tasks = {issue: [{"id": "T1", "title": "write", "files": [f"{issue}.txt"]}] for issue in issues}
    solutions = [{"issue_id": issue, "approach": "write", "tasks": tasks[issue]} for issue in issues]
    yield {"task": f"SOLVE-{number}", "result": {"solutions": solutions}}


def _configure(repo: Repo, agent: str, settings: str) -> None:
    text = f'[run]\nagent = "mine"\nconcurrency = 9\n[project]\ntest = "true"\n[agents.mine]\n{agent}\n{settings}'
    (repo.path / "iterdev.toml").write_text(text, encoding="utf-8")


def create_issues(repo: Repo, count: int, *more: str) -> list[str]:
    """GH-1 and so on, in the tracker."""
    names = [f"GH-{number}" for number in range(1, count + 1)]
    for name in names:
        done = repo.iterdev("issue", "init", name, "--title", f"Problem of {name}", *more)
        assert done.returncode == 0, done.stderr
    return names


def status_of_issues(repo: Repo) -> dict[str, str]:
    listed = json.loads(repo.iterdev("issue", "list", "--json").stdout)["issues"]
    over = json.loads(repo.iterdev("issue", "history", "--json").stdout)["issues"]
    return {issue["id"]: issue["status"] for issue in (*listed, *over)}
