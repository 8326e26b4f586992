"""One call: ask whether to execute, execute under a lease, report how it ended. The same words for sync and async code; only
who sends and who waits differs."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import itertools
import math
import os
import secrets
import socket
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from . import transport
from .client import Client, Talk, default_client
from .encoding import encode, encode_result, restore
from .errors import (
    ContractInvalid,
    Failed,
    InDoubt,
    InFlight,
    MaybeLanded,
    NotCanonical,
    NotLanded,
    Reentrant,
    Rejected,
    ResultOmitted,
    SemelError,
    StoreUnavailable,
    Unrecorded,
)
from .identity import current_identity
from .lease import AsyncHeartbeat, Heartbeat, Lease, Moment
from .transport import Request

R = TypeVar("R")
T = TypeVar("T")

_LONGEST_WAIT = 50.0
_LONGEST_REF = 500
_SETTLE_PATIENCE = 60.0
#: How long a program that is told to end goes on trying to report, in seconds.
LAST_PATIENCE = 5.0
#: How long it waits for the answer to a claim that it gives back, in seconds.
GIVE_BACK = 2.0
#: The same where it has lost the answer, and is not told to end.
LONG_GIVE_BACK = 10.0
#: Between questions where the server has no place to wait, in seconds.
_FIRST_DELAY = 0.25
_LONGEST_DELAY = 2.0
#: How long a cancelled call waits for an answer that is on its way.
_ANSWER = 0.5


@dataclass(frozen=True)
class Receipt:
    """What the caller gets back besides the value."""

    tool: str
    key: str
    #: The record's short name, for `semel show`.
    id: str
    attempt: int
    #: This call ran the effect.
    executed: bool
    #: The value is that of an earlier execution: nothing was done again.
    replayed: bool
    drift: tuple[str, ...] = ()
    remote_ref: str | None = None
    #: Why the value was not stored, so that no replay can return it.
    omitted: str | None = None
    settled_at: str | None = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """How a call ended, as a value."""

    ok: bool
    value: R | None
    error: SemelError | None
    receipt: Receipt | None

    def unwrap(self) -> R:
        if self.error is not None:
            raise self.error
        return cast(R, self.value)


@dataclass(frozen=True)
class Call:
    """What is asked, once: repeats of a lost request send the same."""

    tool: str
    path: str
    body: dict[str, Any]
    #: How long to wait while another worker executes it, in seconds.
    wait: float
    client: Client
    #: The type that a replayed value is restored to.
    returns: Any = None


@dataclass
class Begun:
    outcome: str
    answer: dict[str, Any]
    #: When it was asked for.
    asked: Moment = field(default_factory=Moment)

    @property
    def is_claimed(self) -> bool:
        return bool(self.answer.get("claimed", True))


def worker_name() -> str:
    return f"python {os.getpid()} on {socket.gethostname()}"[:200]


class Claim:
    """From the question to the start of the effect. Until then nothing can have landed, so whatever interrupts it gives it back:
    left to its lease, it would be in doubt."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._body = {**call.body, "token": secrets.token_urlsafe(24), "worker": worker_name()}
        self._begun: Begun | None = None
        #: The effect may have begun.
        self.is_started = False

    def ask(self) -> Talk[Begun]:
        call = self._call
        until = time.monotonic() + call.wait
        active = {each.id for each in _active.get() if not each.is_over}
        # Inside another call, look first whether it would wait for itself.
        patience = 0.0 if active else min(call.wait, _LONGEST_WAIT)
        pause, delay = _FIRST_DELAY, 0.0
        while True:
            wait = max(0.0, patience)
            sent = time.monotonic() + delay
            try:
                patient = {"waitMs": int(wait * 1000)} if call.wait > 0 else {}
                asked = Moment()
                request = Request(call.path, {**self._body, **patient}, timeout=wait + transport.ANSWER_TIMEOUT, delay=delay)
                answer = yield request
                self._begun = Begun(str(answer["outcome"]), answer, asked)
                return self._begun
            except InFlight as error:
                if error.ref is not None and error.ref.split("@")[0] in active:
                    raise Reentrant(f"{call.tool} was called inside its own run, with the same identity.") from None
                now = time.monotonic()
                if now >= until:
                    raise
                delay = 0.0
                if wait > 0 and now - sent < wait / 2:
                    # All places to wait are taken.
                    delay = min(pause, until - now, _LONGEST_DELAY if error.retry_after is None else error.retry_after)
                    pause = min(pause * 2, _LONGEST_DELAY)
                patience = min(until - now - delay, _LONGEST_WAIT)

    def refused(self, error: SemelError) -> Talk[None]:
        """Where nobody answered, it may be claimed all the same."""
        if self._begun is None and error.code == "STORE_UNAVAILABLE":
            yield from self.give_back(LONG_GIVE_BACK)
        else:
            yield from self.give_back_known()

    def give_back(self, timeout: float = GIVE_BACK) -> Talk[None]:
        if not self._call.client.has_asked:
            return
        if self._begun is None:
            # The answer was lost: with its token, the claim is the same one.
            answer = yield Request(self._call.path, self._body, timeout=timeout, patience=0)
            self._begun = Begun(str(answer["outcome"]), answer)
        yield from self.give_back_known()

    def give_back_known(self) -> Talk[None]:
        begun = self._begun
        if begun is not None and begun.outcome == "execute" and begun.is_claimed:
            error = {"message": "interrupted before it began"}
            body = {"attempt": begun.answer["attempt"], "outcome": "notLanded", "error": error}
            yield Request("/v1/settle", body, timeout=GIVE_BACK, patience=0)


class Running:
    """The steps of a function. It is not done before those are that it does not wait for."""

    def __init__(self) -> None:
        self._count = 0
        self._has_returned = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        #: Async steps that were called, and have not begun.
        self._called: dict[Coroutine[Any, Any, Any], str] = {}

    def call(self, name: str, step: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        """Without an `await` it would never run, and its function would be recorded as done."""

        async def begin() -> T:
            self._called.pop(made, None)
            return await step()

        made = begin()
        self._called[made] = name
        return made

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        with self._changed:
            self._count += 1
        try:
            yield
        except BaseException as error:
            if self._has_returned and self._error is None:
                self._error = error
            raise
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._has_returned = True
            self._changed.wait_for(lambda: self._count == 0)
        if self._error is not None:
            raise self._error

    async def finish_async(self) -> None:
        self._has_returned = True
        # A task begins in the next turn of its loop.
        for _ in range(3):
            if self._called:
                await asyncio.sleep(0)
        if self._called:
            names = ", ".join(self._called.values())
            for each in self._called:
                each.close()
            raise ContractInvalid(f"The step {names} was called, and not awaited: it has not run.", corrective_action="Await it.")
        while self._count > 0:
            await asyncio.sleep(0.02)
        if self._error is not None:
            raise self._error


class _Base:
    """What an effect may know of its attempt."""

    def __init__(self, call: Call, begun: Begun) -> None:
        answer = begun.answer
        self._call = call
        self._steps = Running()
        self._ticket = str(answer["attempt"])
        self._fates: dict[str, str] = {}
        self.id = str(answer.get("recordId", ""))
        #: The idempotency key for the target, in its provider's format: the same for every attempt at this intent.
        self.key = str(answer.get("key", ""))
        #: 1 for the first.
        self.attempt = int(answer.get("number", 1))
        #: Grows with every claim.
        self.fence = int(answer.get("fence", 0))
        timeout = answer.get("timeoutMs")
        self._lease = Lease(
            float(answer.get("leaseMs", 60_000)) / 1000, begun.asked, None if timeout is None else float(timeout) / 1000
        )
        #: Set when another worker may take this call over: stop, and let nothing more happen.
        self.lost: threading.Event = self._lease.lost if begun.is_claimed else threading.Event()
        self.prepared = answer.get("prepared")
        self._is_claimed = begun.is_claimed
        #: The call has ended, and this is what a task that it left behind still has.
        self.is_over = False
        #: Nothing counts as sent before.
        self._is_dispatched = call.body.get("dispatch") != "explicit"
        self._remote_ref: str | None = None

    def _note(self, remote_ref: str) -> Talk[None]:
        if not isinstance(remote_ref, str) or remote_ref == "":
            raise ValueError("note() needs the id that the target gave it, as text")
        try:
            length = len(remote_ref.encode("utf-16-le")) // 2
        except UnicodeEncodeError:
            raise ValueError("note(): the id has a lone surrogate, which is not a character") from None
        if length > _LONGEST_REF:
            # It would come back with the report, which the server would refuse too.
            raise ValueError(f"note(): the id has more than {_LONGEST_REF} characters")
        self._remote_ref = remote_ref
        if self._is_claimed:
            yield Request("/v1/renew", {"attempt": self._ticket, "remoteRef": remote_ref})

    def _renew(self) -> Talk[bool]:
        """Whether it is worth renewing again."""
        asked = Moment()
        try:
            yield Request(
                "/v1/renew", {"attempt": self._ticket}, timeout=self._lease.request_timeout, patience=self._lease.seconds / 3
            )
        except SemelError as error:
            if error.code == "STORE_UNAVAILABLE":
                return True
            self.lost.set()
            return False
        self._lease.renewed(asked)
        return True

    def _check_start(self) -> Talk[None]:
        """A program that waited or was stopped since it asked may start nothing that another worker has taken over."""
        if not self._is_claimed or self._lease.is_young:
            return
        asked = Moment()
        yield Request("/v1/renew", {"attempt": self._ticket})
        self._lease.renewed(asked)

    def _dispatch(self, prepared: Any, keyed: bool) -> Talk[None]:
        body: dict[str, Any] = {"attempt": self._ticket, "keyed": keyed}
        if prepared is not None:
            body["prepared"] = encode(prepared, "prepared")
        # From here on it may have been sent, whatever the answer: also where an `await` was forgotten.
        self._is_dispatched = True
        return self._send_dispatch(body)

    def _send_dispatch(self, body: dict[str, Any]) -> Talk[None]:
        yield Request("/v1/dispatch", body)

    def _step_call(self, name: str, lease: int | None, timeout: int | None) -> Call:
        if self._fates.get(name, "not landed") != "not landed":
            raise ValueError(f"{self._call.tool}: two steps of one run are called {name}. Give each its own name.")
        self._fates[name] = "in doubt"
        self._is_dispatched = True
        body: dict[str, Any] = {"attempt": self._ticket, "step": name}
        if lease is not None:
            body["lease"] = lease
        if timeout is not None:
            body["timeout"] = timeout
        return Call(f"{self._call.tool}.{name}", "/v1/step", body, 600.0, self._call.client)

    def _judge_step(self, name: str, outcome: Outcome[Any]) -> None:
        code = None if outcome.error is None else outcome.error.code
        if code is None or code == "RESULT_OMITTED":
            self._fates[name] = "landed"
        elif code in ("NOT_LANDED", "FAILED"):
            self._fates[name] = "not landed"

    @property
    def has_open_step(self) -> bool:
        return any(fate != "not landed" for fate in self._fates.values())


class Context(_Base):
    """Of a sync function."""

    def note(self, remote_ref: str) -> None:
        """Keeps the id that the target gave it, in case this worker dies."""
        self._call.client.drive(self._note(remote_ref))

    def dispatch(self, prepared: Any = None, *, keyed: bool = True) -> None:
        """Says that the effect is sent now, for a tool with `dispatch="explicit"`. Raises if the lease is lost."""
        self._call.client.drive(self._dispatch(prepared, keyed))

    def step(self, name: str, work: Callable[[], T], *, lease: int | None = None, timeout: int | None = None) -> T:
        """An effect with a record of its own: a later attempt replays it if it landed. Times in milliseconds."""
        check_work(name, work)
        with self._steps.step():
            outcome = run(self._step_call(name, lease, timeout), lambda _, __: work())
            self._judge_step(name, outcome)
            return cast(T, outcome.unwrap())


class AsyncContext(_Base):
    """Of an async function."""

    async def note(self, remote_ref: str) -> None:
        """Keeps the id that the target gave it, in case this worker dies."""
        await self._call.client.drive_async(self._note(remote_ref))

    def dispatch(self, prepared: Any = None, *, keyed: bool = True) -> Coroutine[Any, Any, None]:
        """Says that the effect is sent now, for a tool with `dispatch="explicit"`. Raises if the lease is lost."""
        return self._call.client.drive_async(self._dispatch(prepared, keyed))

    def step(
        self, name: str, work: Callable[[], Awaitable[T]], *, lease: int | None = None, timeout: int | None = None
    ) -> Coroutine[Any, Any, T]:
        """An effect with a record of its own: a later attempt replays it if it landed. Times in milliseconds."""
        return self._steps.call(name, lambda: self._step(name, work, lease, timeout))

    async def _step(self, name: str, work: Callable[[], Awaitable[T]], lease: int | None, timeout: int | None) -> T:
        check_work(name, work, may_be_async=True)
        with self._steps.step():
            outcome = await run_async(self._step_call(name, lease, timeout), lambda _, __: work())
            self._judge_step(name, outcome)
            return cast(T, outcome.unwrap())


_active: contextvars.ContextVar[tuple[_Base, ...]] = contextvars.ContextVar("semel_active", default=())


def current() -> Context:
    """The context of the sync tool that runs now."""
    return _innermost(Context)


def current_async() -> AsyncContext:
    """The context of the async tool that runs now."""
    return _innermost(AsyncContext)


def _innermost(kind: type[T]) -> T:
    active = _active.get()
    if not active or not isinstance(active[-1], kind):
        other = "semel.current_async()" if kind is Context else "semel.current()"
        raise RuntimeError(
            "No tool of this kind runs here." + (f" Use {other} in it." if active else " Call it inside a tool.")
        )
    return active[-1]


@contextlib.contextmanager
def _entered(context: _Base) -> Iterator[None]:
    mark = _active.set((*_active.get(), context))
    try:
        yield
    finally:
        context.is_over = True
        _active.reset(mark)


@dataclass
class Ended:
    outcome: str
    value: Any = None
    thrown: BaseException | None = None


def is_word(thrown: BaseException | None) -> bool:
    """What a function says about its own effect by raising. To the code around that effect it says nothing."""
    return isinstance(thrown, (Rejected, MaybeLanded)) or (isinstance(thrown, NotLanded) and not thrown.is_report)


def as_report(name: str, thrown: BaseException) -> SemelError:
    """The same for the code around."""
    kind = Failed if isinstance(thrown, Rejected) else NotLanded
    error = kind(f"{name}: {words_of(thrown)}.")
    error.is_report = True
    return error


def _is_lazy(value: Any) -> bool:
    return (
        inspect.isawaitable(value)
        or inspect.isgenerator(value)
        or inspect.isasyncgen(value)
        or isinstance(value, (map, filter, itertools.starmap, concurrent.futures.Future))
    )


def is_async(fn: Any) -> bool:
    """Also an object whose `__call__` is async."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(type(fn), "__call__", None))


def check_work(name: str, work: Any, *, may_be_async: bool = False) -> None:
    """What can be seen before it runs is refused before it is claimed: afterwards it would be in doubt."""
    if inspect.isgeneratorfunction(work) or inspect.isasyncgenfunction(work):
        raise ContractInvalid(f"{name}: its function is a generator.", corrective_action="Return the result instead of yielding it.")
    if not may_be_async and is_async(work):
        raise ContractInvalid(
            f"{name}: its function is async, and nobody would await it.",
            corrective_action="Use the async form: `once_async`, or an async tool or job.",
        )


def check_done(name: str, value: Any) -> None:
    """A generator or a coroutine runs later, or never: it must not be recorded as done. Nor must a list of them."""
    parts = value if isinstance(value, (list, tuple)) else list(value.values()) if isinstance(value, dict) else ()
    lazy = [each for each in (value, *parts) if _is_lazy(each)]
    if not lazy:
        return
    for each in lazy:
        if inspect.iscoroutine(each) or inspect.isgenerator(each):
            # Nobody gets it, so it never runs.
            each.close()
    raise ContractInvalid(
        f"{name}: its function returned a {type(lazy[0]).__name__}, which has not run or not ended.",
        corrective_action="Wait for it inside the function, and return its result. An async function needs `async def`.",
    )


def classify(context: _Base, thrown: BaseException) -> Ended:
    """Only what the tool itself says is definite. An error of another guarded call says nothing about this one."""
    outcome = "unknown"
    if (isinstance(thrown, NotLanded) and not thrown.is_report) or not context._is_dispatched:
        outcome = "notLanded"
    elif isinstance(thrown, Rejected):
        outcome = "failed"
    if outcome != "unknown" and context.has_open_step:
        outcome = "unknown"
    return Ended(outcome, thrown=thrown)


def settle(call: Call, context: _Base, ended: Ended, patience: float = _SETTLE_PATIENCE) -> Talk[Outcome[Any]]:
    body: dict[str, Any] = {"attempt": context._ticket, "outcome": ended.outcome}
    if context._remote_ref is not None:
        body["remoteRef"] = context._remote_ref
    if ended.outcome == "succeeded":
        body |= _value_of(call, ended.value)
    else:
        body["error"] = _error_of(ended.thrown)
    try:
        answer = yield Request("/v1/settle", body, timeout=min(transport.ANSWER_TIMEOUT, patience), patience=patience)
    except SemelError as error:
        if ended.outcome == "succeeded" and error.code in ("STORE_UNAVAILABLE", "INVALID_ARGS"):
            lost = Unrecorded(f"{call.tool} is done, but the ledger did not take the record.", value=ended.value)
            lost.__cause__ = error
            error = lost
        elif ended.outcome == "succeeded" and error.value is None:
            # Also of a record that was removed meanwhile: it is done, whatever the ledger says.
            error.value = ended.value
        elif ended.thrown is not None:
            if error.code == "STORE_UNAVAILABLE":
                # Its own words are about a request that has run nothing.
                error = unreported(call.tool, ended)
            error.__cause__ = ended.thrown
        error.is_report = True
        return Outcome(False, None, error, None)
    receipt = _receipt(call, answer)
    if ended.outcome != "succeeded":
        # Another attempt's success may have settled it meanwhile.
        if receipt is not None and receipt.replayed and "value" in answer:
            return _restored(call, answer, receipt)
        return Outcome(False, None, _as_reported(call, ended, receipt), receipt)
    return Outcome(True, ended.value, None, receipt)


def unreported(name: str, ended: Ended) -> SemelError:
    """How it ended is not on record: the next call waits for the lease, and then tells."""
    return StoreUnavailable(
        f"{name} ended ({_error_of(ended.thrown)['message']}), and the ledger did not take the report.",
        corrective_action="The effect ran and may have landed. Call again when the ledger answers: it repeats nothing that may have landed.",
    )


def _as_reported(call: Call, ended: Ended, receipt: Receipt | None) -> SemelError:
    why = _error_of(ended.thrown)["message"]
    kinds: dict[str, tuple[type[SemelError], str]] = {
        "notLanded": (NotLanded, "did not land"),
        "failed": (Failed, "was refused"),
        "unknown": (InDoubt, "may have landed"),
    }
    kind, words = kinds[ended.outcome]
    ref = None if receipt is None else f"{receipt.id}@{receipt.raw.get('fence')}"
    action = f"Check whether it landed, then run: semel resolve {ref} landed/not-landed" if kind is InDoubt and ref else None
    error = kind(f"{call.tool} {words}: {why}.", ref=ref, receipt=receipt, corrective_action=action)
    error.is_report = True
    error.__cause__ = ended.thrown
    return error


def _value_of(call: Call, value: Any) -> dict[str, Any]:
    """The value, if a replay can give back an equal one; otherwise why it cannot."""
    if value is None:
        return {"value": None}
    try:
        plain = encode_result(value)
        is_same = bool(restore(plain, call.returns) == value)
        why = f"a replay would return another value than this {type(value).__name__}"
    except NotCanonical as error:
        is_same, why = False, error.message
    except Exception as error:
        is_same, why = False, f"{type(error).__name__}: {error}"
    if is_same:
        return {"value": plain}
    warn(
        f"{call.tool}: its result is not stored ({why}). A repeated call does not run it again, and raises ResultOmitted. "
        "Return less, or plain data, or annotate the return type."
    )
    return {"omitted": why[:500]}


def warn(text: str) -> None:
    # Where warnings are errors, one would keep a success from its record.
    with contextlib.suppress(Warning):
        warnings.warn(text, stacklevel=3)


def words_of(thrown: BaseException | None) -> str:
    try:
        return str(thrown.message if isinstance(thrown, SemelError) else thrown)
    except Exception as error:
        return f"its text cannot be read ({type(error).__name__})"


def _error_of(thrown: BaseException | None) -> dict[str, Any]:
    text = words_of(thrown) or type(thrown).__name__
    clean = text.encode("utf-8", "replace").decode("utf-8")[:5_000]
    if isinstance(thrown, (SemelError, Rejected, MaybeLanded)):
        return {"message": clean}
    return {"message": clean, "code": type(thrown).__name__[:200]}


def _receipt(call: Call, answer: dict[str, Any]) -> Receipt | None:
    raw = answer.get("receipt")
    if not isinstance(raw, dict):
        return None
    return Receipt(
        tool=str(raw.get("contract", call.tool)),
        key=str(raw.get("key", "")),
        id=str(raw.get("id", "")),
        attempt=int(raw.get("attempt", 0)),
        executed=bool(raw.get("executed")),
        replayed=bool(raw.get("replayed")),
        drift=tuple(raw.get("drift") or ()),
        remote_ref=raw.get("remoteRef"),
        omitted=raw.get("omitted"),
        settled_at=raw.get("settledAt"),
        raw=raw,
    )


def _unclaimed(call: Call) -> Receipt:
    return Receipt(call.tool, "", "", 1, executed=True, replayed=False)


def _replay(call: Call, begun: Begun) -> Outcome[Any]:
    return _restored(call, begun.answer, _receipt(call, begun.answer))


def _restored(call: Call, answer: dict[str, Any], receipt: Receipt | None) -> Outcome[Any]:
    try:
        value = restore(answer.get("value"), call.returns)
    except Exception as error:
        # An older program returned another type. An error of Python would look as if the call had failed.
        omitted = ResultOmitted(
            f"{call.tool} was done before, and its value does not fit the annotated type ({type(error).__name__}: {words_of(error)}).",
            value=answer.get("value"),
            receipt=receipt,
        )
        omitted.is_report = True
        return Outcome(False, None, omitted, receipt)
    return Outcome(True, value, None, receipt)


Effect = Callable[[Any, Any], Any]
Judge = Callable[[_Base, BaseException], Ended]


def run(call: Call, effect: Effect, judge: Judge = classify) -> Outcome[Any]:
    """`effect(args, context)`. Refusals are values; what a read raises passes."""
    claim = Claim(call)
    try:
        return _run(call, claim, effect, judge)
    except BaseException:
        if not claim.is_started:
            with contextlib.suppress(Exception):
                call.client.drive(claim.give_back())
        raise


def _run(call: Call, claim: Claim, effect: Effect, judge: Judge) -> Outcome[Any]:
    client = call.client
    try:
        begun = client.drive(claim.ask())
        if begun.outcome != "execute":
            return _replay(call, begun)
        context = Context(call, begun)
        client.drive(context._check_start())
    except SemelError as error:
        with contextlib.suppress(SemelError):
            client.drive(claim.refused(error))
        return Outcome(False, None, error, None)
    ended: Ended
    with _beating(context, Heartbeat), _entered(context):
        try:
            claim.is_started = True
            ended = Ended("succeeded", effect(begun.answer.get("args"), context))
            context._steps.finish()
            if begun.is_claimed:
                check_done(call.tool, ended.value)
        except BaseException as thrown:
            if not begun.is_claimed:
                if is_word(thrown):
                    raise as_report(call.tool, thrown) from thrown
                raise
            ended = judge(context, thrown)
            if not isinstance(thrown, Exception):
                # The program is told to end: it may not wait long, and its own exception goes on.
                with contextlib.suppress(Exception):
                    client.drive(settle(call, context, ended, LAST_PATIENCE))
                raise
        if not begun.is_claimed:
            return Outcome(True, ended.value, None, _unclaimed(call))
        try:
            return client.drive(settle(call, context, ended))
        except BaseException:
            # An interrupt, a time limit: what has landed is still reported. A report may be repeated.
            with contextlib.suppress(Exception):
                client.drive(settle(call, context, ended, LAST_PATIENCE))
            raise


H = TypeVar("H", Heartbeat, AsyncHeartbeat)


def _beating(context: _Base, kind: type[H]) -> H | contextlib.nullcontext[None]:
    return kind(context._call.client, context._lease, context._renew) if context._is_claimed else contextlib.nullcontext()


_unfinished: set[asyncio.Future[Any]] = set()


async def finish(work: Coroutine[Any, Any, T], patience: float = LAST_PATIENCE) -> T:
    """Waits for its end though the caller is cancelled, once or again and again, and then cancels. From then on no longer than
    `patience`: it goes on by itself."""
    task = asyncio.ensure_future(work)
    # The loop itself would let it be collected.
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    cancelled: asyncio.CancelledError | None = None
    until = math.inf
    while not task.done() and time.monotonic() < until:
        try:
            await asyncio.wait({task}, timeout=None if cancelled is None else until - time.monotonic())
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancelled, until = error, time.monotonic() + patience
    if cancelled is None:
        return task.result()
    if task.done() and not task.cancelled():
        # Asked for, so that nobody complains that it was not.
        task.exception()
    raise cancelled


async def run_async(call: Call, effect: Effect, judge: Judge = classify) -> Outcome[Any]:
    """`await effect(args, context)`."""
    claim = Claim(call)
    asking = asyncio.ensure_future(call.client.drive_async(claim.ask()))
    try:
        return await _run_async(call, claim, asking, effect, judge)
    except GeneratorExit:
        # Nothing can be awaited any more.
        raise
    except BaseException:
        if not claim.is_started:
            with contextlib.suppress(Exception):
                await finish(give_back(call.client, asking, claim.give_back()))
        raise


async def give_back(client: Client, asking: asyncio.Future[Any], back: Talk[None]) -> None:
    if not asking.done():
        await asyncio.wait({asking}, timeout=_ANSWER)
        asking.cancel()
        await asyncio.wait({asking})
    if not asking.cancelled():
        asking.exception()
    await client.drive_async(back)


async def _run_async(
    call: Call, claim: Claim, asking: asyncio.Future[Begun], effect: Effect, judge: Judge
) -> Outcome[Any]:
    client = call.client
    try:
        begun = await asyncio.shield(asking)
        if begun.outcome != "execute":
            return _replay(call, begun)
        context = AsyncContext(call, begun)
        await client.drive_async(context._check_start())
    except SemelError as error:
        with contextlib.suppress(SemelError):
            await client.drive_async(claim.refused(error))
        return Outcome(False, None, error, None)
    ended: Ended
    async with _beating(context, AsyncHeartbeat):
        try:
            with _entered(context):
                claim.is_started = True
                made = effect(begun.answer.get("args"), context)
                ended = Ended("succeeded", await made if inspect.isawaitable(made) else made)
            await context._steps.finish_async()
            if begun.is_claimed:
                check_done(call.tool, ended.value)
        except BaseException as thrown:
            if not begun.is_claimed:
                if is_word(thrown):
                    raise as_report(call.tool, thrown) from thrown
                raise
            if isinstance(thrown, GeneratorExit):
                raise
            ended = judge(context, thrown)
            if not isinstance(thrown, Exception):
                # Cancelled: report it all the same, then let the cancellation go on.
                with contextlib.suppress(Exception):
                    await finish(client.drive_async(settle(call, context, ended, LAST_PATIENCE)))
                raise
        if not begun.is_claimed:
            return Outcome(True, ended.value, None, _unclaimed(call))
        # A success that is not reported is a doubt: a cancellation waits for the report.
        return await finish(client.drive_async(settle(call, context, ended)))


def handoff(client: Client | None = None) -> str:
    """The identity of the code that runs now, as a text for another process: `within(handoff=...)` there."""
    return (client or default_client()).drive(_handoff())


async def handoff_async(client: Client | None = None) -> str:
    """The same in async code: `handoff` would stop the loop while the server starts or answers, and with it its heartbeats."""
    return await (client or default_client()).drive_async(_handoff())


def _handoff() -> Talk[str]:
    answer = yield Request("/v1/handoff", current_identity().to_json())
    return str(answer["handoff"])
