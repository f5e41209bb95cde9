"""What the web page costs: one page of many tasks, a server that only waits, and how soon a browser shows an entry."""

import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

import long_journal
import scratch
import sessions
from iterdev.core.session import events
from iterdev.core.types import Status
from iterdev.store.journal import Journal
from measure import Aim, Effort, Section, ms

MEASURED = """\
`iterdev web` with a session of {size:,} tasks, a part of which are done. The page of the session, and the processor \
time that the server needs for it; the share of one core that the server uses for {idle:g} s while a browser looks at \
the page and nothing happens; and the time from an entry in the journal, the beginning or the end of an attempt, until \
{browser} shows it in the picture and in the list of tasks, over {count} entries, for this session and for one of 10 \
tasks."""
WHY = "the picture and the list of tasks are made and compared anew when a task of theirs changes"
WHY_SIZE = "half of the page is the picture, most of the rest the list of tasks: each task is an element of both"
WHY_CPU = """\
three fifths are the templates, half of that the picture and a third the list of tasks; 14 % are the view of the \
session, 8 % each the rows of the list and the places of the tasks in the picture"""
WHY_IDLE = "the journal is looked at twenty times a second, in a thread"
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
TICKS = os.sysconf("SC_CLK_TCK")
REQUESTS = 20
PAUSE = 0.6
"""Seconds between two entries: at most four versions of a page are sent in a second."""
WATCH = """() => {
  window.seen = {};
  const look = () => {
    const entry = document.querySelector(".seq").textContent.replace(/\\D/g, "");
    window.seen[entry] ??= performance.timeOrigin + performance.now();
  };
  const what = { childList: true, subtree: true, characterData: true, attributes: true };
  new MutationObserver(look).observe(document.querySelector("#part-tasks"), what);
}"""
"""The list of tasks is the last part that changes; the entry is in the first one."""


def measure(effort: Effort, root: Path) -> Section:
    program = shutil.which("chromium")
    idle, count = (10.0, 40) if effort.starts > 1 else (0.5, 2)
    large = _repository(root / "web-large", effort.scheduled)
    with _serving(large) as (link, pid):
        size, cpu = _page(link, pid, effort.repetitions)
        share = _with_stream(link, lambda: _idle(pid, idle))
    rows = [
        (f"the page of {effort.scheduled:,} tasks", f"{size / 1000:,.0f} KB", f"{ms(cpu)} of processor time"),
        ("waiting, with one browser", "", f"{share:.2%} of a core"),
    ]
    slow = 0.0
    if program:
        for tasks in (10, effort.scheduled):
            repo = _repository(root / f"web-{tasks}-seen", tasks)
            p50, p95 = _latency(repo, program, list(_attempts(tasks, count)))
            rows.append((f"from an entry to the screen, {tasks:,} tasks", f"p50 {ms(p50)}", f"p95 {ms(p95)}"))
            slow = max(slow, p95)
    else:
        rows.append(("from an entry to the screen", "not measured", "there is no Chromium here"))
    return Section(
        title="Web page",
        measured=MEASURED.format(
            size=effort.scheduled, idle=idle, count=count, browser="Chromium" if program else "a browser"
        ),
        repetitions=f"{REQUESTS * effort.repetitions} requests of the page, their mean; the others once",
        header=("", "", ""),
        rows=tuple(rows),
        aims=(
            Aim(
                claim="a page of 1,000 tasks has at most 500 KB", value=size / 1000, limit=500, unit="KB", why=WHY_SIZE
            ),
            Aim(
                claim="a page of 1,000 tasks takes at most 40 ms of processor time",
                value=cpu * 1000,
                limit=40,
                unit="ms",
                why=WHY_CPU,
            ),
            Aim(
                claim="a server that waits uses at most 1 % of a core",
                value=share * 100,
                limit=1,
                unit="%",
                why=WHY_IDLE,
            ),
            Aim(
                claim="95 % of entries are on the screen within 250 ms, also with 1,000 tasks",
                value=slow * 1000,
                limit=250,
                unit="ms",
                why=WHY,
            ),
        ),
    )


def _repository(root: Path, size: int) -> scratch.Scratch:
    tasks = sessions.wide(max(size, 2))
    written = [*sessions.begun(tasks), *sessions.done(tasks[: size // 3])]
    return long_journal.repository(root, written)


@contextmanager
def _serving(repo: scratch.Scratch) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "iterdev", "web", "--no-open"]
    with subprocess.Popen(
        command, cwd=repo.top, env=repo.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            yield (server.stdout.readline().strip() if server.stdout else ""), server.pid
        finally:
            server.terminate()


def _request(link: str, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    address, _, token = link.partition("/#token=")
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    return connection, connection.getresponse()


def _page(link: str, pid: int, repetitions: int) -> tuple[int, float]:
    """The size of the page, and the processor time of the server for it; many are needed to see a clock of 10 ms."""
    path = f"/s/{sessions.NAME}"
    body = _request(link, path)[1].read()
    count, begin = REQUESTS * repetitions, _cpu(pid)
    for _ in range(count):
        connection, answer = _request(link, path)
        answer.read()
        connection.close()
    return len(body), (_cpu(pid) - begin) / count


def _with_stream(link: str, work: Callable[[], float]) -> float:
    connection, answer = _request(link, f"/events?view=/s/{sessions.NAME}&mark=")
    answer.readline()
    try:
        time.sleep(0.5)
        return work()
    finally:
        connection.close()


def _idle(pid: int, seconds: float) -> float:
    begin = _cpu(pid)
    time.sleep(seconds)
    return (_cpu(pid) - begin) / seconds


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _attempts(size: int, count: int) -> Iterator[events.Event]:
    """Tasks that are begun and interrupted, one after the other; the list of tasks begins with the developers'."""
    waiting = sessions.wide(max(size, 2))[max(size // 3, 1) :]
    pending = [task for task in waiting if task.id.startswith("DEV-")][:50] or waiting
    for number in range(count):
        task, attempt = pending[number // 2 % len(pending)].id, number // 2 // len(pending) + 1
        if number % 2 == 0:
            yield events.AttemptStarted(task, attempt, "bench", sessions.BASE)
        else:
            outcome, status = events.Interrupted(), Status.pending
            yield events.AttemptEnded(
                task=task, number=attempt, agent="bench", requests=1, outcome=outcome, status=status
            )


def _latency(repo: scratch.Scratch, program: str, happening: Sequence[events.Event]) -> tuple[float, float]:
    """Seconds from writing an entry until the page has it: the median, and the 95th percentile."""
    journal = Journal(repo.top / ".workflow" / "iterdev.db")
    written: dict[str, float] = {}
    with _serving(repo) as (link, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(SWITCHES))
        page = browser.new_page()
        page.goto(link)
        page.wait_for_selector("#live")
        page.goto(f"{link.partition('/#')[0]}/s/{sessions.NAME}")
        page.wait_for_selector("#live[data-state=live]")
        page.evaluate(WATCH)
        for event in happening:
            newest = journal.newest(sessions.NAME)
            journal.append(sessions.NAME, [events.Entry(newest + 1, time.time(), event)], after=newest)
            written[str(newest + 1)] = time.time()
            time.sleep(PAUSE)
        seen = json.loads(page.evaluate("() => JSON.stringify(window.seen)"))
        browser.close()
    journal.close()
    taken = sorted(seen[entry] / 1000 - at for entry, at in written.items() if entry in seen)
    if len(taken) < len(happening):
        raise SystemExit(f"the page showed {len(taken)} of {len(happening)} entries")
    return statistics.median(taken), taken[min(int(len(taken) * 0.95), len(taken) - 1)]
