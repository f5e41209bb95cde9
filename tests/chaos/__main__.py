"""`make chaos`: a session on three hosts while everything fails, and the negative control, which has to fail."""

import argparse
import sys
import time

import msgspec
from tests.chaos.machines import missing
from tests.chaos.run import CONTROL, CUT_OFF, FULL, SHORT, Plan, run_chaos
from tests.chaos.verdict import Verdict

SHORT_PLAN = Plan(tasks=30, slots=3, lease=8)
AT_WORK = Plan(tasks=5, slots=3, agent_seconds=20, lease=6)
"""Every agent works while its host is cut off, and others have free slots."""
CONTROL_PLAN = msgspec.structs.replace(AT_WORK, command=CONTROL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--short", action="store_true", help="at most three minutes")
    parser.add_argument("--quiet-run", action="store_true", help="without trouble, for figures")
    parser.add_argument("--control-only", action="store_true")
    options = parser.parse_args()
    if why := missing():
        say(f"cannot be run here: {why}")
        return 1
    plan = SHORT_PLAN if options.short else Plan(tasks=options.tasks)
    good = True
    if not options.control_only:
        troubles = () if options.quiet_run else SHORT if options.short else FULL
        good = report(f"{plan.tasks} tasks", run_chaos(plan, troubles, say))
    if not (options.short or options.quiet_run):
        good &= report("cut off, with leases", run_chaos(AT_WORK, CUT_OFF, say))
        found = run_chaos(CONTROL_PLAN, CUT_OFF, say, is_control=True)
        report("cut off, with the heartbeats of the SDK (negative control)", found)
        if not found.outlived:
            say("the negative control passes the check, which therefore shows nothing")
            good = False
    return 0 if good else 1


BEGAN = time.monotonic()


def say(text: str) -> None:
    sys.stdout.write(f"{time.monotonic() - BEGAN:6.1f}  {text}\n")
    sys.stdout.flush()


def report(what: str, found: Verdict) -> bool:
    say(
        f"{what}: {found.agents} agents for {found.tasks} tasks, {len(found.lost)} lost,"
        f" {len(found.landed_twice)} landed twice, {len(found.overlaps)} side by side,"
        f" {len(found.outlived)} at work on what was given away, {len(found.left)} left over"
    )
    for name in ("lost", "landed_twice", "overlaps", "outlived", "left"):
        for one in getattr(found, name):
            say(f"  {name}: {one}")
    return found.holds


if __name__ == "__main__":
    sys.exit(main())
