"""The environment of an agent's program."""

import pytest
from msgspec.structs import replace

from iterdev.agents.common.environment import agent_environment
from iterdev.agents.contract import Assignment, ToolServer


@pytest.mark.parametrize(
    ("own", "direct"), [({}, "127.0.0.1,localhost"), ({"NO_PROXY": "a.b"}, "a.b,127.0.0.1,localhost")]
)
def test_the_program_finds_the_tools_and_asks_no_proxy_for_the_way(
    assignment: Assignment, own: dict[str, str], direct: str
) -> None:
    tools = ToolServer(url="http://127.0.0.1:1/mcp", token="the-token")

    variables = agent_environment(replace(assignment, tools=tools, environment=own), 1)

    assert (variables["ITERDEV_TOOLS_URL"], variables["ITERDEV_TOOLS_TOKEN"]) == (tools.url, tools.token)
    assert (variables["NO_PROXY"], variables["no_proxy"]) == (direct, "127.0.0.1,localhost")
