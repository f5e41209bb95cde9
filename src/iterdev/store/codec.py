"""Events to bytes and back. The only place that knows how the journal spells them."""

import msgspec

from iterdev.core.events import Event

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    return _encoder.encode(event)


def decode(body: bytes) -> Event:
    return _decoder.decode(body)
