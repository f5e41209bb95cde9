"""Messages by programs and to a server on this machine, with what can go wrong there."""

import hmac
import json
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import anyio
import msgspec
import pytest
from tests.webhook_server import answering, server

from iterdev.core.errors import HostError
from iterdev.core.settings import NotifySettings
from iterdev.core.types import SessionId
from iterdev.core.views.notifications import Notification
from iterdev.host.notifications.channel import Channel, Misconfigured, channels
from iterdev.host.notifications.programs import DesktopChannel
from iterdev.host.notifications.webhook import SlackChannel, WebhookChannel, signature
from iterdev.host.processes.spawn import Supervisor

MESSAGE = Notification(
    session=SessionId("ids-x-20260308"),
    kind="question",
    text="Run <these> 4 tasks?",
    commands=("iterdev answer ids-x-20260308 plan approve",),
    needs={"question plan 1.000": "Run these 4 tasks?"},
)


def send(channel: Channel, limit: float = 20) -> None:
    async def sending() -> None:
        with anyio.fail_after(limit):
            await channel.send(MESSAGE)

    anyio.run(sending)


def test_a_webhook_gets_json_with_a_signature_of_time_and_body() -> None:
    with server(answering(204)) as (address, received):
        send(WebhookChannel(address, "secret", now=lambda: 1_700_000_000.4))

    ((headers, body),) = received
    document = json.loads(body)
    assert (document["session"], document["kind"], document["state"]) == (MESSAGE.session, "question", "open")
    assert (document["text"], document["commands"]) == (MESSAGE.text, list(MESSAGE.commands))
    assert headers["X-Iterdev-Timestamp"] == "1700000000"
    assert headers["X-Iterdev-Signature"] == f"sha256={signature('secret', '1700000000', body)}"


def test_a_signature_is_of_the_time_and_of_the_body() -> None:
    others = (("secret", "18", b"{}"), ("secret", "17", b"[]"), ("other", "17", b"{}"))

    assert signature("secret", "17", b"{}") == hmac.digest(b"secret", b"17.{}", "sha256").hex()
    assert signature("secret", "17", b"{}") not in {signature(*other) for other in others}


def test_without_a_secret_there_is_no_signature_and_a_second_try_has_the_same_id() -> None:
    with server(answering(200)) as (address, received):
        channel = WebhookChannel(address, "")
        send(channel)
        send(channel)

    (first, _), (second, _) = received
    assert "X-Iterdev-Signature" not in first
    assert first["X-Iterdev-Delivery"] == second["X-Iterdev-Delivery"]


def test_slack_gets_a_text_in_which_nothing_is_a_link() -> None:
    with server(answering(200)) as (address, received):
        send(SlackChannel(f"{address}/services/T0"))

    assert json.loads(received[0][1])["text"].startswith("iterdev: question\nRun &lt;these&gt; 4 tasks?\n")


def reset(handler: BaseHTTPRequestHandler) -> None:
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answering(500), "answered with 500"),
        (answering(404), "answered with 404"),
        (answering(302, Location="http://127.0.0.1:1/elsewhere"), "answered with 302"),
        (answering(307, Location="http://127.0.0.1:1/elsewhere"), "answered with 307"),
        (reset, "No answer"),
        (lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"), "No answer"),
    ],
    ids=["500", "404", "redirect", "redirect of a POST", "reset", "nonsense"],
)
def test_what_goes_wrong_is_named_without_the_address(
    answer: Callable[[BaseHTTPRequestHandler], None], said: str
) -> None:
    with server(answer) as (address, received), pytest.raises(HostError, match=said) as failed:
        send(SlackChannel(f"{address}/services/SECRET"))

    assert "SECRET" not in str(failed.value)
    assert len(received) == 1


def test_an_answer_without_end_is_not_read() -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        answering(200)(handler)
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    with server(endless) as (address, received):
        send(WebhookChannel(address, ""))

    assert len(received) == 1


def test_a_server_that_does_not_answer_is_left_behind() -> None:
    over = Event()
    with server(lambda _: over.wait(20) and None) as (address, _):
        with pytest.raises(TimeoutError):
            send(WebhookChannel(address, ""), limit=0.2)
        over.set()


def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(HostError, match="No answer from"):
        send(WebhookChannel("http://127.0.0.1:1/", ""))


def programs(tmp_path: Path, name: str, script: str) -> dict[str, str]:
    """The environment in which a program of that name does what is written into it."""
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin", "MY_KEY": "k", "OTHER_KEY": "o", "DISPLAY": ":7"}


def send_by(settings: NotifySettings, folder: Path, environment: dict[str, str]) -> None:
    async def sending() -> None:
        async with Supervisor() as supervisor:
            (channel,) = channels(settings, supervisor.spawn, folder, lambda _: None, environment)
            assert not isinstance(channel, Misconfigured)
            await channel.send(MESSAGE)

    anyio.run(sending)


def test_a_command_gets_the_message_and_only_the_variables_that_are_named(tmp_path: Path) -> None:
    environment = programs(tmp_path, "mine", f'cat > {tmp_path}/got; echo "$1 $MY_KEY-$OTHER_KEY" > {tmp_path}/words')

    send_by(NotifySettings(command=(str(tmp_path / "mine"), "a b"), env=("MY_KEY",)), tmp_path, environment)

    document = msgspec.json.decode((tmp_path / "got").read_bytes())
    assert (document["kind"], document["text"]) == ("question", MESSAGE.text)
    assert (tmp_path / "words").read_text() == "a b k-\n"


@pytest.mark.parametrize(
    ("script", "said"), [("echo broken >&2; exit 3", "ended with 3: broken"), ("exit 1", "ended with 1")]
)
def test_a_command_that_fails_says_why(tmp_path: Path, script: str, said: str) -> None:
    environment = programs(tmp_path, "mine", script)

    with pytest.raises(HostError, match=said):
        send_by(NotifySettings(command=(str(tmp_path / "mine"),)), tmp_path, environment)


def test_the_desktop_is_told_by_notify_send(tmp_path: Path) -> None:
    environment = programs(tmp_path, "notify-send", f'printf "%s\\n" "$@" "$DISPLAY" > {tmp_path}/got')

    async def sending() -> None:
        async with Supervisor() as supervisor:
            await DesktopChannel(supervisor.spawn, tmp_path, environment, "linux").send(MESSAGE)

    anyio.run(sending)

    lines = (tmp_path / "got").read_text().splitlines()
    assert lines[:4] == ["--app-name=iterdev", "--", "iterdev: question", "Run &lt;these&gt; 4 tasks?"]
    assert lines[-1] == ":7"


def test_on_a_mac_the_text_is_an_argument_and_no_part_of_the_script(tmp_path: Path) -> None:
    environment = programs(tmp_path, "osascript", f'printf "%s\\n" "$@" > {tmp_path}/got')

    async def sending() -> None:
        async with Supervisor() as supervisor:
            await DesktopChannel(supervisor.spawn, tmp_path, environment, "darwin").send(MESSAGE)

    anyio.run(sending)

    lines = (tmp_path / "got").read_text().splitlines()
    assert lines[6:8] == ["iterdev: question", "Run <these> 4 tasks?"]
    assert not any("tasks" in line for line in lines[:6])


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, 'the variable "HOOK" is not set'),
        ({"HOOK": "http://example.org/"}, 'the variable "HOOK" has no address with https://'),
        ({"HOOK": "file:///etc/passwd"}, 'the variable "HOOK" has no address with https://'),
    ],
)
def test_a_channel_without_a_usable_address_is_named_and_the_others_are_used(
    tmp_path: Path, environment: dict[str, str], problem: str
) -> None:
    settings = NotifySettings(terminal=True, slack="env:HOOK")

    terminal, slack = channels(settings, Supervisor().spawn, tmp_path, lambda _: None, environment)

    assert (isinstance(terminal, Misconfigured), slack) == (False, Misconfigured("slack", problem))


def test_the_terminal_gets_the_message_through_the_surface(tmp_path: Path) -> None:
    heard: list[str] = []
    (channel,) = channels(NotifySettings(terminal=True), Supervisor().spawn, tmp_path, heard.append, {})

    assert not isinstance(channel, Misconfigured)
    send(channel)

    assert heard == ["iterdev: question: Run <these> 4 tasks?"]
