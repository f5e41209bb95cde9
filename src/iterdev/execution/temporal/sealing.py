"""Seals what passes through a Temporal server, so that the server, and who else can read it, sees no content.

Who has no key cannot give orders either. A sealed message is bound to its activity: it opens in no other one.
The messages are compressed already, by `wire_format.encode`.
"""

import os
from collections.abc import Sequence
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)

from iterdev.core.errors import HostError
from iterdev.execution.temporal.keys import KeyRing

ENCODING = b"binary/iterdev-sealed"
KEY_ID = "iterdev-key"
NONCE = 12


class CannotOpen(HostError):
    """A message that was sealed with another key, for another activity, or not at all."""


class SealingCodec(PayloadCodec, WithSerializationContext):
    def __init__(self, keys: KeyRing, activity: str = "") -> None:
        self._keys, self._activity = keys, activity

    def with_context(self, context: SerializationContext) -> Self:
        activity = context.activity_id if isinstance(context, ActivitySerializationContext) else None
        return type(self)(self._keys, activity or "")

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._sealed(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._opened(payload) for payload in payloads]

    def _sealed(self, payload: Payload) -> Payload:
        if not self._activity:
            raise RuntimeError("what belongs to no activity cannot be sealed")
        key, nonce = self._keys.sealing, os.urandom(NONCE)
        data = nonce + AESGCM(key.secret).encrypt(nonce, payload.SerializeToString(), self._activity.encode())
        return Payload(metadata={"encoding": ENCODING, KEY_ID: key.id.encode()}, data=data)

    def _opened(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            raise CannotOpen(
                f'The message of "{self._activity}" is not sealed, and was not read',
                hint="look who else may write to the namespace: temporal activity list",
            )
        key_id = payload.metadata.get(KEY_ID, b"").decode(errors="replace")[:40]
        key = self._keys.find(key_id)
        if key is None:
            known = ", ".join(key.id for key in self._keys.keys)
            raise CannotOpen(
                f'The message of "{self._activity}" is sealed with the key "{key_id}", and "{self._keys.file}" has only'
                f" {known}",
                hint=f"copy the same key file to engines and hosts: scp {self._keys.file} HOST:{self._keys.file}",
            )
        try:
            nonce, data = payload.data[:NONCE], payload.data[NONCE:]
            return Payload.FromString(AESGCM(key.secret).decrypt(nonce, data, self._activity.encode()))
        except (InvalidTag, ValueError) as error:
            raise CannotOpen(
                f'The message of "{self._activity}" was changed on its way, or sealed for another activity',
                hint="look who else may write to the namespace: temporal activity list",
            ) from error


def sealing_converter(keys: KeyRing) -> DataConverter:
    return DataConverter(payload_codec=SealingCodec(keys))
