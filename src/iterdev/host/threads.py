"""Blocking calls beside the event loop: git, and files that are many or large.

Handing a call to a thread and its result back takes longer than reading a small file, which is done in place.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

import anyio

P = ParamSpec("P")
T = TypeVar("T")

MOST = 40
"""Threads: as many calls wait for git or a disk at once."""


async def in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """The call cannot be interrupted: whoever is cancelled waits for its end."""
    await anyio.lowlevel.checkpoint_if_cancelled()
    call = partial(copy_context().run, partial(function, *args, **options))
    running = asyncio.get_running_loop().run_in_executor(None, call)
    with anyio.CancelScope(shield=True):
        value = await running
    return value  # noqa: RET504 - a scope may swallow an exception, for all that a type checker knows


def prepare_threads() -> None:
    """Gives the running event loop enough threads; it ends them itself."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MOST, thread_name_prefix="iterdev"))
