"""Tokens that agents report in the extension field of the protocol, `_meta`."""

from collections.abc import Mapping

import msgspec

from iterdev.core.results import Usage


class Calls(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0


class Counts(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0


class Quota(msgspec.Struct, frozen=True):
    token_count: Counts = Counts()


class Meta(msgspec.Struct, frozen=True):
    """gemini reports its quota with the end of a turn, qwen its usage with each message."""

    quota: Quota = Quota()
    usage: Calls = Calls()


def usage_in_meta(meta: Mapping[str, object] | None) -> Usage:
    try:
        found = msgspec.convert(meta or {}, Meta)
    except msgspec.ValidationError:
        return Usage()
    counts, calls = found.quota.token_count, found.usage
    return Usage(
        input_tokens=counts.input_tokens + calls.input_tokens, output_tokens=counts.output_tokens + calls.output_tokens
    )
