"""Scripts: which rule is chosen, what fills the placeholders, and what is wrong with a script."""

import json
import re
from pathlib import Path

import pytest

from iterdev.agents.scripted.script import Call, Fail, Player, Rule, Script, Step, completed, load
from iterdev.core.errors import UserError
from iterdev.core.limits.agent_failures import FailureKind

PAGE = Path(__file__).parents[3] / "docs" / "scripted-agent.md"
HELLO = Rule(name="hello", steps=(Step(say="hello"),))
DEV = Rule(role="developer", steps=(Step(say="{role} works on {task}"),))
FIX = Rule(task="DEV-fix-*", steps=(Step(say="fixing {task}"),))


def said(script: Script, prompt: str = "", task: str = "DEV-001", role: str = "developer") -> tuple[str, ...] | None:
    choice = script.choose(prompt, task=task, role=role, attempt=1)
    return choice and choice[0].steps[0].filled(choice[1]).lines


def problem_of(text: str, folder: Path, player: Player = "agent") -> str:
    path = folder / "script.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load(path, player)
    assert str(path) in caught.value.message
    assert str(path) in (caught.value.hint or "")
    return caught.value.message


def test_the_first_rule_that_matches_is_chosen() -> None:
    script = Script(rules=(HELLO, FIX, DEV))

    assert said(script) == ("developer works on DEV-001",)
    assert said(script, task="DEV-fix-1") == ("fixing DEV-fix-1",)
    assert said(script, task="REVIEW-001", role="reviewer") is None


def test_all_selectors_must_match() -> None:
    rule = Rule(task="DEV-*", role="developer", attempt=1, match="urgent", steps=(Step(say="now"),))
    script = Script(rules=(rule,))

    assert said(script, "It is urgent.") == ("now",)
    assert said(script) is None
    assert said(script, "It is urgent.", role="tester") is None
    assert script.choose("It is urgent.", task="DEV-001", role="developer", attempt=2) is None


def test_a_rule_without_selectors_matches_everything() -> None:
    assert said(Script(rules=(Rule(steps=(Step(say="any"),)),)), "Hm.", task="", role="") == ("any",)


def test_a_scenario_that_is_named_wins_and_the_last_name_counts() -> None:
    script = Script(rules=(DEV, HELLO, Rule(name="bye", steps=(Step(say="bye {task}"),))))

    assert said(script, "[[scenario:hello]]") == ("hello",)
    assert said(script, "[[scenario:hello]] and then [[scenario:bye]]") == ("bye DEV-001",)
    assert said(script, "[[scenario:unknown]]") is None


def test_a_rule_that_has_only_a_name_is_never_chosen_without_it() -> None:
    assert said(Script(rules=(HELLO,))) is None


def test_named_groups_fill_placeholders_also_in_names_of_files_and_in_results() -> None:
    step = Step(write={"{name}.py": "# {name}\n"}, result={"files": ["{name}.py"], "braces": "{}"})
    rule = Rule(match=r"module (?P<name>\w+)(?P<more> please)?", steps=(step,))

    choice = Script(rules=(rule,)).choose("Write module till", task="", role="")

    assert choice
    chosen, placeholders = choice
    filled = chosen.steps[0].filled(placeholders)
    assert filled.write == {"till.py": "# till\n"}
    assert filled.result == {"files": ["till.py"], "braces": "{}"}
    assert placeholders["more"] == ""


def test_a_script_reads_the_same_from_toml_and_json(tmp_path: Path) -> None:
    (tmp_path / "script.toml").write_text(
        '[[rule]]\nrole = "developer"\n[[rule.step]]\ncall = { tool = "post", arguments = { text = "hi" } }\n'
        "[[rule.step]]\nfail = { status = 429, times = 2 }\nresult = { status = 'done' }\n",
        encoding="utf-8",
    )
    steps = [
        {"call": {"tool": "post", "arguments": {"text": "hi"}}},
        {"fail": {"status": 429, "times": 2}, "result": {"status": "done"}},
    ]
    same = {"rule": [{"role": "developer", "step": steps}]}
    (tmp_path / "script.json").write_text(json.dumps(same), encoding="utf-8")

    scripts = [load(tmp_path / name, "model") for name in ("script.toml", "script.json")]

    call, fail = Step(call=Call(tool="post", arguments={"text": "hi"})), Fail(status=429, times=2)
    expected = Script(rules=(Rule(role="developer", steps=(call, Step(fail=fail, result={"status": "done"}))),))
    assert scripts == [expected, expected]


def test_the_actions_of_a_rule_with_one_step_may_be_in_the_rule(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text('[[rule]]\ntask = "DEV-*"\nsay = ["one", "two"]\nresult = {}\n')

    assert load(path, "model").rules == (Rule(task="DEV-*", steps=(Step(say=("one", "two"), result={}),)),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rule]]\nsay = x\nexit = 0", "line 2"),
        ("[[rule]]\nsay = [", "at end of document"),
        ("", "it has no list of rules"),
        ("rule = 3", "it has no list of rules"),
        ('task = "DEV-001"\n[[rule]]', '"task" is outside of a rule'),
        ("[[rule]]\n[[rule]]\nwrit = {}", 'rule 2 has an unknown key "writ" (did you mean "write"?)'),
        ("[[rule]]\nxyzzy = 1", 'rule 1 has an unknown key "xyzzy"'),
        ("[[rule]]\nattempt = true", '"attempt" of rule 1: Expected `int | null`, got `bool`'),
        ("[[rule]]\nhang = 1", '"hang" of rule 1: Expected `bool`, got `int`'),
        ('[[rule]]\nsleep = "1"', '"sleep" of rule 1: Expected `float`, got `str`'),
        ("[[rule]]\nsay = 1", '"say" of rule 1: Expected `str | array`, got `int`'),
        ("[[rule]]\nwrite = {a = 1}", '"write" of rule 1: Expected `str`, got `int`'),
        ("[[rule]]\nresult = []", '"result" of rule 1: Expected `object | null`, got `array`'),
        ("[[rule]]\nfail = {}", '"fail" of rule 1: `fail` needs a `kind` or a `status`'),
        ('[[rule]]\nfail = {kind = "crashed"}', "must be one of: not logged in"),
        ("[[rule]]\nfail = {kind = 'overloaded', reset = 1}", "unknown field `reset`"),
        ('[[rule]]\nresult = {}\nresult_text = ""', "rule 1: a step has either `result` or `result_text`"),
        ("[[rule]]\nmatch = '('", '"(" is not a regular expression'),
        ("[[rule]]\nstep = []", '"step" of rule 1 must be a list of steps'),
        ("[[rule]]\nsay = 'hi'\nstep = [{}]", 'rule 1 has an unknown key "say"'),
        ("[[rule]]\nstep = [{}, {sya = 'hi'}]", 'step 2 of rule 1 has an unknown key "sya" (did you mean "say"?)'),
        ("[[rule]]\nstep = [{ task = 'A' }]", 'step 1 of rule 1 has an unknown key "task"'),
        ("[[rule]]\ncut = true", '"cut" of rule 1 is only for the scripted model'),
    ],
)
def test_what_is_wrong_with_a_script_is_explained(text: str, problem: str, tmp_path: Path) -> None:
    assert problem in problem_of(text, tmp_path)


def test_what_only_the_agent_can_play_is_rejected_for_the_model(tmp_path: Path) -> None:
    problem = problem_of("[[rule]]\nattempt = 2\n[[rule.step]]\nflood = 9\n", tmp_path, "model")

    assert '"attempt" of rule 1 is only for the scripted agent' in problem
    assert '"flood" of step 1 of rule 1 is only for the scripted agent' in problem


def test_all_problems_of_a_script_are_reported_at_once(tmp_path: Path) -> None:
    problem = problem_of("[[rule]]\nsey = []\n[[rule]]\nexit = 'no'", tmp_path)

    assert '"sey" (did you mean "say"?)' in problem
    assert '"exit" of rule 2' in problem


def test_a_script_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.toml.* does not exist"):
        load(tmp_path / "missing.toml", "model")


@pytest.mark.parametrize(
    ("fail", "kind", "status"),
    [
        (Fail(kind=FailureKind.limited), FailureKind.limited, 429),
        (Fail(status=403), FailureKind.not_logged_in, 403),
        (Fail(status=500), FailureKind.overloaded, 500),
        (Fail(kind=FailureKind.too_long, status=400), FailureKind.too_long, 400),
    ],
)
def test_a_failure_has_a_kind_and_a_status(fail: Fail, kind: FailureKind, status: int) -> None:
    assert (fail.failure_kind, fail.http_status) == (kind, status)


def test_a_result_of_a_task_has_the_usual_members() -> None:
    assert completed({"findings": "Done."}, "DEV-001") == {
        "id": "DEV-001",
        "status": "completed",
        "findings": "Done.",
        "error": "",
    }
    assert completed({"status": "done"}, "") == {"status": "done"}


def test_the_reference_page_names_every_key_and_its_examples_are_scripts(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)

    assert all(f"`{key}" in page for key in (*Step.__struct_fields__, *Rule.__struct_fields__[1:]))
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.toml").write_text(example, encoding="utf-8")
        load(tmp_path / f"{number}.toml", "model" if "# the scripted model" in example else "agent")
    assert len(examples) == 3
