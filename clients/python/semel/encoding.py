"""Python values as JSON, so that two different arguments never become one intent, and back.

Arguments: plain JSON values, and a few types with one documented text each. Everything else is refused, with its place.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import types
import typing
import uuid
from collections.abc import Mapping
from typing import Any

from .errors import NotCanonical

#: Larger integers are other numbers in JavaScript.
MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 64


def encode(value: Any, path: str = "args") -> Any:
    """The JSON value, or NOT_CANONICAL with its place."""
    return _encode(value, path, 0)


def _encode(value: Any, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _refuse(path, f"is nested deeper than {MAX_DEPTH} levels", "Pass less, or an id.")
    if value is None or value is True or value is False:
        return value
    if isinstance(value, enum.Enum):
        return _encode(value.value, path, depth + 1)
    if isinstance(value, str):
        # Not str(value): a subclass may show every value as "***", and all of them would be one.
        text = str.__str__(value)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise _refuse(path, "has a lone surrogate, which is not a character", "Pass valid text.") from None
        return text
    if isinstance(value, int):
        number = int.__int__(value)
        if abs(number) > MAX_INTEGER:
            raise _refuse(path, f"is {number}, which other programs would round", "Pass it as text: str(value).")
        return number
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refuse(path, f"is {value}", "Pass a finite number, or None.")
        return float.__float__(value)
    if isinstance(value, (list, tuple)):
        return [_encode(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
    if isinstance(value, Mapping):
        result: dict[str, Any] = {}
        for key, each in value.items():
            # 1 and "1" would be one name.
            if not isinstance(key, str) or isinstance(key, enum.Enum):
                raise _refuse(path, f"has the key {key!r}, which is not text", "Use text keys.")
            name = _encode(key, f"a key of {path}", depth)
            if name in result:
                raise _refuse(path, f"has two keys that are both {name!r}", "Use each name once.")
            result[name] = _encode(each, f"{path}.{key}", depth + 1)
        return result
    if isinstance(value, datetime.datetime):
        return _instant(value, path)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return _decimal(value, path)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _encode(getattr(value, field.name), f"{path}.{field.name}", depth + 1)
            for field in dataclasses.fields(value)
        }
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _encode(dump(), path, depth + 1)
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise _refuse(path, "is bytes", "Pass text: value.hex(), or a digest of it.")
    if isinstance(value, (set, frozenset)):
        raise _refuse(path, "is a set, which has no order", "Pass sorted(value).")
    raise _refuse(path, f"is of type {type(value).__name__}", "Pass plain JSON values.")


def _instant(value: datetime.datetime, path: str) -> str:
    if value.tzinfo is None or value.utcoffset() is None:
        raise _refuse(path, "is a datetime without a time zone", "Add one: value.replace(tzinfo=...).")
    if getattr(value, "nanosecond", 0):
        # A Timestamp of pandas: two of them would be one text.
        raise _refuse(path, "has nanoseconds", "Round it: value.floor('us').")
    utc = value.astimezone(datetime.timezone.utc)
    digits = "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    return utc.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def _decimal(value: decimal.Decimal, path: str) -> str:
    if not value.is_finite():
        raise _refuse(path, f"is {value}", "Pass a finite number, or None.")
    # Equal decimals have equal texts, and keep every digit: normalize() would round them to the context's precision.
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "0") else text


def _refuse(path: str, what: str, then: str) -> NotCanonical:
    return NotCanonical(f"{path} {what}.", path=path, corrective_action=then)


def to_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


#: The ledger keeps no larger result, and neither a server nor a proxy in front of it has to take a larger report.
_RESULT_BYTES = 1_048_576


def encode_result(value: Any) -> Any:
    plain = encode(value, "the result")
    if len(to_text(plain).encode("utf-8")) > _RESULT_BYTES:
        raise NotCanonical(f"the result has more than {_RESULT_BYTES} bytes")
    return plain


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are one to the server, for which 1 and 1.0 are: it makes the keys, and sends 1 for both."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        # JavaScript writes a large float as an integer with fewer digits.
        return float(one) == float(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(each, other[name]) for name, each in one.items())
    return type(one) is type(other) and bool(one == other)


def restore(value: Any, hint: Any) -> Any:
    """A decoded JSON value as the annotated type; itself where the annotation does not say more."""
    if hint is None or hint is Any or hint is type(None):
        return value
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin is typing.Annotated:
        return restore(value, args[0])
    if origin is typing.Union or origin is types.UnionType:
        if value is None:
            return None
        for each in args:
            if each is type(None):
                continue
            try:
                made = restore(value, each)
            except (TypeError, ValueError, KeyError, ArithmeticError):
                continue
            if _is_of(made, each):
                return made
        return value
    if origin is list and isinstance(value, list):
        return [restore(each, args[0]) for each in value]
    if origin is tuple and isinstance(value, list):
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(restore(each, args[0]) for each in value)
        return tuple(restore(each, part) for each, part in zip(value, args, strict=True))
    if hint is tuple and isinstance(value, list):
        return tuple(value)
    if origin is dict and isinstance(value, dict):
        return {key: restore(each, args[1]) for key, each in value.items()}
    if not isinstance(hint, type) or value is None:
        return value
    if issubclass(hint, enum.Enum):
        return hint(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if issubclass(hint, datetime.datetime) and isinstance(value, str):
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    if issubclass(hint, datetime.date) and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if issubclass(hint, (uuid.UUID, decimal.Decimal)) and isinstance(value, str):
        return hint(value)
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        return hint(**{name: restore(each, hints.get(name)) for name, each in value.items()})
    validate = getattr(hint, "model_validate", None)
    if callable(validate) and isinstance(value, dict):
        return validate(value)
    return value


def _is_of(value: Any, hint: Any) -> bool:
    kind = typing.get_origin(hint) or hint
    return not isinstance(kind, type) or isinstance(value, kind)
