"""The documentation keeps its promises: pages are fresh, links lead somewhere, what is named exists."""

import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.core import settings
from iterdev.core.results import Result
from iterdev.surfaces.cli.app import ALIASES, app
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.teams.development.roles import WORKERS, Role
from iterdev.teams.development.team import DEVELOPMENT

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")])
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_fresh() -> None:
    pages = generator().pages()

    stale = [path.name for path, text in pages.items() if text_of(path) != text]

    assert pages.keys() <= set(PAGES)
    assert stale == [], "run `make docs`"


def test_every_requirement_is_shown_by_a_test() -> None:
    page = generator().requirements()

    assert [name for name in generator().REQUIREMENTS if f"| {name} |" not in page] == []


@every_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(FENCE.sub("", text_of(page))) if "://" not in link]

    dead = [link for link in links if not leads_somewhere(page, link)]

    assert dead == []


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_command_and_option_named_exists(page: Path) -> None:
    known = {*app.list_commands(click.Context(app)), *ALIASES, "--version", "--help", "COMMAND"}

    calls = list(calls_in(text_of(page)))

    assert [words for words in calls if words[0] not in known] == []
    assert [words for words in calls if not is_in_its_group(words)] == []
    assert [(words[0], option) for words in calls for option in strange_options(words)] == []


def command_of(name: str) -> click.Command | None:
    return app.get_command(click.Context(app), name)


def options_of(command: click.Command) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts]


def is_in_its_group(words: list[str]) -> bool:
    group = command_of(words[0])
    if not isinstance(group, click.Group) or words[1:2] == [] or words[1] in options_of(group):
        return True
    return words[1] in {*group.list_commands(click.Context(group)), "--help", "COMMAND"}


def calls_in(text: str) -> Iterator[list[str]]:
    """The words after `iterdev` wherever it stands as something to type."""
    lines = [line for _, body in FENCE.findall(text) for line in body.splitlines()]
    for typed in (*lines, *SPAN.findall(FENCE.sub("", text))):
        if call := re.match(r"(?:\$ |hint: | )*iterdev +([^\s/].*)", typed):
            yield call[1].partition(" #")[0].split()


def strange_options(words: list[str]) -> list[str]:
    command = command_of(words[0])
    if isinstance(command, click.Group) and len(words) > 1:
        command = command.commands.get(words[1])
    if command is None:
        return []
    known = {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}
    named = (word.partition("=")[0] for word in words[1:] if word.startswith("-") and word.strip("-"))
    return [option for option in named if option not in known | {"--help", "-h"}]


def test_the_page_of_exit_codes_has_exactly_those_that_exist() -> None:
    listed = re.findall(r"^\| (\d+) \|", text_of(ROOT / "docs" / "exit-codes.md"), re.MULTILINE)

    assert sorted(map(int, listed)) == sorted(ExitCode)


@every_page
def test_every_exit_code_named_exists(page: Path) -> None:
    named = re.findall(r"(?:exit code|exits? with|exit status) (\d+)", text_of(page))

    assert set(map(int, named)) <= set(ExitCode)


@pytest.mark.parametrize(
    "name", ["README.md", "docs/agents.md", "docs/sandbox.md", "docs/tutorial.md", "src/iterdev/sample/iterdev.toml"]
)
def test_every_example_of_a_configuration_is_valid(name: str) -> None:
    text = text_of(ROOT / name)
    examples = [text] if name.endswith(".toml") else [body for kind, body in FENCE.findall(text) if kind == "toml"]

    read = [settings.read(tomllib.loads(example), DEVELOPMENT.workers, KNOWN_AGENTS) for example in examples]

    assert read
    assert all(found != settings.Settings() for found in read)


@pytest.mark.parametrize("role", WORKERS)
def test_the_fields_of_every_role_are_documented(role: Role) -> None:
    (row,) = re.findall(rf"^\| {role} \| (.*) \|$", text_of(ROOT / "docs" / "agents.md"), re.MULTILINE)

    documented = set(re.findall(r"`(\w+)`", row))

    assert documented == set(DEVELOPMENT.roles[role].result.__struct_fields__) - set(Result.__struct_fields__)


def test_the_fields_of_every_result_are_documented() -> None:
    spans = set(SPAN.findall(text_of(ROOT / "docs" / "agents.md")))

    assert set(Result.__struct_fields__) <= spans


@pytest.mark.requirement("R100")
def test_the_columns_of_the_table_are_documented_in_their_order() -> None:
    text = " ".join(text_of(ROOT / "docs" / "session-folder.md").split())

    assert ", ".join(f"`{column}`" for column in DEVELOPMENT.columns.order) in text


@every_page
def test_no_page_names_the_machine_it_was_written_on(page: Path) -> None:
    assert str(ROOT) not in text_of(page)
