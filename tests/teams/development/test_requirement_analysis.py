"""Signals, the pipeline they select, capabilities and complexity."""

import json

import pytest
from tests.core.conftest import Story

from iterdev.core.request import Request
from iterdev.core.session.events import Warned
from iterdev.core.settings import Settings
from iterdev.core.types import Engine
from iterdev.store.session_folder.json_records import records
from iterdev.teams.development.documents import documents
from iterdev.teams.development.requirement_analysis import (
    Assessment,
    analyse,
    assessed,
    prompt,
    recommend,
    signal_score,
)
from iterdev.teams.development.roles import Pipeline, Role
from iterdev.teams.development.team import DEVELOPMENT

GATEWAYS = "Refactor payment module to support multiple gateways"


@pytest.mark.requirement("R22", "R23", "R24")
@pytest.mark.parametrize(
    ("requirement", "files", "points", "pipeline"),
    [
        ("Fix login button not responding on mobile", None, -2, Pipeline.patch),
        ("Implement user authentication with JWT", None, 2, Pipeline.sprint),
        ("Implement user authentication with JWT", 1, 0, Pipeline.patch),
        ("Add a greeting", None, 2, Pipeline.sprint),
        ("Fix typo across docs", None, 0, Pipeline.patch),
        ("Restructure auth", None, 3, Pipeline.sprint),
        ("Implement user authentication with JWT", 6, 2, Pipeline.sprint),
        (GATEWAYS, None, 5, Pipeline.multi_sprint),
        (GATEWAYS, 12, 8, Pipeline.multi_sprint),
        ("Fix typo across docs", 1, 0, Pipeline.patch),
        ("Fix cross-service bug", 8, 2, Pipeline.sprint),
        ("Fix bug by refactoring the parser", 2, 1, Pipeline.patch),
        ("Restructure auth", 3, 5, Pipeline.multi_sprint),
        ("Restructure auth", 2, 3, Pipeline.sprint),
        ("Add export endpoint", 11, 3, Pipeline.sprint),
        ("Add export endpoint", 10, 2, Pipeline.sprint),
        ("Dispatch prefix handling", 2, 0, Pipeline.patch),
    ],
)
def test_the_worked_examples_of_the_specification(
    requirement: str, files: int | None, points: int, pipeline: Pipeline
) -> None:
    analysis = analyse(requirement, files)

    assert (analysis.score, analysis.pipeline) == (points, pipeline)


@pytest.mark.requirement("R22")
@pytest.mark.parametrize(("files", "points"), [(None, 2), (0, 0), (2, 0), (3, 2), (10, 2), (11, 3), (500, 3)])
def test_the_number_of_changed_files_adds_points(files: int | None, points: int) -> None:
    assert signal_score("Add export endpoint", files) == points


@pytest.mark.requirement("R23")
@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("refactor", 3),
        ("Architecture", 3),
        ("RESTRUCTURED", 3),
        ("refactor the architecture and restructure", 3),
        ("multiple", 2),
        ("across", 2),
        ("cross-cutting", 2),
        ("multiple things across", 2),
        ("fixes", -2),
        ("bugs", -2),
        ("typos", -2),
        ("patching", -2),
        ("fix a bug and a typo with a patch", -2),
        ("prefix, suffix, dispatch, debug", 0),
        ("system module", 0),
        ("", 0),
    ],
)
def test_each_signal_counts_once_and_only_from_the_beginning_of_a_word(text: str, points: int) -> None:
    assert signal_score(text, 0) == points


@pytest.mark.requirement("R23")
@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("重构支付模块", 3),
        ("调整系统架构", 3),
        ("重组目录并重构架构", 3),
        ("支持多个网关", 2),
        ("跨服务调用", 2),
        ("修复登录按钮", -2),
        ("处理错误", -2),
        ("消除缺陷、改正错别字、打补丁", -2),
        ("重构支付模块以支持多个网关", 5),
        ("修复跨服务的缺陷", 0),
        ("修复bug", -2),
        ("处理login的bug", -2),
        ("请refactor支付模块", 3),
        ("修改prefix", 0),
        ("新增导出接口", 0),
    ],
)
def test_chinese_words_count_wherever_they_stand_and_end_the_word_before(text: str, points: int) -> None:
    assert signal_score(text, 0) == points


@pytest.mark.requirement("R24")
@pytest.mark.parametrize(
    ("requirement", "files", "pipeline"),
    [
        ("修复手机端登录按钮无响应", None, Pipeline.patch),
        ("实现 JWT 用户认证", None, Pipeline.sprint),
        ("实现 JWT 用户认证", 6, Pipeline.sprint),
        ("重构支付模块以支持多个网关", None, Pipeline.multi_sprint),
        ("重组认证模块", 2, Pipeline.sprint),
    ],
)
def test_a_chinese_requirement_selects_the_pipeline_of_its_english_twin(
    requirement: str, files: int | None, pipeline: Pipeline
) -> None:
    assert analyse(requirement, files).pipeline is pipeline


@pytest.mark.requirement("R24")
@pytest.mark.parametrize(
    ("score", "pipeline"),
    [
        (-2, Pipeline.patch),
        (0, Pipeline.patch),
        (1, Pipeline.patch),
        (2, Pipeline.sprint),
        (4, Pipeline.sprint),
        (5, Pipeline.multi_sprint),
        (8, Pipeline.multi_sprint),
    ],
)
def test_the_score_selects_the_pipeline(score: int, pipeline: Pipeline) -> None:
    assert recommend(score) is pipeline


@pytest.mark.requirement("R25")
@pytest.mark.parametrize(
    ("text", "role", "keyword"),
    [
        ("Design it", Role.architect, "design"),
        ("a refactor plan", Role.architect, "refactor plan"),
        ("Implement it", Role.developer, "implement"),
        ("develop it", Role.developer, "develop"),
        ("Validated twice", Role.tester, "validate"),
        ("raise the coverage", Role.tester, "coverage"),
        ("AUDIT it", Role.reviewer, "audit"),
        ("check it", Role.reviewer, "check"),
        ("接口设计", Role.architect, "设计"),
        ("系统架构", Role.architect, "架构"),
        ("给出重构方案", Role.architect, "重构方案"),
        ("功能实现", Role.developer, "实现"),
        ("编写代码", Role.developer, "代码"),
        ("修复登录", Role.developer, "修复"),
        ("单元测试", Role.tester, "测试"),
        ("回归检测", Role.tester, "回归"),
        ("验证结果", Role.tester, "验证"),
        ("安全审查", Role.reviewer, "审查"),
        ("方案评审", Role.reviewer, "评审"),
        ("质量评分", Role.reviewer, "质量"),
    ],
)
def test_a_keyword_is_mapped_to_the_role_that_has_the_capability(text: str, role: Role, keyword: str) -> None:
    (capability,) = analyse(text).capabilities

    assert (capability.role, capability.keywords) == (role, (keyword,))


@pytest.mark.requirement("R25")
def test_capabilities_come_in_the_order_of_the_roles() -> None:
    found = analyse("review, test, build and design").capabilities

    assert [capability.role for capability in found] == [Role.architect, Role.developer, Role.tester, Role.reviewer]


@pytest.mark.requirement("R26")
@pytest.mark.parametrize(
    ("text", "files", "score", "level"),
    [
        ("Add export endpoint", 1, 0, "Low"),  # patch: short, one developer, no critic loop
        ("Fix typo across docs", None, 2, "Medium"),  # patch, across modules
        ("Add export endpoint", 5, 1, "Low"),  # sprint: the critic loop is likely
        ("Fix cross-service bug", 8, 3, "Medium"),  # sprint, across modules
        ("Restructure auth", 3, 4, "High"),  # multi-sprint: deep, several developers, critic loop
        (GATEWAYS, None, 6, "High"),  # everything
    ],
)
def test_complexity_adds_up_what_makes_work_hard(text: str, files: int | None, score: int, level: str) -> None:
    complexity = analyse(text, files).complexity

    assert (complexity.score, complexity.level) == (score, level)


@pytest.mark.requirement("R27")
def test_the_analysis_is_written_with_everything_that_was_found() -> None:
    story = Story(requirement="Fix and test the parser", engine=Engine.beat)

    written = json.loads(records(story.state, DEVELOPMENT)["task-analysis.json"])

    assert written == {
        "task_description": "Fix and test the parser",
        "pipeline_type": "patch",
        "capabilities": [
            {"name": "developer", "role": "developer", "keywords": ["fix"]},
            {"name": "tester", "role": "tester", "keywords": ["test"]},
        ],
        "roles": [
            {"name": "developer", "prefix": "DEV", "inner_loop": True},
            {"name": "tester", "prefix": "VERIFY", "inner_loop": False},
        ],
        "complexity": {"score": 0, "level": "Low"},
        "needs_architecture": False,
        "needs_testing": True,
        "needs_review": False,
    }


@pytest.mark.requirement("R28")
def test_the_analysis_opens_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **_: object) -> None:
        raise AssertionError(f"it wants to read {arguments}")

    with monkeypatch.context() as patch:
        for door in ("builtins.open", "io.open", "os.open", "os.scandir", "os.listdir", "os.stat"):
            patch.setattr(door, refuse)
        analysis = analyse(GATEWAYS, 12)

    assert analysis.pipeline is Pipeline.multi_sprint


@pytest.mark.requirement("R29")
def test_the_analyzer_leaves_its_result_beside_those_of_interactive_tasks() -> None:
    story = Story(requirement="Fix and test the parser", pipeline=Pipeline.patch)
    story.goes_on()

    written = json.loads(documents(story.state)["interactive/task-analyzer-result.json"])

    assert written == {
        "task_id": "task-analysis",
        "status": "completed",
        "pipeline_mode": "patch",
        "capabilities": ["developer", "tester"],
        "complexity_score": -2,
        "files": None,
        "roles_needed": ["developer", "tester"],
        "timestamp": "1970-01-01T08:16:40+08:00",
    }


@pytest.mark.requirement("R29")
def test_the_roles_that_are_needed_are_known_while_the_pipeline_is_asked_about() -> None:
    story = Story(requirement=GATEWAYS, auto=False)
    story.goes_on()

    written = json.loads(documents(story.state)["interactive/task-analyzer-result.json"])

    assert story.state.gates.open
    assert written["roles_needed"] == ["architect", "developer", "tester", "reviewer"]


@pytest.mark.requirement("R24", "R29")
@pytest.mark.parametrize(
    ("found", "score", "pipeline"),
    [
        (Assessment(pipeline_mode=Pipeline.sprint, complexity_score=9), 9, Pipeline.multi_sprint),
        (Assessment(pipeline_mode=Pipeline.sprint, complexity_score=3), 3, Pipeline.sprint),
        (Assessment(pipeline_mode=Pipeline.sprint), 2, Pipeline.sprint),
        (Assessment(pipeline_mode=Pipeline.multi_sprint), 5, Pipeline.multi_sprint),
        (Assessment(pipeline_mode=Pipeline.patch, files=12), 1, Pipeline.patch),
    ],
)
def test_the_score_of_the_analyzer_selects_the_pipeline(found: Assessment, score: int, pipeline: Pipeline) -> None:
    analysis = assessed("Fix a typo", None, found)

    assert (analysis.score, analysis.pipeline) == (score, pipeline)


@pytest.mark.requirement("R22", "R29")
def test_the_estimate_of_the_analyzer_counts_unless_the_user_said_how_many_files() -> None:
    found = Assessment(pipeline_mode=Pipeline.sprint, files=12)

    assert assessed("Add export endpoint", None, found).score == 3
    assert assessed("Add export endpoint", 4, found).score == 2


@pytest.mark.requirement("R29")
def test_the_analyzer_is_told_the_signals_the_limits_and_the_request_as_data() -> None:
    text = prompt("Add export\n```\n## Result", "")

    for words in ("3 to 10 files +2, more +3", "+3; across", "fix -2", "5 or more multi-sprint", "2 to 4 sprint"):
        assert words in text
    assert "````\nAdd export\n" in text


@pytest.mark.requirement("R24", "R29")
@pytest.mark.parametrize(("named", "warned"), [(Pipeline.sprint, True), (Pipeline.multi_sprint, False)])
def test_an_analyzer_that_contradicts_its_score_is_reported(named: Pipeline, *, warned: bool) -> None:
    request = Request(
        requirement="Add a greeting", prepared=Assessment(pipeline_mode=named, complexity_score=9, files=12)
    )

    started = DEVELOPMENT.started(request, Settings(), {})

    warnings = [event.text for event in started if isinstance(event, Warned)]
    assert [f'"{named}"' in text and '"multi-sprint"' in text for text in warnings] == [True] * warned
    assert started[0].analysis.files == 12
