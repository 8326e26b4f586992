"""Refusals by code, and what a tool raises to say what its error means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class SemelError(Exception):
    """Base of all refusals. `str(error)` says what happened, then what to do."""

    code: str = "FAILED"
    default_action: ClassVar[str] = "See `semel explain`."
    default_retriable: ClassVar[bool] = False

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        retriable: bool | None = None,
        corrective_action: str | None = None,
        retry_after: float | None = None,
        path: str | None = None,
        ref: str | None = None,
        evidence: Mapping[str, Any] | None = None,
        value: Any = None,
        receipt: Any = None,
    ) -> None:
        if code is not None:
            self.code = code
        self.message = message
        self.retriable: bool = self.default_retriable if retriable is None else retriable
        self.corrective_action = corrective_action or self.default_action
        #: Seconds.
        self.retry_after = retry_after
        self.path = path
        #: The record as it was looked at, for `semel resolve`.
        self.ref = ref
        self.evidence: Mapping[str, Any] = evidence or {}
        self.value = value
        self.receipt = receipt
        #: It ended a guarded call, so it says nothing about the code around that call.
        self.is_report = False
        super().__init__(f"{message} {self.corrective_action}".strip())

    def __reduce__(self) -> Any:
        return _revive, (type(self), self.args, self.__dict__)


def _revive(kind: type[SemelError], args: tuple[Any, ...], state: Mapping[str, Any]) -> SemelError:
    """From another process: made anew, it would say what to do twice."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InvalidArgs(SemelError):
    code = "INVALID_ARGS"
    default_action = "Correct the arguments and call again."


class NotCanonical(SemelError):
    code = "NOT_CANONICAL"
    default_action = "Pass plain JSON values."


class NotPermitted(SemelError):
    code = "NOT_PERMITTED"


class VersionMismatch(SemelError):
    code = "VERSION_MISMATCH"


class NoIdentity(SemelError):
    code = "NO_IDENTITY"
    default_action = "Wrap the call in `with semel.within(conversation=..., turn=...)`."


class KeyConflict(SemelError):
    code = "KEY_CONFLICT"


class InFlight(SemelError):
    code = "IN_FLIGHT"
    default_retriable = True


class Reentrant(SemelError):
    code = "REENTRANT"
    default_action = "Do not call a tool from inside its own run with the same identity."


class InDoubt(SemelError):
    code = "IN_DOUBT"
    default_action = "Check whether it landed, then `semel resolve` it."


class LeaseLost(SemelError):
    code = "LEASE_LOST"
    default_retriable = True
    default_action = "Call again: the ledger knows who holds the key now."


class NotLanded(SemelError):
    """Raise it in a tool to say: this had no effect. A caller gets it when a call did not land."""

    code = "NOT_LANDED"
    default_retriable = True
    default_action = "It definitely did not land: the same call may be tried again."


class Failed(SemelError):
    code = "FAILED"
    default_action = "The target refused it. Change the request, or wait for the failure window to end."


class Poison(SemelError):
    code = "POISON"


class PartialSuccess(SemelError):
    code = "PARTIAL_SUCCESS"


class Unrecorded(SemelError):
    """It is done, and the ledger does not know. `value` is what it returned."""

    code = "UNRECORDED"
    default_action = "It is done: do not repeat it. The value is on the error."


class ResultOmitted(SemelError):
    code = "RESULT_OMITTED"
    default_action = "It is done: do not do it again. Fetch the value from the target."


class Expired(SemelError):
    code = "EXPIRED"


class StepChanged(SemelError):
    code = "STEP_CHANGED"


class ResolveStale(SemelError):
    code = "RESOLVE_STALE"


class StoreUnavailable(SemelError):
    code = "STORE_UNAVAILABLE"
    default_retriable = True
    default_action = "Nothing was run. Call again when the ledger answers."


class StoreUnsafe(SemelError):
    code = "STORE_UNSAFE"


class StoreMoved(SemelError):
    code = "STORE_MOVED"


class ContractInvalid(SemelError):
    code = "CONTRACT_INVALID"
    default_action = "Correct the tool's options."


class Aborted(SemelError):
    code = "ABORTED"
    default_retriable = True


class Rejected(Exception):
    """Raise it in a tool to say: the target refused it for good. Callers get `Failed`."""


class MaybeLanded(Exception):
    """Raise it in a tool to say: nobody knows whether it landed. Any other exception means the same."""


by_code: dict[str, type[SemelError]] = {
    each.code: each for each in list(globals().values()) if isinstance(each, type) and issubclass(each, SemelError)
}
by_code["FAILED"] = Failed


def from_problem(problem: Mapping[str, Any]) -> SemelError:
    """The exception for an answer in `application/problem+json`."""
    code = str(problem.get("code", "STORE_UNAVAILABLE"))
    # The server says it as TypeScript is written.
    action = NoIdentity.default_action if code == "NO_IDENTITY" else str(problem.get("correctiveAction", ""))
    delay = problem.get("retryAfterMs")
    error = by_code.get(code, SemelError)(
        str(problem.get("detail", "The server refused it.")),
        code=code,
        retriable=bool(problem.get("retriable", False)),
        corrective_action=action,
        retry_after=delay / 1000 if isinstance(delay, (int, float)) else None,
        path=problem.get("path"),
        ref=problem.get("ref"),
        evidence=problem.get("evidence"),
        value=problem.get("value"),
    )
    error.is_report = True
    return error
