"""Payloads on their way through a server: unreadable without the key, and of use in no other activity."""

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import ActivitySerializationContext

from iterdev.execution.temporal.keys import KeyRing, new_key
from iterdev.execution.temporal.sealing import CannotOpen, SealingCodec

ONE, OTHER = new_key(), new_key()
PAYLOAD = Payload(metadata={"encoding": b"binary/plain"}, data=b"the prompt of DEV-001")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def codec(*keys: object, activity: str = "session/DEV-001/7") -> SealingCodec:
    context = ActivitySerializationContext("default", activity, None, None, None, None, is_local=False)
    return SealingCodec(KeyRing(tuple(keys), "remote.key")).with_context(context)


async def test_what_was_sealed_is_opened_with_the_same_key() -> None:
    sealed = await codec(ONE).encode([PAYLOAD])

    assert await codec(ONE).decode(sealed) == [PAYLOAD]
    assert b"prompt" not in sealed[0].SerializeToString()


async def test_the_same_content_is_never_sealed_to_the_same_bytes() -> None:
    first, second = [(await codec(ONE).encode([PAYLOAD]))[0].data for _ in range(2)]

    assert first != second


async def test_an_older_key_still_opens() -> None:
    sealed = await codec(ONE).encode([PAYLOAD])

    assert await codec(OTHER, ONE).decode(sealed) == [PAYLOAD]


async def test_another_key_is_named_and_opens_nothing() -> None:
    sealed = await codec(ONE).encode([PAYLOAD])

    with pytest.raises(CannotOpen) as caught:
        await codec(OTHER).decode(sealed)

    assert f'sealed with the key "{ONE.id}"' in caught.value.message
    assert OTHER.id in caught.value.message


async def test_a_payload_opens_in_no_other_activity() -> None:
    sealed = await codec(ONE).encode([PAYLOAD])

    with pytest.raises(CannotOpen, match="sealed for another activity"):
        await codec(ONE, activity="session/DEV-001/8").decode(sealed)


async def test_what_is_not_sealed_is_not_read() -> None:
    with pytest.raises(CannotOpen, match="is not sealed"):
        await codec(ONE).decode([PAYLOAD])


@pytest.mark.parametrize("data", [b"", b"short", bytes(40)])
async def test_what_was_changed_is_not_read(data: bytes) -> None:
    sealed = (await codec(ONE).encode([PAYLOAD]))[0]

    with pytest.raises(CannotOpen, match="changed on its way"):
        await codec(ONE).decode([Payload(metadata=dict(sealed.metadata), data=data)])


async def test_nothing_is_sealed_for_no_activity() -> None:
    with pytest.raises(RuntimeError, match="belongs to no activity"):
        await SealingCodec(KeyRing((ONE,))).encode([PAYLOAD])
