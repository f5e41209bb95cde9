"""Which turn of a script is played, and how scripts are read."""

import json
from pathlib import Path

import pytest
from tests.core.conftest import Story, a_design

from iterdev.conformance.model.script import DEFAULT, OVER, Call, Fail, Rule, Script, Turn, load
from iterdev.core.errors import UserError
from iterdev.core.prompts import Surroundings, render
from iterdev.core.results import decode
from iterdev.core.session import events
from iterdev.core.types import Pipeline

HELLO = Rule(name="hello", turns=(Turn(say="hello"),))
DEV = Rule(role="developer", turns=(Turn(say="{role} works on {task}"),))
FIX = Rule(task="DEV-fix-*", turns=(Turn(say="fixing {task}"),))


def prompt(task: str = "DEV-001", role: str = "developer") -> str:
    return f"# {task}: Add it\n\nYou are the {role} of a development team.\n\nDo it well.\n"


def said(script: Script, text: str) -> str | None:
    chosen = script.choose(text)
    return chosen and chosen.rule.turn(0).filled(chosen.words).say


def test_the_first_rule_that_fits_the_prompt_is_chosen() -> None:
    script = Script(rules=(HELLO, FIX, DEV))

    assert said(script, prompt()) == "developer works on DEV-001"
    assert said(script, prompt("DEV-fix-1")) == "fixing DEV-fix-1"
    assert said(script, prompt("REVIEW-001", "reviewer")) is None


def test_task_role_and_match_must_all_fit() -> None:
    rule = Rule(task="DEV-*", role="developer", match="urgent", turns=(Turn(say="now"),))
    script = Script(rules=(rule,))

    assert said(script, prompt() + "It is urgent.") == "now"
    assert said(script, prompt()) is None
    assert said(script, prompt("DEV-001", "tester") + "It is urgent.") is None


def test_a_scenario_that_is_named_wins_and_the_last_name_counts() -> None:
    script = Script(rules=(DEV, HELLO, Rule(name="bye", turns=(Turn(say="bye"),))))

    assert said(script, prompt() + "[[scenario:hello]]") == "hello"
    assert said(script, "[[scenario:hello]] and then [[scenario:bye]]") == "bye"
    assert script.choose("[[scenario:unknown]]") is None


def test_a_rule_that_has_only_a_name_is_never_chosen_without_it() -> None:
    assert Script(rules=(HELLO,)).choose(prompt()) is None


def test_a_scenario_may_speak_of_the_task() -> None:
    script = Script(rules=(Rule(name="named", turns=(Turn(say="{task}!"),)),))

    assert said(script, prompt() + "[[scenario:named]]") == "DEV-001!"


def test_named_groups_fill_placeholders_also_in_names_of_files_and_in_results() -> None:
    turns = (Turn(write={"{name}.py": "# {name}\n"}), Turn(final={"files": ["{name}.py"], "braces": "{}"}))
    rule = Rule(match=r"module (?P<name>\w+)(?P<more> please)?", turns=turns)

    chosen = Script(rules=(rule,)).choose("Write module till")

    assert chosen
    first, second = (turn.filled(chosen.words) for turn in chosen.rule.turns)
    assert first.write == {"till.py": "# till\n"}
    assert second.final == {"files": ["till.py"], "braces": "{}"}
    assert chosen.words["more"] == ""


def test_an_answer_at_the_end_is_repeated_and_a_call_is_not() -> None:
    answers = Rule(name="a", turns=(Turn(run="true"), Turn(say="done")))
    calls = Rule(name="b", turns=(Turn(run="true"),))

    assert [answers.turn(step).say for step in (1, 2, 9)] == ["done"] * 3
    assert calls.turn(1) is OVER


def test_the_rules_of_one_script_come_before_those_of_the_other() -> None:
    mine = Script(rules=(Rule(role="developer", turns=(Turn(say="mine"),)),))

    assert said(mine.then(load(DEFAULT)), prompt()) == "mine"
    assert said(mine.then(load(DEFAULT)), "[[scenario:prose]]") == "All is well."


def test_a_script_reads_the_same_from_toml_and_json(tmp_path: Path) -> None:
    (tmp_path / "script.toml").write_text(
        '[[rule]]\nrole = "developer"\n[[rule.turn]]\ncall = { tool = "post", arguments = { text = "hi" } }\n'
        "[[rule.turn]]\nfail = { status = 429, times = 2 }\nfinal = { status = 'done' }\n",
        encoding="utf-8",
    )
    turns = [
        {"call": {"tool": "post", "arguments": {"text": "hi"}}},
        {"fail": {"status": 429, "times": 2}, "final": {"status": "done"}},
    ]
    same = {"rule": [{"role": "developer", "turn": turns}]}
    (tmp_path / "script.json").write_text(json.dumps(same), encoding="utf-8")

    scripts = [load(tmp_path / name) for name in ("script.toml", "script.json")]

    call, fail = Turn(call=Call(tool="post", arguments={"text": "hi"})), Fail(status=429, times=2)
    expected = Script(rules=(Rule(role="developer", turns=(call, Turn(fail=fail, final={"status": "done"}))),))
    assert scripts == [expected, expected]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rule = [", "Invalid"),
        ("[[rule]]\nname = 'x'\nturn = []\n", "length"),
        ("[[rule]]\nname = 'x'\nturn = [{ shout = 'hi' }]\n", "shout"),
        ("[[rule]]\nturn = [{ say = 'hi' }]\n", "a rule needs a name, a task, a role or a match"),
        ("[[rule]]\nmatch = '('\nturn = [{ say = 'hi' }]\n", '"(" is not a regular expression'),
        ("[[rule]]\nname = 'x'\nturn = [{ run = 'ls', read = 'x' }]\n", "one thing, not read and run"),
    ],
)
def test_what_is_wrong_with_a_script_is_told_with_its_path(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(UserError) as caught:
        load(path)

    assert str(path) in caught.value.message
    assert problem in caught.value.message
    assert caught.value.hint


def test_a_script_that_is_not_there_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.toml"):
        load(tmp_path / "missing.toml")


def test_a_turn_cannot_do_two_things_in_python_either() -> None:
    with pytest.raises(ValueError, match="one thing, not write and final"):
        Turn(write={"a": "b"}, final={})


def test_the_default_script_has_an_answer_for_every_task_of_a_sprint() -> None:
    script, story = load(DEFAULT), Story(pipeline=Pipeline.sprint)
    around = Surroundings(session_dir="/s", board_path="/s/board")
    started: dict[str, str] = {}

    for done in (events.Done(findings="one module", design=a_design()), events.Done(findings="written"), None):
        started |= {name: render(story.state, story.row(name), around) for name in story.goes_on()}
        if done:
            story.does(list(started)[-1], done)

    assert started.keys() == {"DESIGN-001", "DEV-001", "REVIEW-001", "VERIFY-001"}
    for name, text in started.items():
        chosen = script.choose(text)
        assert chosen
        last = chosen.rule.turns[-1].filled(chosen.words).final
        assert last
        decode(json.dumps(last), role=story.row(name).role, task=story.row(name).id)
