"""The access of an attempt to the tools of its team: its token, its programs, and the result that it handed in."""

import json
from collections.abc import Mapping

from iterdev.agents.contract import ToolServer
from iterdev.core import results
from iterdev.core.results import Misfit, Result
from iterdev.execution.contract import Job
from iterdev.host.processes.ancestry import parent
from iterdev.host.secrets import Redactor
from iterdev.mcp.tools import CallRejected


class AttemptAccess:
    """The access of an attempt's agent to the tools. It acts for its own task, and for no other."""

    def __init__(self, job: Job, server: ToolServer) -> None:
        self.job, self.server = job, server
        self.reported: Result | None = None
        self.monitors: set[int] = set()
        """Those of its programs, as far as they are on this machine."""
        self.sockets: set[int] = set()
        """Those of which it is known that a program of the attempt has them."""

    def started(self, pid: int) -> None:
        self.monitors.add(parent(pid))

    async def take_result(self) -> Result | None:
        """What the agent has reported since this was last called."""
        reported, self.reported = self.reported, None
        return reported

    def report(self, result: Mapping[str, object], redact: Redactor) -> dict[str, object]:
        """Takes the result that the agent hands in, or raises CallRejected; the answer to the agent."""
        task, kind = self.job.task, self.job.role.result
        body = json.dumps(redact.everywhere(result, results.field_names(kind)), ensure_ascii=False)
        try:
            self.reported = results.decode(body, kind=kind, task=task.id)
        except Misfit as misfit:
            raise CallRejected(f"The result was not accepted: {misfit}. Fix it and report it again.") from misfit
        if lacking := self.reported.omissions:
            return {"accepted": True, "note": f"{lacking}. Add it and report the result again."}
        return {"accepted": True, "note": f"This is the result of {task.id}. You may end now."}
