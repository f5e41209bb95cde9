"""The configuration of a host: defaults, and every problem of a document at once."""

import tomllib

import pytest

from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.core import host_settings
from iterdev.core.errors import UserError
from iterdev.core.host_settings import HostAgentSettings, HostRepository, HostSettings
from iterdev.core.settings import DEFAULT_KEY

WHOLE = """
name = "builder-1"
key = "/etc/iterdev/remote.key"
profile = "team"

[agents.claude]
slots = 4

[agents.mine]
command = ["python3", "agent.py"]

[repositories."git@example.com:shop.git"]
belongings = "/srv/iterdev/shop"
"""


def read(text: str) -> HostSettings:
    return host_settings.read(tomllib.loads(text), KNOWN_AGENTS)


def test_a_whole_document_is_read() -> None:
    assert read(WHOLE) == HostSettings(
        name="builder-1",
        key="/etc/iterdev/remote.key",
        profile="team",
        agents={"claude": HostAgentSettings(slots=4), "mine": HostAgentSettings(command=("python3", "agent.py"))},
        repositories={"git@example.com:shop.git": HostRepository(belongings="/srv/iterdev/shop")},
    )


def test_an_empty_document_offers_nothing() -> None:
    assert read("") == HostSettings(key=DEFAULT_KEY, profile="default", agents={}, repositories={})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nmae = 'x'", 'unknown key "nmae" (did you mean "name"?)'),
        ("name = 1", "name: Expected `str`, got `int`"),
        ("agents = 1", '[agents] is "1", expected a table'),
        ("[agents.claude]\nslots = 0", "[agents.claude] slots is 0, and at least 1 is needed"),
        ("[agents.claude]\nslot = 2", '[agents.claude] unknown key "slot" (did you mean "slots"?)'),
        ("[agents.other]\nslots = 2", "[agents.other] needs exactly one of"),
        ("[repositories.'u']\nbelonging = 'x'", 'unknown key "belonging" (did you mean "belongings"?)'),
    ],
)
def test_a_problem_is_named_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        read(text)

    assert problem in caught.value.message


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(UserError) as caught:
        read("name = 1\n[agents.claude]\nslots = 0\nmodle = 'x'\n")

    assert caught.value.message.count(";") == 2
