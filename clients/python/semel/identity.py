"""Whose call it is and what it belongs to, for the code that runs now: by contextvars, so threads with a copied context and
asyncio tasks see it."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import datetime
import os
from collections.abc import Iterator
from typing import Any

from .encoding import encode
from .errors import InvalidArgs


@dataclasses.dataclass(frozen=True)
class Identity:
    conversation: str | None = None
    turn: str | None = None
    run: str | None = None
    caller: str | None = None
    at: str | None = None
    handoff: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


_current: contextvars.ContextVar[Identity | None] = contextvars.ContextVar("semel_identity", default=None)


def current_identity() -> Identity:
    found = _current.get()
    if found is not None:
        return found
    # All calls of a process that `semel run` started belong to that run.
    return Identity(handoff=os.environ.get("SEMEL_CONTEXT") or None)


@contextlib.contextmanager
def within(
    *,
    conversation: str | None = None,
    turn: str | None = None,
    run: str | None = None,
    caller: str | None = None,
    at: datetime.datetime | None = None,
    handoff: str | None = None,
) -> Iterator[None]:
    """Calls inside belong to this conversation, turn, run and caller. A new conversation does not inherit the turn."""
    given = {"conversation": conversation, "turn": turn, "run": run, "caller": caller, "handoff": handoff}
    for name, value in given.items():
        if value is not None and (not isinstance(value, str) or value.strip() == ""):
            raise InvalidArgs(f"within: `{name}` is {value!r}.", path=name, corrective_action="Pass a text.")
    outer = current_identity()
    if handoff is not None:
        # It replaces all but a caller that the program has named.
        outer = Identity(handoff=handoff, caller=outer.caller)
    changes: dict[str, str | None] = {name: value for name, value in given.items() if value is not None}
    if at is not None:
        changes["at"] = str(encode(at, "at"))
    is_other = conversation is not None and conversation != outer.conversation
    if is_other and turn is None:
        changes["turn"] = None
    mark = _current.set(dataclasses.replace(outer, **changes))
    try:
        yield
    finally:
        _current.reset(mark)
