"""A round trip to a host: whether one answers, with the same key, and what its clock says."""

import uuid
from datetime import timedelta

from temporalio import activity
from temporalio.client import ActivityFailureError, Client
from temporalio.common import RetryPolicy
from temporalio.service import RPCError

from iterdev.core.errors import HostError
from iterdev.execution.temporal.connection import unanswered
from iterdev.execution.temporal.names import agent_queue, host_identity
from iterdev.execution.wire_format import Message, decode, encode
from iterdev.host import clock

NAME = "probe"
SECONDS = timedelta(seconds=5)


class Probe(Message, frozen=True, kw_only=True):
    host: str = ""
    clock: float = 0
    """Seconds since the epoch."""


@activity.defn(name=NAME)
async def answer_probe(asked: bytes) -> bytes:
    """What a host does with a probe: the message could be read, so the key is the same."""
    decode(asked, Probe)
    return encode(Probe(host=host_identity(activity.client().identity).name, clock=clock.now()))


async def probe(client: Client, agent: str) -> Probe | None:
    """The answer of a host that offers the agent; None if none has a free slot now."""
    try:
        answer: bytes = await client.execute_activity(
            NAME,
            encode(Probe()),
            id=f"probe/{uuid.uuid4()}",
            task_queue=agent_queue(agent),
            schedule_to_close_timeout=SECONDS,
            retry_policy=RetryPolicy(maximum_attempts=1),
            result_type=bytes,
        )
    except RPCError as error:
        raise unanswered(client, error) from error
    except ActivityFailureError as error:
        cause: BaseException = error
        while cause.__cause__:
            cause = cause.__cause__
        if "timeout" in type(cause).__name__.lower():
            return None
        raise HostError(
            f'A host that offers "{agent}" could not read a message: {cause}',
            hint="copy the same key file to engines and hosts, and restart `iterdev worker`",
        ) from error
    return decode(answer, Probe)
