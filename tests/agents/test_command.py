import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from iterdev.agents.command import CommandAgent
from iterdev.agents.common.streams import LINE_LENGTH
from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    Conversation,
    Process,
    Reply,
    Said,
    Spawn,
    Spent,
)
from iterdev.core.errors import HostError
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage

Play = Callable[..., tuple[list[Reply], list[AgentEvent]]]

PYTHON = (sys.executable, "-I", "-S")
MIB = 1024 * 1024


def program(code: str) -> CommandAgent:
    return CommandAgent("mine", (*PYTHON, "-c", f"import json, os, sys, time\n{code}"), root="/nonexistent")


def executable(path: Path, text: str = "#!/bin/sh\necho '{}'\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


async def appeared(path: anyio.Path) -> None:
    with anyio.fail_after(30):
        while not await path.exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.01)


async def answer(conversation: Conversation, prompt: str, replies: list[Reply]) -> None:
    replies.append(await conversation.send(prompt))


def said(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Said)]


@pytest.mark.parametrize("command", [("sh", "-c", "true"), (sys.executable,), ("tools/agent",), ("./tools/agent",)])
def test_a_program_on_the_path_or_in_the_repository_is_found(command: tuple[str, ...], tmp_path: Path) -> None:
    executable(tmp_path / "tools" / "agent")

    probe = CommandAgent("mine", command, root=str(tmp_path)).probe()

    assert probe.installed
    assert not probe.problem


@pytest.mark.parametrize(
    ("command", "problem", "hint"),
    [
        (("no-such-program",), '"no-such-program"', "install no-such-program, or fix"),
        (("tools/absent",), '"tools/absent"', "[agents.mine]"),
        (("tools/plain.py",), "is not executable", "chmod +x tools/plain.py"),
    ],
)
def test_a_program_that_cannot_be_started_is_explained(
    command: tuple[str, ...], problem: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "plain.py").write_text("")

    probe = CommandAgent("mine", command, root=str(tmp_path)).probe()

    assert not probe.installed
    assert problem in probe.problem
    assert hint in probe.hint


def test_a_program_gets_the_environment_of_interface_3(play: Play, assignment: Assignment) -> None:
    agent = program(
        "json.dump([dict(os.environ), sys.stdin.read(), os.getcwd()], open('input.json', 'w')); print('{}')"
    )
    work = replace(assignment, issues=("ISS-1", "ISS-2"), environment={**assignment.environment, "EXTRA": "1"})

    play(agent, "Fix the ö.", given=work)

    variables, prompt, folder = json.loads(Path(work.workspace, "input.json").read_text())
    assert (prompt, folder) == ("Fix the ö.", work.workspace)
    assert variables["EXTRA"] == "1"
    assert {name: value for name, value in variables.items() if name.startswith("ITERDEV_")} == {
        "ITERDEV_TASK": "DEV-001",
        "ITERDEV_ROLE": "developer",
        "ITERDEV_ATTEMPT": "1",
        "ITERDEV_SESSION": "ids-demo-20260101",
        "ITERDEV_SESSION_DIR": work.session_dir,
        "ITERDEV_ISSUES": "ISS-1;ISS-2",
        "ITERDEV_RESULT": work.result_path,
    }


def test_every_turn_is_a_new_process_with_the_next_attempt_number_and_the_task(
    play: Play, assignment: Assignment
) -> None:
    agent = program("""print(json.dumps({"attempt": os.environ["ITERDEV_ATTEMPT"], "prompt": sys.stdin.read()}))""")

    replies, _ = play(agent, "one", "two", "three", given=replace(assignment, attempt=2))

    assert replies == [
        Answer(body=json.dumps({"attempt": attempt, "prompt": prompt}).encode())
        for attempt, prompt in (("2", "one"), ("3", "one\n\n---\n\ntwo"), ("4", "one\n\n---\n\nthree"))
    ]


def test_the_result_file_counts_before_standard_output(play: Play) -> None:
    agent = program("""open(os.environ["ITERDEV_RESULT"], "w").write('{"id": 1}'); print('{"id": 2}')""")

    replies, _ = play(agent)

    assert replies == [Answer(body=b'{"id": 1}')]


def test_a_result_file_may_begin_with_a_byte_order_mark(play: Play) -> None:
    agent = program("""open(os.environ["ITERDEV_RESULT"], "w", encoding="utf-8-sig").write('{"id": "é"}')""")

    replies, _ = play(agent)

    assert replies == [Answer(body='{"id": "é"}'.encode())]


@pytest.mark.parametrize("content", ["", " \n"])
def test_without_a_result_file_the_last_object_on_standard_output_counts(content: str, play: Play) -> None:
    agent = program(f"""
open(os.environ["ITERDEV_RESULT"], "w").write({content!r})
print('{{"id": 1}}\\nthinking {{hard}}\\n{{"id":\\n  {{"deep": 2}}}} done.')""")

    replies, _ = play(agent)

    assert replies == [Answer(body=b'{"id":\n  {"deep": 2}}')]


def test_a_result_of_an_earlier_turn_does_not_count(play: Play) -> None:
    agent = program("""os.environ["ITERDEV_ATTEMPT"] == "1" and open(os.environ["ITERDEV_RESULT"], "w").write("{}")""")

    replies, _ = play(agent, "one", "two")

    assert replies[0] == Answer(body=b"{}")
    assert isinstance(replies[1], AgentFailure)
    assert replies[1].kind is FailureKind.silent


def test_the_usage_in_a_result_is_reported(play: Play) -> None:
    agent = program("""print('{"usage": {"input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5}}')""")

    replies, events = play(agent)

    usage = Usage(input_tokens=7, output_tokens=2, cost_usd=0.5)
    assert isinstance(replies[0], Answer)
    assert replies[0].usage == usage
    assert [event for event in events if isinstance(event, Spent)] == [Spent(usage)]


def test_the_usage_of_a_turn_that_failed_is_reported_too(play: Play) -> None:
    agent = program("""print('{"usage": {"input_tokens": 7, "cost_usd": 0.5}}'); raise SystemExit(3)""")

    replies, events = play(agent)

    assert isinstance(replies[0], AgentFailure)
    assert [event for event in events if isinstance(event, Spent)] == [Spent(Usage(input_tokens=7, cost_usd=0.5))]


@pytest.mark.parametrize("usage", ['"much"', "null", "{}"])
def test_a_result_with_an_odd_usage_is_still_an_answer(usage: str, play: Play) -> None:
    replies, _ = play(program(f"""print('{{"usage": {usage}}}')"""))

    assert isinstance(replies[0], Answer)
    assert replies[0].usage == Usage()


def test_an_exit_code_is_a_failure_even_with_a_result(play: Play) -> None:
    agent = program("""print("{}"); print("first\\nout of\\n\\nmoney", file=sys.stderr); sys.exit(7)""")

    replies, _ = play(agent)

    message = 'The agent "mine" exited with code 7: first / out of / money'
    assert replies == [AgentFailure(kind=FailureKind.crashed, message=message)]


def test_a_long_complaint_is_cut_to_its_end(play: Play) -> None:
    replies, _ = play(program("""sys.exit("x" * 100_000 + "the end")"""))

    assert isinstance(replies[0], AgentFailure)
    assert replies[0].message.endswith("xthe end")
    assert len(replies[0].message) < 1_100


def test_a_long_complaint_is_cut_between_words(play: Play) -> None:
    replies, _ = play(program("""sys.exit("a-secret-word " * 200)"""))

    assert isinstance(replies[0], AgentFailure)
    assert set(replies[0].message.partition(": ")[2].split()) == {"a-secret-word"}


def test_a_signal_is_named(play: Play) -> None:
    replies, _ = play(program("os.kill(os.getpid(), 9)"))

    assert replies == [AgentFailure(kind=FailureKind.crashed, message='The agent "mine" was ended by SIGKILL')]


def test_a_program_without_a_result_is_silent(play: Play) -> None:
    replies, _ = play(program("print('done')"))

    assert isinstance(replies[0], AgentFailure)
    assert replies[0].kind is FailureKind.silent


def test_a_program_that_cannot_be_started_has_crashed(play: Play) -> None:
    replies, _ = play(CommandAgent("mine", ("no-such-program",), root="/nonexistent"))

    assert isinstance(replies[0], AgentFailure)
    assert replies[0].kind is FailureKind.crashed
    assert "no-such-program" in replies[0].message


def test_a_host_that_cannot_start_a_program_is_no_defect(assignment: Assignment) -> None:
    def refuse(
        argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
    ) -> AbstractAsyncContextManager[Process]:
        raise HostError("no more processes")

    async def turn() -> Reply:
        async with program("").open(assignment, spawn=refuse, watch=lambda _: None) as conversation:
            return await conversation.send("one")

    message = 'The agent "mine" could not be started: no more processes'
    assert anyio.run(turn) == AgentFailure(kind=FailureKind.crashed, message=message)


def test_a_program_that_takes_too_long_is_ended(play: Play, assignment: Assignment) -> None:
    work = replace(assignment, limit=0.2)

    replies, _ = play(program("print('{}', flush=True); time.sleep(1000)"), given=work)

    assert replies == [AgentFailure(kind=FailureKind.timed_out, message='The agent "mine" ran longer than 0.2 s')]


def test_the_time_limit_is_for_all_turns_together(spawn: Spawn, assignment: Assignment) -> None:
    starts: list[float | None] = []

    def counted(
        argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
    ) -> AbstractAsyncContextManager[Process]:
        starts.append(limit)
        return spawn(argv, cwd=cwd, env=env, limit=limit)

    async def two_turns() -> list[Reply]:
        agent, work = program("time.sleep(1000)"), replace(assignment, limit=0.2)
        async with agent.open(work, spawn=counted, watch=lambda _: None) as conversation:
            return [await conversation.send("one"), await conversation.send("two")]

    replies = anyio.run(two_turns)

    assert [reply.kind for reply in replies if isinstance(reply, AgentFailure)] == [FailureKind.timed_out] * 2
    assert len(starts) == 1


def test_every_line_of_both_streams_is_passed_on(play: Play) -> None:
    agent = program("""
sys.stdout.buffer.write(b"one\\n\\ntw\\xff\\r\\n" + b"y" * 100_000 + b"\\n{}")
sys.stderr.write("warning\\n")""")

    _, events = play(agent)

    lines = said(events)
    assert "warning" in lines
    assert [line for line in lines if line != "warning"] == ["one", "", "tw�", "y" * LINE_LENGTH, "{}"]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "time.sleep(0.2); n = len(sys.stdin.read()); print(json.dumps({'read': n}))", id="reads at the end"
        ),
        pytest.param("print('x' * 200_000); print(json.dumps({'read': len(sys.stdin.read())}))", id="writes first"),
    ],
)
def test_a_huge_prompt_arrives_whole(code: str, play: Play) -> None:
    replies, _ = play(program(code), "p" * 2 * MIB)

    assert replies == [Answer(body=b'{"read": 2097152}')]


@pytest.mark.parametrize("code", ["print('{}')", "os.close(0); time.sleep(0.2); print('{}')"])
def test_a_program_need_not_read_its_prompt(code: str, play: Play) -> None:
    replies, _ = play(program(code), "p" * 2 * MIB)

    assert replies == [Answer(body=b"{}")]


def test_a_flood_of_output_does_not_hide_the_result(play: Play) -> None:
    agent = program("""
for _ in range(20): print(("z" * 1023 + "\\n") * 1024, end="")
print('{"id": 1}')""")

    replies, events = play(agent)

    assert replies == [Answer(body=b'{"id": 1}')]
    assert len(events) == 20 * 1024 + 1


def test_a_prompt_interrupts_the_running_turn(spawn: Spawn, assignment: Assignment) -> None:
    agent = program("""
if os.environ["ITERDEV_ATTEMPT"] == "1": open("ready", "w").close(); time.sleep(1000)
print('{"attempt": %s}' % os.environ["ITERDEV_ATTEMPT"])""")
    replies: list[Reply] = []

    async def interrupt() -> None:
        async with (
            agent.open(assignment, spawn=spawn, watch=lambda _: None) as conversation,
            anyio.create_task_group() as group,
        ):
            group.start_soon(answer, conversation, "one", replies)
            await appeared(anyio.Path(assignment.workspace, "ready"))
            await answer(conversation, "two", replies)

    anyio.run(interrupt)

    interrupted = AgentFailure(kind=FailureKind.timed_out, message='The agent "mine" was interrupted')
    assert replies == [interrupted, Answer(body=b'{"attempt": 2}')]


def test_leaving_a_conversation_ends_its_running_turn(spawn: Spawn, assignment: Assignment) -> None:
    agent = program("open('pid.part', 'w').write(str(os.getpid())); os.rename('pid.part', 'pid'); time.sleep(1000)")
    pid = anyio.Path(assignment.workspace, "pid")
    replies: list[Reply] = []

    async def leave() -> None:
        async with anyio.create_task_group() as group:
            async with agent.open(assignment, spawn=spawn, watch=lambda _: None) as conversation:
                group.start_soon(answer, conversation, "one", replies)
                await appeared(pid)
            with pytest.raises(ProcessLookupError):
                os.kill(int(await pid.read_text()), 0)

    anyio.run(leave)

    assert [reply.kind for reply in replies if isinstance(reply, AgentFailure)] == [FailureKind.timed_out]


def test_a_command_uses_the_files_of_the_checkout_that_the_workspace_lacks(
    play: Play, assignment: Assignment, tmp_path: Path
) -> None:
    executable(tmp_path / "root" / "agent", '#!/bin/sh\necho "{\\"argument\\": \\"$1\\"}"\n')
    (tmp_path / "root" / "settings.toml").write_text("")

    replies, _ = play(CommandAgent("mine", ("./agent", "settings.toml"), root=str(tmp_path / "root")))

    assert replies == [Answer(body=f'{{"argument": "{tmp_path}/root/settings.toml"}}'.encode())]


def test_a_command_takes_files_of_the_base_or_of_the_checkout_and_never_of_the_workspace(
    play: Play, assignment: Assignment, tmp_path: Path
) -> None:
    for folder in ("base", "root", "workspace"):
        executable(tmp_path / folder / "tools" / "agent", f'#!/bin/sh\necho \'{{"from": "{folder}"}}\'\n')
    agent = CommandAgent("mine", ("tools/agent",), root=str(tmp_path / "root"))

    of_checkout, _ = play(agent)
    of_base, _ = play(agent, given=replace(assignment, programs=str(tmp_path / "base")))

    assert of_checkout == [Answer(body=b'{"from": "root"}')]
    assert of_base == [Answer(body=b'{"from": "base"}')]
