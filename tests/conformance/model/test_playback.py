"""Which turn of a script the model plays."""

import json
from pathlib import Path

from tests.conformance.default_script import default_script
from tests.core.conftest import Story, a_design, done

import iterdev
from iterdev.agents.scripted.script import Call, Fail, Rule, Script, Step, Usage, load
from iterdev.conformance.model.messages import Author, Message, ModelRequest, Tool
from iterdev.conformance.model.playback import OVER, PlayedTurn, turn_at, turn_for
from iterdev.core.prompts import PromptContext
from iterdev.core.results import decode
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT

SHELL = Tool(name="bash")


def prompt(task: str = "DEV-001", role: str = "developer") -> str:
    return f"# {task}: Add it\n\nYou are the {role} of a development team.\n\nDo it well.\n"


def played(script: Script, text: str, *answers: str) -> PlayedTurn:
    history = [Message(author=Author.user, text=text)]
    for answer in answers:
        history += [Message(author=Author.model, text=answer), Message(author=Author.user, text="Go on.")]
    return turn_for(script, ModelRequest(model="m", streaming=False, history=tuple(history), tools=(SHELL,)))


def test_task_and_role_are_read_from_the_prompt() -> None:
    script = Script(rules=(Rule(task="DEV-*", role="developer", steps=(Step(say="{role} works on {task}"),)),))

    assert played(script, prompt()).response.text == "developer works on DEV-001"
    assert played(script, prompt(role="tester")).turn.fail == Fail(
        status=400, message=f"No rule of the script matches the prompt that ends with {prompt(role='tester')!r}."
    )


def test_an_answer_at_the_end_is_repeated_and_a_call_is_not() -> None:
    answers = Rule(name="a", steps=(Step(run="true"), Step(say="done")))
    calls = Rule(name="b", steps=(Step(run="true"),))

    assert [turn_at(answers, number).say for number in (1, 2, 9)] == ["done"] * 3
    assert turn_at(calls, 1) is OVER


def test_a_step_is_one_turn_for_each_tool_and_one_for_its_result() -> None:
    call = Call(tool="post")
    step = Step(
        say="Working.",
        sleep=1,
        read="a",
        write={"b": "1"},
        append={"c/d": "it's"},
        delete=("e f",),
        run="ls",
        call=call,
        result={},
        usage=Usage(input=7),
        cut=True,
    )

    turns = [turn_at(Rule(steps=(step, Step(say="end"))), number) for number in range(8)]

    assert turns == [
        Step(say="Working.", sleep=1, read="a", usage=Usage(input=7)),
        Step(write={"b": "1"}),
        Step(run="mkdir -p $(dirname c/d); printf %s 'it'\"'\"'s' >> c/d"),
        Step(run="rm -rf -- 'e f'"),
        Step(run="ls"),
        Step(call=call),
        Step(result={}, cut=True),
        Step(say="end"),
    ]


def test_the_result_of_a_task_has_the_usual_members_and_others_stay_as_they_are() -> None:
    script = Script(rules=(Rule(steps=(Step(result={"n": 1}),)),))

    assert json.loads(played(script, prompt()).response.text)["id"] == "DEV-001"
    assert json.loads(played(script, "Do it.").response.text) == {"n": 1}


def test_a_malformed_result_is_said_as_it_is() -> None:
    script = Script(rules=(Rule(steps=(Step(say=("one", "two"), result_text='{"id": '),)),))

    assert played(script, prompt()).response.text == 'one\ntwo\n{"id": '


def test_the_first_rule_that_matches_is_played() -> None:
    mine = Rule(role="developer", steps=(Step(say="mine"),))
    script = Script(rules=(mine, *default_script().rules))

    assert played(script, prompt()).response.text == "mine"
    assert played(script, "[[scenario:prose]]").response.text == "All is well."


def test_the_script_of_the_demo_can_be_played_by_the_model_too() -> None:
    script = load(Path(iterdev.__file__).with_name("sample") / "team.toml", "model")

    last = played(script, prompt(), "Adding the parameter ...").response.text

    assert json.loads(last)["findings"] == "total() and receipt() take a discount; 2 tests added."


def test_the_default_script_has_an_answer_for_every_task_of_a_sprint() -> None:
    script, story = default_script(), Story(pipeline=Pipeline.sprint)
    context = PromptContext(board="discoveries.ndjson")
    started: dict[str, str] = {}

    for outcome in (done("one module", design=a_design()), done("written"), None):
        started |= {name: story.prompt(name, context) for name in story.goes_on()}
        if outcome:
            story.does(list(started)[-1], outcome)

    assert started.keys() == {"DESIGN-001", "DEV-001", "REVIEW-001", "VERIFY-001"}
    for name, text in started.items():
        last = played(script, text, "working", "done").turn.result
        assert last
        decode(json.dumps(last), kind=DEVELOPMENT.roles[story.row(name).role].result, task=story.row(name).id)
