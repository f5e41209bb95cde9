"""Messages, which are those of JSON-RPC 2.0: how they are read and written."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
MISSING_CAPABILITY, UNSUPPORTED_REVISION = -32021, -32022

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What decoding raises for bytes that are not valid."""

Id = int | float | str | None
Document = dict[str, object]


class InvalidMessage(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = failure(None, code, message)


class RequestRefused(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Message(Struct, frozen=True, kw_only=True):
    jsonrpc: Literal["2.0"]
    method: str = ""
    """Empty for the answer to a request of ours."""
    id: Id | UnsetType = UNSET
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def wants_answer(self) -> bool:
        return bool(self.method) and self.id is not UNSET


def read(body: bytes) -> Message:
    try:
        return msgspec.json.decode(body, type=Message)
    except msgspec.ValidationError as error:
        raise InvalidMessage(INVALID_REQUEST, str(error)) from error
    except UNREADABLE as error:
        raise InvalidMessage(PARSE_ERROR, reason(error)) from error


def result(to: Id, document: Mapping[str, object]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": to, "result": document})


def failure(to: Id, code: int, message: str, data: object = None) -> bytes:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return msgspec.json.encode({"jsonrpc": "2.0", "id": to, "error": error})


def request(number: Id, method: str, params: Document) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: Document) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})


def reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
