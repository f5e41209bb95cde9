"""Tokens that agents tell beside the protocol, in the field that it leaves to everybody."""

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


class Extra(msgspec.Struct, frozen=True):
    """Tokens outside of the protocol: gemini tells them with the end of a turn, qwen with each message."""

    quota: Quota = Quota()
    usage: Calls = Calls()


def told_usage(extra: Mapping[str, object] | None) -> Usage:
    try:
        told = msgspec.convert(extra or {}, Extra)
    except msgspec.ValidationError:
        return Usage()
    counts, calls = told.quota.token_count, told.usage
    return Usage(
        input_tokens=counts.input_tokens + calls.input_tokens, output_tokens=counts.output_tokens + calls.output_tokens
    )
