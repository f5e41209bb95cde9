"""What the pages show, and what their forms do."""

import subprocess
from datetime import datetime
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.app.conftest import DEV, Sessions, Team, failed, running_engine, team
from tests.e2e.conftest import every_file
from tests.github_server import TOKEN, github_server
from tests.surfaces.web.conftest import Site, filled
from tests.surfaces.web.sessions import HOSTILE, asking, hostile, reviewed

from iterdev.app import tech_debt
from iterdev.app.completion import accept, archive
from iterdev.app.issues.edit import create
from iterdev.core.collaboration.messages import MessageSent
from iterdev.core.limits.providers import ProviderPaused
from iterdev.core.session import events
from iterdev.core.session.gates import plan_gate
from iterdev.core.types import SessionId, TaskId
from iterdev.surfaces.web.rendering import FOLDER
from iterdev.teams.development.events import ReviewScored, RoundStarted

__all__ = ["team"]


class Elements(HTMLParser):
    """The elements of a page, and the attributes that run something or style something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def opened(sessions: Sessions, session: SessionId) -> str:
    return repr(sessions.state(session).gates.opened_at["plan"])


def pages(site: Site, session: str, issue: str) -> list[str]:
    names = {"session": session, "task": "DEV-001", "gate": "plan", "act": "retry", "issue": issue}
    found = {path for method, path in site.routes() if method == "GET"}
    return [filled(path, **names) for path in sorted(found - {"/events"})]


def test_every_page_of_a_session_is_shown(site: Site, sessions: Sessions) -> None:
    session = asking(sessions)
    sessions.log(session).record(events.AttemptStarted(DEV, 1, "mine", sessions.repo.git("rev-parse", "main")))
    issue = create(sessions.repository, {"title": "Broken"}).id

    answers = {path: site.get(path).status for path in pages(site, session, issue)}

    assert len(answers) > 25
    assert set(answers.values()) == {HTTPStatus.OK}


def test_text_of_others_is_text_on_every_page(site: Site, sessions: Sessions) -> None:
    session, issue = hostile(sessions)
    documents = [f"/s/{session}/documents?name={name}" for name in ("context.md", "review/review-001.md")]

    for path in [*pages(site, session, issue), f"/s/{session}/t/DEV-001/output?q=script", *documents]:
        if path.startswith(("/static", "/api")) or path.endswith(("jsonl", ".log")):
            continue
        text = site.get(path).text
        found = Elements(text)

        assert found.tags.count("script") == 2, path
        assert {"img", "iframe", "object", "base", "style"} & set(found.tags) == set(), path
        assert [name for name in found.attributes if name.startswith("on") or name == "style"] == [], path
        assert not {"\x1b", "\x07", "\u202e"} & set(text), path


def test_an_empty_repository_is_named_and_stays_as_it_is(site: Site, sessions: Sessions) -> None:
    before = every_file(sessions.repo.path)

    home, listed = site.get("/").text, site.get("/sessions").text

    assert f"No sessions yet in <code>{sessions.repo.path}</code>" in home
    assert "No sessions yet" in listed
    assert every_file(sessions.repo.path) == before


def test_what_needs_the_user_comes_first_with_what_can_be_done(site: Site, sessions: Sessions) -> None:
    lost, asks = sessions.start("Broken", *failed()), asking(sessions, "Asked")

    text = site.get("/").text

    assert text.index("Asked") < text.index("Broken")
    assert f'href="/s/{lost}/do/retry"' in text
    assert f'action="/s/{asks}/q/plan"' in text
    assert 'data-needs="2"' in text
    assert f"iterdev answer {asks} plan approve" in text


def test_sessions_are_found_by_words_and_by_state(site: Site, sessions: Sessions) -> None:
    sessions.start("Broken", *failed())
    asking(sessions, "Asked")

    by_word, by_state = site.get("/sessions?q=broKEN").text, site.get("/sessions?state=waiting").text

    assert ("Broken" in by_word, "Asked" in by_word) == (True, False)
    assert ("Broken" in by_state, "Asked" in by_state) == (False, True)


@pytest.mark.requirement("R179")
def test_sessions_are_listed_by_active_archived_and_all(site: Site, sessions: Sessions) -> None:
    archive(sessions.repository, sessions.start("Put away", *failed()))
    sessions.start("Broken", *failed())
    asking(sessions, "Asked")

    listed = {state: site.get(f"/sessions?state={state}").text for state in ("active", "archived", "all", "")}

    shown = {
        state: [word for word in ("Put away", "Broken", "Asked") if word in text] for state, text in listed.items()
    }
    everything = ["Put away", "Broken", "Asked"]
    assert shown == {"active": everything[1:], "archived": everything[:1], "all": everything, "": everything}
    assert "<option selected>archived</option>" in listed["archived"]


@pytest.mark.requirement("R179")
def test_a_session_shows_its_stages_roles_artifacts_and_messages(site: Site, sessions: Sessions) -> None:
    session = reviewed(sessions)
    sent = [MessageSent(sender=one, to="coordinator", kind="note", summary=f"said by {one}") for one in ("dev", "rev")]
    sessions.log(session).record(*sent)

    pipeline, listed = site.get(f"/s/{session}").text, site.get(f"/s/{session}/documents").text
    review = site.get(f"/s/{session}/documents?name=review/review-001.md").text
    from_one = site.get(f"/s/{session}/bus?from=dev").text
    by_all = site.get(f"/s/{session}/bus?from=rev&to=coordinator&type=note").text

    assert 'class="wave"' in pipeline
    assert all(f'<td data-label="role">{role}</td>' in pipeline for role in ("developer", "tester", "reviewer"))
    assert all(f">{name}</a>" in listed for name in ("context.md", "review/review-001.md", "code/dev-log.md"))
    assert "far away" in review
    assert ("said by dev" in from_one, "said by rev" in from_one) == (True, False)
    assert ("said by dev" in by_all, "said by rev" in by_all) == (False, True)


def test_only_documents_that_the_session_knows_are_shown(site: Site, sessions: Sessions) -> None:
    session = reviewed(sessions)
    folder = sessions.repository.folder(sessions.state(session))
    (folder / "review").mkdir(exist_ok=True)
    (folder / "review" / "review-001.md").unlink(missing_ok=True)
    (folder / "review" / "review-001.md").symlink_to("/etc/passwd")

    shown = site.get(f"/s/{session}/documents?name=review/review-001.md").text
    others = [
        site.get(f"/s/{session}/documents?name={name}").status for name in ("../x", "/etc/passwd", "session.json")
    ]

    assert ("far away" in shown, "root:" in shown) == (True, False)
    assert others == [HTTPStatus.NOT_FOUND] * 3


def test_the_picture_links_every_task_and_tells_its_state_in_words(site: Site, sessions: Sessions) -> None:
    session = sessions.start("Broken", *failed())

    text = site.get(f"/s/{session}").text

    assert f'href="/s/{session}/t/DEV-001" class="box failed" aria-label="DEV-001, developer, failed' in text
    assert 'class="box skipped"' in text


def test_a_question_is_answered_once_and_a_second_answer_is_told_so(site: Site, sessions: Sessions) -> None:
    session = asking(sessions)
    fields = {"choice": "approve", "opened": opened(sessions, session)}

    first = site.post(f"/s/{session}/q/plan", fields)
    second = site.post(f"/s/{session}/q/plan", fields)
    page = site.get(f"/s/{session}/q/plan").text

    assert first.document == {"go_to": f"/s/{session}"}
    assert (second.status, second.document["look_again"]) == (HTTPStatus.CONFLICT, True)
    assert sessions.kinds(session).count("GateAnswered") == 1
    assert "It was answered with <strong>approve</strong>" in page
    assert '"what": "answer plan: approve", "who": "bearer"' in site.log.path.read_text()


def test_a_question_that_was_asked_again_is_not_answered_by_an_old_page(site: Site, sessions: Sessions) -> None:
    session = asking(sessions)
    old = opened(sessions, session)
    sessions.log(session).record(events.GateAnswered("plan", "approve"))
    sessions.log(session).record(events.GateOpened(plan_gate(sessions.state(session).tasks.plan.values())))

    answer = site.post(f"/s/{session}/q/plan", {"choice": "reject", "opened": old})

    assert answer.status == HTTPStatus.CONFLICT
    assert "plan" in sessions.state(session).gates.open


def test_a_wrong_answer_is_refused_with_the_choices(site: Site, sessions: Sessions) -> None:
    session = asking(sessions)

    answer = site.post(f"/s/{session}/q/plan", {"choice": "maybe", "opened": opened(sessions, session)})

    assert (answer.status, answer.document["hint"]) == (HTTPStatus.BAD_REQUEST, "one of: approve, reject")


def test_a_preview_changes_nothing_and_is_good_only_for_what_it_showed(site: Site, sessions: Sessions) -> None:
    session = sessions.start("Broken", *failed())
    shown = site.get(f"/s/{session}/do/archive").text
    seq = sessions.state(session).seq
    sessions.log(session).record(events.Warned("something new"))

    old = site.post(f"/s/{session}/do/archive", {"seq": seq})
    unchanged = sessions.kinds(session)
    new = site.post(f"/s/{session}/do/archive", {"seq": sessions.state(session).seq})

    assert f'name="seq" value="{seq}"' in shown
    assert (old.status, old.document["look_again"]) == (HTTPStatus.CONFLICT, True)
    assert "Archived" not in unchanged
    assert new.document == {"go_to": f"/s/{session}"}
    assert sessions.kinds(session)[-1] == "Archived"


@pytest.mark.requirement("R180")
def test_a_session_is_archived_unarchived_and_deleted(site: Site, team: Team) -> None:
    team.run(pipeline="patch")
    session, home = team.session, f"/s/{team.session}"

    def done(act: str) -> object:
        return site.post(f"{home}/do/{act}", {"seq": team.repository.state(session).seq}).document

    early, refused = site.get(f"{home}/do/clean").text, done("clean")
    accept(team.repository, session)
    went = [done(act) for act in ("archive", "reopen", "archive")]
    offered, preview = site.get(home).text, site.get(f"{home}/do/clean").text
    deleted = done("clean")

    assert "can be removed: the session is neither archived nor accepted" in early
    assert "can be removed: the session is neither archived nor accepted" in str(refused)
    assert went == [{"go_to": home}] * 3
    assert [f'href="{home}/do/{act}"' in offered for act in ("reopen", "clean", "archive")] == [True, True, False]
    assert f'<span class="mono">refs/heads/iterdev/{session}</span>' in preview
    assert deleted == {"go_to": home}
    assert team.repo.git("for-each-ref", "refs/heads/iterdev", "refs/iterdev") == ""
    assert site.get(home).status == HTTPStatus.OK


@pytest.mark.requirement("R180")
@pytest.mark.parametrize("act", ["archive", "reopen", "clean"])
def test_an_unknown_session_is_not_found(site: Site, sessions: Sessions, act: str) -> None:
    known = sessions.start("Broken", *failed())
    before = sessions.kinds(known)

    shown, done = site.get(f"/s/{known}x/do/{act}"), site.post(f"/s/{known}x/do/{act}", {"seq": "1"})

    assert (shown.status, done.status) == (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_FOUND)
    assert done.document == {"error": f'There is no session "{known}x"'}
    assert sessions.kinds(known) == before


@pytest.mark.parametrize("act", ["accept", "archive", "reopen", "clean", "retry", "resume", "rollback?target=DEV-001"])
def test_what_cannot_be_done_now_is_explained_and_refused(site: Site, sessions: Sessions, act: str) -> None:
    session = sessions.start()
    name = act.partition("?")[0]
    with running_engine(sessions, session):
        page = site.get(f"/s/{session}/do/{act}").text
        answer = site.post(f"/s/{session}/do/{name}", {"seq": sessions.state(session).seq, "target": "DEV-001"})

    assert "<form" not in page.partition('id="part-preview"')[2].partition("<dialog")[0]
    assert answer.status == HTTPStatus.BAD_REQUEST
    assert sessions.kinds(session)[-1] == "TasksAdded"


def test_the_plan_is_edited_in_place_and_a_wrong_row_is_named(site: Site, team: Team) -> None:
    team.run(auto=False, pipeline="patch")
    address = f"/s/{team.session}/plan"
    digest = site.get(address).text.partition('name="digest" value="')[2].partition('"')[0]
    rows = {"0.id": "DEV-001", "0.role": "developer", "0.title": "Greet the world", "0.description": "Do it"}
    wrong = {
        **rows,
        "digest": digest,
        "5.id": "DEV-002",
        "5.role": "developer",
        "5.description": "x",
        "5.deps": "DEV-9",
    }

    refused = site.post(address, wrong)
    saved = site.post(address, {**rows, "digest": digest})
    late = site.post(address, {**rows, "digest": digest})

    folder = team.repository.folder(team.repository.state(team.session))
    assert (refused.status, refused.document["row"]) == (HTTPStatus.BAD_REQUEST, 5)
    assert "DEV-9" in str(refused.document["error"])
    assert saved.document == {"go_to": f"{address}?saved=1"}
    assert "Greet the world" in (folder / "tasks.csv").read_text()
    assert (late.status, late.document["look_again"]) == (HTTPStatus.CONFLICT, True)
    assert not (folder / "tasks.page.csv").exists()


def test_the_text_of_a_new_session_is_assessed_and_its_command_shown(site: Site) -> None:
    text = site.get("/new?text=Fix+a+typo+in+it's+docs&pipeline=patch&budget=5&agent.reviewer=codex").text

    assert "The text suggests the pipeline <strong>" in text
    assert "--pipeline patch --budget 5 --role-agent reviewer=codex" in text
    assert 'type="number" min="0" step="any" placeholder="no limit" value="5"' in text
    assert "&#39;Fix a typo in it&#39;&#34;&#39;&#34;&#39;s docs&#39;" in text


@pytest.mark.parametrize(
    "fields",
    [{"text": " "}, {"text": "x", "pipeline": "y"}, {"text": "x", "concurrency": "many"}, {"agent.boss": "x"}]
    + [{"text": "x", "budget": amount} for amount in ("much", "-1", "nan", "inf")],
)
def test_a_wrong_request_starts_nothing(site: Site, sessions: Sessions, fields: dict[str, str]) -> None:
    answer = site.post("/new", fields)

    assert (answer.status, bool(answer.document["error"])) == (HTTPStatus.BAD_REQUEST, True)
    assert sessions.repository.sessions() == []


def test_the_journal_shows_the_session_as_it_was_and_can_be_downloaded(site: Site, sessions: Sessions) -> None:
    session = sessions.start("Broken", *failed())

    listed, past = site.get(f"/s/{session}/journal?event=AttemptEnded").text, site.get(f"/s/{session}?at=4").text
    file = site.get(f"/s/{session}/journal.jsonl")

    assert "no luck" in listed
    assert 'class="box failed"' not in past
    assert "as it was at entry 4 of" in past
    assert "data-live" not in past.partition("<a class")[0]
    assert file.headers["content-type"].startswith("text/plain")
    assert file.headers["content-disposition"].startswith("attachment;")
    assert file.text.count("\n") == sessions.state(session).seq


def test_findings_stand_at_their_lines_and_lock_files_are_closed(site: Site, sessions: Sessions) -> None:
    session = reviewed(sessions)

    text = site.get(f"/s/{session}/changes").text
    opened_file = site.get(f"/s/{session}/changes?file=yarn.lock").text

    code = text.index('<span class="tk">return</span>')
    assert code < text.index("wrong &lt;script&gt;")
    assert text.index("far away") < code
    assert "yarn.lock" in text
    assert "· generated · closed" in text
    assert opened_file.count('<tr class="added">') == 50
    assert Elements(text).tags.count("script") == 2


def test_reviews_have_their_scores_and_findings(site: Site, sessions: Sessions) -> None:
    text = site.get(f"/s/{reviewed(sessions)}/review").text

    assert 'value="6.1" aria-label="Score 6.1 of 10"' in text
    assert "Open findings (2)" in text


def test_a_finding_that_was_gone_and_is_reported_again_has_come_back(site: Site, sessions: Sessions) -> None:
    session = reviewed(sessions)
    before, log = site.get(f"/s/{session}/review").text, sessions.log(session)
    row = sessions.state(session).tasks.plan[TaskId("REVIEW-001")]
    first = next(one.event for one in sessions.repository.journal.read(session) if isinstance(one.event, ReviewScored))
    for name, issues in (("REVIEW-002", first.review.issues[1:]), ("REVIEW-003", first.review.issues)):
        task = TaskId(name)
        scored = replace(first, task=task, review=replace(first.review, id=name, issues=issues))
        log.record(events.TasksAdded((replace(row, id=task),)), scored)

    text = site.get(f"/s/{session}/review").text

    assert (before.count("came back"), text.count("came back")) == (0, 1)
    assert 'REVIEW-001 REVIEW-003 <span class="tag">came back</span>' in text


def test_a_change_names_no_other_commit_than_the_session_knows(site: Site, sessions: Sessions) -> None:
    session = reviewed(sessions)

    answers = [
        site.get(f"/s/{session}/changes?{query}")
        for query in ("task=HEAD", "task=--output=/tmp/x", "round=7", "file=../../etc/passwd", "file=--no-index")
    ]

    assert {answer.status for answer in answers} == {HTTPStatus.OK}
    assert all("root:" not in answer.text for answer in answers)
    assert "There is no task" in answers[0].text


def test_a_comment_on_a_change_becomes_feedback_on_its_task(site: Site, sessions: Sessions) -> None:
    session = reviewed(sessions)
    fields = {"text": "too long", "where": "till.py:2", "task": "DEV-001", "severity": "high"}

    answer = site.post(f"/s/{session}/comment", fields)
    empty = site.post(f"/s/{session}/comment", {"text": " "})

    (item,) = sessions.state(session).feedback
    assert answer.status == HTTPStatus.OK
    assert (item.description, item.source_task_id, item.severity) == ("till.py:2: too long", "DEV-001", "high")
    assert empty.status == HTTPStatus.BAD_REQUEST


def test_cards_of_the_boards_are_moved_by_their_forms(site: Site, sessions: Sessions) -> None:
    session = sessions.start()
    site.post(
        "/boards/feedback",
        {"do": "add", "session": session, "text": "cut", "severity": "high", "category": "ux"},
    )
    given = sessions.state(session).feedback[0].feedback_id
    debt = tech_debt.add(sessions.repository, session, tech_debt.Debt(description="copied")).debt_id
    issue = create(sessions.repository, {"title": "Broken"}).id

    closed = site.post("/boards/feedback", {"do": "close", "session": session, "id": given})
    moved = site.post("/boards/debt", {"session": session, "id": debt, "status": "deferred"})
    queued = site.post(f"/issues/{issue}", {"status": "paused"})
    wrong = site.post("/boards/debt", {"session": session, "id": debt, "status": "odd"})

    state = sessions.state(session)
    assert {closed.status, moved.status, queued.status} == {HTTPStatus.OK}
    assert (state.feedback[0].status, state.debt[0].status) == ("closed", "deferred")
    assert 'aria-label="paused"' in site.get("/issues").text.partition(issue)[0]
    assert wrong.status == HTTPStatus.BAD_REQUEST


def test_the_output_is_searched_as_a_whole_and_a_link_in_its_place_is_not_followed(
    site: Site, sessions: Sessions, tmp_path: Path
) -> None:
    session = sessions.start("Fix it", *failed()[:1])
    logs = sessions.repository.folder(sessions.state(session)) / "logs"
    logs.mkdir()
    (logs / "DEV-001-1.log").write_text("Reading\nWRITING \x1b[31mred\x1b[0m\nwriting again\n")

    found = site.get(f"/s/{session}/t/DEV-001/output?q=writing").text
    (tmp_path / "secret").write_text("the secret\n")
    (logs / "DEV-001-1.log").unlink()
    (logs / "DEV-001-1.log").symlink_to(tmp_path / "secret")
    linked = site.get(f"/s/{session}/t/DEV-001/output").text

    assert "<strong>2 lines</strong> have “writing”" in found
    assert "<mark>WRITING</mark> red" in found
    assert "the secret" not in linked


def test_lines_of_the_output_have_their_time_and_the_log_can_be_downloaded(site: Site, sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed()[:1])
    logs = sessions.repository.folder(sessions.state(session)) / "logs"
    logs.mkdir()
    at = datetime(2026, 11, 18, 12, 1, 3).astimezone()
    text = f"{at.isoformat(timespec='seconds')} Reading\n<b>old line</b>\n"
    (logs / "DEV-001-1.log").write_text(text)

    page = site.get(f"/s/{session}/t/DEV-001/output?q=12:01").text
    file = site.get(f"/s/{session}/t/DEV-001/output.log?attempt=1")
    missing = site.get(f"/s/{session}/t/DEV-001/output.log?attempt=2")

    assert '<span class="line" id="l1"><span class="at">12:01:03</span> Reading' in page
    assert '<span class="line" id="l2">&lt;b&gt;old line' in page
    assert "<strong>0 lines</strong>" in page, "what was said is searched, not when"
    assert file.text == text
    assert file.headers["content-disposition"].startswith("attachment;")
    assert missing.status == HTTPStatus.NOT_FOUND


def test_up_to_four_agents_at_work_are_side_by_side(site: Site, sessions: Sessions) -> None:
    session = sessions.start()
    row = sessions.state(session).tasks.plan[DEV]
    names = [TaskId(f"DEV-{number:03d}") for number in range(2, 7)]
    started = [events.AttemptStarted(name, 1, "mine", "b" * 40) for name in names]
    sessions.log(session).record(events.TasksAdded(tuple(replace(row, id=name) for name in names)), *started)
    logs = sessions.repository.folder(sessions.state(session)) / "logs"
    logs.mkdir()
    (logs / "DEV-003-1.log").write_text("".join(f"line {number}\n" for number in range(1, 451)))

    text = site.get(f"/s/{session}/output").text

    assert text.count('role="log"') == 4
    assert [f'id="part-output-{name}"' in text for name in names] == [True] * 4 + [False]
    assert (">line 200\n" in text, ">line 201\n" in text, ">line 450\n" in text) == (False, True, True)
    assert f'href="/s/{session}/t/DEV-003/output?attempt=1">DEV-003 · mine' in text


def test_the_time_line_shows_a_round_idle_time_pauses_and_the_cost(site: Site, sessions: Sessions) -> None:
    session = reviewed(sessions)
    at = sessions.state(session).updated_at
    log = sessions.log(session)
    begun = RoundStarted(sprint=1, number=1, raised_by=(), why="")
    log.record(ProviderPaused("codex", at + 60, "limit reached"), begun)
    log.record(events.AttemptStarted(TaskId("VERIFY-001"), 1, "mine", "b" * 40))

    whole, last = site.get(f"/s/{session}/timeline").text, site.get(f"/s/{session}/timeline?part=2&fold=no").text

    options = [f'<option value="{number}"' for number in (1, 2)]
    assert all(option in whole for option in options)
    assert "fix round 1</option>" in whole
    assert "tokens: 1.2 k</text><polyline" in whole
    assert "pause of codex</text>" in whole
    assert '/t/DEV-001/output?attempt=1" aria-label="DEV-001 attempt 1, mine, 0 s, done; on ' in whole
    assert ("DEV-001 attempt 1" in last, "VERIFY-001 attempt 1" in last) == (False, True)
    assert '<option value="no" selected>' in last


def test_both_versions_of_a_file_stand_side_by_side(site: Site, sessions: Sessions) -> None:
    text = site.get(f"/s/{reviewed(sessions)}/changes?layout=beside").text

    assert '<table class="diff beside">' in text
    assert '<td class="code none"></td><td class="ln">2</td><td class="code added">' in text
    assert "wrong &lt;script&gt;" in text
    assert '<option value="beside" selected>' in text
    assert "&amp;layout=beside&amp;file=till.py" in text


def test_what_an_agent_was_asked_is_shown_as_text(site: Site, sessions: Sessions) -> None:
    session = sessions.start(f"Fix {HOSTILE}")
    base = sessions.repo.git("rev-parse", "main")
    sessions.log(session).record(events.AttemptStarted(DEV, 1, "mine", base))

    text = site.get(f"/s/{session}/t/DEV-001/prompt").text
    others = [site.get(f"/s/{session}/t/{path}").status for path in ("DEV-001/prompt?attempt=2", "DEV-009/prompt")]

    assert "You are one of a team of agents" in text
    assert Elements(text).tags.count("script") == 2
    assert others == [HTTPStatus.NOT_FOUND] * 2


def test_a_message_is_broadcast_to_all_roles(site: Site, sessions: Sessions) -> None:
    session = sessions.start()

    answer = site.post(f"/s/{session}/bus", {"text": "the old endpoint stays"})
    empty = site.post(f"/s/{session}/bus", {"text": ""})

    assert answer.document == {"go_to": f"/s/{session}/bus"}
    assert "[user] the old endpoint stays" in site.get(f"/s/{session}/bus").text
    assert (empty.status, empty.document["error"]) == (HTTPStatus.BAD_REQUEST, "The message is empty")


def test_a_finished_session_is_exported_to_the_folder_that_was_shown(site: Site, team: Team) -> None:
    team.run(pipeline="patch")
    address, out = f"/s/{team.session}/do/export", team.repo.path.parent / "the result"

    asked, shown = site.get(address).text, site.get(f"{address}?target=../the+result").text
    seq = team.repository.state(team.session).seq
    nowhere = site.post(address, {"seq": seq})
    done = site.post(address, {"seq": seq, "target": "../the result"})

    assert 'name="target" required' in asked
    assert f'<dd class="mono">{out}</dd>' in shown
    assert f"iterdev export {team.session} &#39;{out}&#39;" in shown
    assert (nowhere.status, nowhere.document["error"]) == (HTTPStatus.BAD_REQUEST, "Export needs a target")
    assert done.document == {"go_to": f"/s/{team.session}"}
    assert (out / "context.md").exists()


def test_a_pull_request_is_shown_and_opened(site: Site, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.run("Greet the world", pipeline="patch")
    address, remote = f"/s/{team.session}/do/pr", team.repo.home / "remote.git"
    refused = site.get(address).text
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=team.repo.env)
    team.repo.git("remote", "add", "origin", str(remote))
    with github_server() as server:
        variables = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": server.address, "GH_REPO": "o/r"}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        shown = site.get(address).text
        seq = team.repository.state(team.session).seq
        done = site.post(address, {"seq": seq, "draft": "1"})
        again = site.get(address).text

    assert "It is not known where to push to" in refused
    assert "<dd>Greet the world</dd>" in shown
    assert done.document == {"go_to": f"/s/{team.session}"}
    assert [(one["title"], one["draft"]) for one in server.pulls] == [("Greet the world", True)]
    assert "is brought up to date" in again


def test_the_documents_for_programs_are_those_of_the_command_line(site: Site, sessions: Sessions) -> None:
    session = sessions.start("Broken", *failed())

    one, every = site.get(f"/api/s/{session}").document, site.get("/api/sessions").document

    assert one["session"] == session
    assert every == {"sessions": [one]}


def test_files_that_a_browser_gets_are_few_and_the_script_is_short() -> None:
    files = [
        path for path in (FOLDER / "static").rglob("*") if path.is_file() and path.suffix in {".js", ".css", ".svg"}
    ]

    assert len((FOLDER / "static" / "app.js").read_text().splitlines()) <= 300
    assert sum(path.stat().st_size for path in files) <= 60_000


def test_templates_mark_nothing_as_safe() -> None:
    templates: list[Path] = list((FOLDER / "templates").rglob("*.html"))

    assert templates
    assert [path.name for path in templates if "|safe" in path.read_text() or "autoescape" in path.read_text()] == []
