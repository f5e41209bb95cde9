"""Connects to a Temporal server, whose address, namespace and credentials are in Temporal's own configuration."""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache

from msgspec import Struct
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeNamespaceResponse
from temporalio.client import AsyncActivityHandle, Client
from temporalio.converter import ActivitySerializationContext
from temporalio.envconfig import ClientConfigProfile, ClientConnectConfig
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from iterdev.core.errors import HostError, UserError
from iterdev.execution.temporal.keys import KeyRing
from iterdev.execution.temporal.sealing import sealing_converter

ADDRESS = "localhost:7233"
NAMESPACE = "default"
DEFAULT_PROFILE = "default"
TIMEOUT = timedelta(seconds=10)
WORKER_HEARTBEAT = timedelta(seconds=10)
"""How often hosts tell the server that they are there. By default it is a minute, and none is listed before."""

PASSING = frozenset(
    [
        *(RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED),
        *(RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.UNKNOWN, RPCStatusCode.INTERNAL),
    ]
)
"""What a server answers, or a client for it, that may be over when it is asked again."""
_REFUSED = frozenset([RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED])


class Unreachable(HostError):
    """The server does not answer: it may later."""


class Connection(Struct, frozen=True):
    client: Client
    address: str
    namespace: str
    retention: timedelta
    """How long the server knows how an attempt ended."""
    payload_limit: int
    """Bytes of a message that the server accepts; 0 if it does not say."""


@cache
def _runtime(worker_heartbeat: timedelta) -> Runtime:
    # Its core would write its own warnings over the output of commands.
    return Runtime(telemetry=TelemetryConfig(logging=None), worker_heartbeat_interval=worker_heartbeat)


async def connect(
    profile: str,
    keys: KeyRing,
    *,
    identity: str = "",
    environment: Mapping[str, str] = os.environ,
    worker_heartbeat: timedelta = WORKER_HEARTBEAT,
) -> Connection:
    """A client whose messages are sealed, of a server that is there and can do what is needed."""
    settings = _settings(profile, environment)
    address, namespace = settings.get("target_host", ADDRESS), settings.get("namespace", NAMESPACE)
    settings["target_host"], settings["namespace"] = address, namespace
    try:
        client = await Client.connect(
            **settings,
            data_converter=sealing_converter(keys),
            identity=identity or None,
            runtime=_runtime(worker_heartbeat),
            connect_timeout=TIMEOUT,
        )
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=namespace), timeout=TIMEOUT
        )
    except RPCError as error:
        raise _refusal(error, address, namespace) from error
    except (RuntimeError, ValueError) as error:
        raise _unreachable(address, str(error)) from error
    return _usable(described, client, address)


def unanswered(client: Client, error: RPCError) -> HostError:
    """What it means for the user that the server of a client has refused a request, or not answered it."""
    return _refusal(error, client.service_client.config.target_host, client.namespace)


def attempt_handle(client: Client, task_token: bytes, activity: str) -> AsyncActivityHandle:
    """For heartbeats and the report of an attempt: they are sealed for its activity."""
    context = ActivitySerializationContext(
        namespace=client.namespace,
        activity_id=activity,
        activity_type=None,
        activity_task_queue=None,
        workflow_id=None,
        workflow_type=None,
        is_local=False,
    )
    return client.get_async_activity_handle(task_token=task_token).with_context(context)


def _settings(profile: str, environment: Mapping[str, str]) -> ClientConnectConfig:
    try:
        # The default one need not be in a file, and TEMPORAL_PROFILE may name another.
        named = None if profile == DEFAULT_PROFILE else profile
        loaded = ClientConfigProfile.load(named, override_env_vars=dict(environment))
        return loaded.to_client_connect_config()
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f'The profile "{profile}" of Temporal\'s configuration cannot be used: {_sentence(str(error))}',
            hint=f"temporal config set --profile {profile} --prop address --value {ADDRESS}",
        ) from error


def _usable(described: DescribeNamespaceResponse, client: Client, address: str) -> Connection:
    info = described.namespace_info
    if not info.capabilities.standalone_activities:
        raise HostError(
            f'The Temporal server at "{address}" cannot start activities without a workflow',
            hint="use version 1.32 of the server, or newer",
        )
    return Connection(
        client,
        address,
        client.namespace,
        described.config.workflow_execution_retention_ttl.ToTimedelta(),
        info.limits.blob_size_limit_error,
    )


def _refusal(error: RPCError, address: str, namespace: str) -> HostError:
    if error.status is RPCStatusCode.NOT_FOUND:
        return HostError(
            f'The Temporal server at "{address}" has no namespace "{namespace}"',
            hint=f"temporal operator namespace create --namespace {namespace} --retention 7d",
        )
    if error.status in _REFUSED:
        return HostError(
            f'The Temporal server at "{address}" refuses the namespace "{namespace}" with these credentials:'
            f" {_sentence(error.message)}",
            hint="temporal config list; temporal config get",
        )
    return _unreachable(address, error.message)


_CLOSED = "it closed the connection, as one does that wants TLS, or another certificate of its clients"
_CLOSES = ("AlertReceived", "connection closed", "closed connection", "ConnectionReset", "BrokenPipe", "stream closed")
REASONS = {
    "InvalidCertificate": "its certificate is not one of the authority that is trusted here",
    **dict.fromkeys(_CLOSES, _CLOSED),
    "Connection refused": "nothing listens there",
    "Timeout": "it does not answer",
}
"""What transports say, as people understand it."""


def _unreachable(address: str, reason: str) -> Unreachable:
    known = next((meaning for words, meaning in REASONS.items() if words in reason), _sentence(reason))
    return Unreachable(
        f'The Temporal server at "{address}" cannot be reached: {known}',
        hint=f"temporal operator cluster health --address {address}",
    )


def _sentence(reason: str) -> str:
    """What the SDK says, on one line, of a length that can be read."""
    text = " ".join(reason.split())
    return text if len(text) <= 300 else f"{text[:300]}…"
