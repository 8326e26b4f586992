"""A job: a function that runs once per slot, never twice at a time, and goes on after its last finished step if it died.

The lock, the slot and the steps have the names and keys of `semel.job` in TypeScript, so the two share a job.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import datetime
import inspect
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, overload

from .calls import (
    GIVE_BACK,
    LAST_PATIENCE,
    LONG_GIVE_BACK,
    Call,
    Ended,
    Outcome,
    Running,
    _Base,
    check_done,
    check_work,
    finish,
    give_back,
    is_async,
    is_word,
    run,
    run_async,
    warn,
    words_of,
    worker_name,
)
from .client import Client, Talk, default_client
from .encoding import encode, encode_result, restore
from .errors import ContractInvalid, Failed, NotCanonical, SemelError, Unrecorded
from .identity import within
from .lease import AsyncHeartbeat, Heartbeat, Lease, Moment
from .tools import DEFAULT_WAIT, Duration, _Shape, check_name, milliseconds
from .transport import ANSWER_TIMEOUT, Request

R = TypeVar("R")
T = TypeVar("T")

_MISSING: Any = object()
_path: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("semel_steps", default=())


@dataclass(frozen=True)
class JobOutcome(Generic[R]):
    """`executed`: it ran now. `skipped`: the slot was done before. `busy`: another run of the job is going on."""

    status: Literal["executed", "skipped", "busy"]
    slot: str
    value: R | None = None
    attempt: int = 0
    holder: str | None = None


class _Run:
    """What the function of a job may know."""

    def __init__(self, client: Client, name: str, answer: dict[str, Any], asked: Moment | None = None) -> None:
        self._client = client
        self._name = name
        self._steps = Running()
        self._ticket = str(answer["attempt"])
        self._lock = str(answer["lock"])
        self._lease = Lease(float(answer["leaseMs"]) / 1000, asked or Moment())
        #: `2026-06-19`, `2026-06-19T09:00+02:00`, `ever`.
        self.slot = str(answer["slot"])
        #: The slot's local date.
        self.date = str(answer["date"])
        self.zone = str(answer["zone"])
        #: The slot's scheduled instant.
        self.at = _moment(answer["at"])
        #: The run's name, for `per="run"`.
        self.run = str(answer["run"])
        self.attempt = int(answer["number"])
        self.fence = int(answer["fence"])
        self.periods_at = _moment(answer["periodsAt"]) if "periodsAt" in answer else None
        #: Set when another worker may run it: stop.
        self.lost: threading.Event = self._lease.lost

    @property
    def _both(self) -> list[dict[str, str]]:
        return [{"attempt": self._ticket}, {"attempt": self._lock}]

    def _renew(self) -> Talk[bool]:
        asked = Moment()
        try:
            answer = yield Request(
                "/v1/renew", {"items": self._both}, timeout=self._lease.request_timeout, patience=self._lease.seconds / 3
            )
            statuses = {each["status"] for each in answer["items"]}
        except SemelError:
            statuses = {503}
        if statuses == {200}:
            self._lease.renewed(asked)
        elif not statuses <= {200, 503}:
            self.lost.set()
        return True

    def _check_start(self) -> Talk[None]:
        """As of a call: a program that was stopped since it asked may start nothing beside one that has taken over. Before
        each step too: one that has lost its lock only would go on beside the run of another slot."""
        if self._lease.is_young and not self.lost.is_set():
            return
        asked = Moment()
        for ticket in self._both:
            yield Request("/v1/renew", ticket)
        self._lease.renewed(asked)

    def _step(self, kind: str, name: str, args: Any, returns: Any) -> Call:
        body: dict[str, Any] = {"attempt": self._ticket, "kind": kind, "name": name}
        if args is not _MISSING:
            body["args"] = encode(args, f"{name}: args")
        if _path.get() and kind == "step":
            body["in"] = list(_path.get())
        # The lease of a step can end after that of its run: whoever goes on waits for it.
        return Call(f"{self._name}: {name}", "/v1/jobs/step", body, DEFAULT_WAIT, self._client, returns)

    def _settle(self, ended: Ended, hold: bool, took: float, patience: float = 60.0) -> Talk[None]:
        body: dict[str, Any] = {"attempt": self._ticket, "outcome": ended.outcome}
        if ended.outcome == "succeeded":
            stored: dict[str, Any] = {"tookMs": int(took * 1000)}
            try:
                stored["value"] = encode_result(ended.value)
            except NotCanonical as error:
                warn(f"{self._name}: what it returned is not stored ({error.message}).")
            body["value"] = stored
        else:
            words = f"failed: {words_of(ended.thrown)}"[:4_000].encode("utf-8", "replace").decode()
            body["outcome"] = "unknown" if hold else "notLanded"
            body["error"] = {"message": f"{words}; held" if hold else words}
        failure: SemelError | None = None
        try:
            yield Request("/v1/settle", body, timeout=min(ANSWER_TIMEOUT, patience), patience=patience)
        except SemelError as error:
            failure = error
        try:
            lock = {"attempt": self._lock, "outcome": "notLanded"}
            yield Request(
                "/v1/settle", lock, timeout=min(ANSWER_TIMEOUT, patience), patience=min(patience, LAST_PATIENCE)
            )
        except SemelError as error:
            # How the run ended is on record: then the end of its lease frees the lock too.
            failure = failure or (None if error.code == "STORE_UNAVAILABLE" else error)
        if failure is not None:
            raise failure


class JobContext(_Run):
    """Of a sync function."""

    def step(self, name: str, work: Callable[[], T], *, args: Any = _MISSING) -> T:
        """Computes a value once per run: a later attempt gets the same. If it raises or dies, it runs again."""
        mark = None

        def effect(_: Any, __: Any) -> T:
            nonlocal mark
            mark = _path.set((*_path.get(), name))
            try:
                return work()
            finally:
                _path.reset(mark)

        check_work(name, work)
        with self._steps.step():
            self._client.drive(self._check_start())
            return cast(T, _unwrap(run(self._step("step", name, args, _returns(work)), effect, _free)))

    def once(self, name: str, work: Callable[[], T], *, id: Any = _MISSING) -> T:
        """An effect that lands once per run; with an `id`, once ever. What may have landed is in doubt, not repeated."""
        check_work(name, work)
        with self._steps.step():
            self._client.drive(self._check_start())
            return cast(T, run(self._step("once", name, id, _returns(work)), lambda _, __: work()).unwrap())


class AsyncJobContext(_Run):
    """Of an async function."""

    def step(self, name: str, work: Callable[[], Awaitable[T]], *, args: Any = _MISSING) -> Coroutine[Any, Any, T]:
        """Computes a value once per run: a later attempt gets the same. If it raises or dies, it runs again."""
        return self._steps.call(name, lambda: self._compute(name, work, args))

    def once(self, name: str, work: Callable[[], Awaitable[T]], *, id: Any = _MISSING) -> Coroutine[Any, Any, T]:
        """An effect that lands once per run; with an `id`, once ever. What may have landed is in doubt, not repeated."""
        return self._steps.call(name, lambda: self._land(name, work, id))

    async def _compute(self, name: str, work: Callable[[], Awaitable[T]], args: Any) -> T:
        async def effect(_: Any, __: Any) -> T:
            mark = _path.set((*_path.get(), name))
            try:
                made: Any = work()
                return cast(T, await made if inspect.isawaitable(made) else made)
            finally:
                _path.reset(mark)

        check_work(name, work, may_be_async=True)
        with self._steps.step():
            await self._client.drive_async(self._check_start())
            return cast(T, _unwrap(await run_async(self._step("step", name, args, _returns(work)), effect, _free)))

    async def _land(self, name: str, work: Callable[[], Awaitable[T]], id: Any) -> T:
        check_work(name, work, may_be_async=True)
        with self._steps.step():
            await self._client.drive_async(self._check_start())
            return cast(T, (await run_async(self._step("once", name, id, _returns(work)), lambda _, __: work())).unwrap())


def _returns(work: Callable[..., Any]) -> Any:
    with contextlib.suppress(Exception):
        return inspect.signature(work, eval_str=True).return_annotation
    return None


def _free(_: _Base, thrown: BaseException) -> Ended:
    """Whatever it raises, a step may run again."""
    return Ended("notLanded", thrown=thrown)


def _unwrap(outcome: Outcome[Any]) -> Any:
    """A step's own error reaches the caller as it is, except its word about itself: an effect around it would take that for its own."""
    error = outcome.error
    if error is not None and error.code == "NOT_LANDED" and error.__cause__ is not None and not is_word(error.__cause__):
        raise error.__cause__
    return outcome.unwrap()


def _moment(text: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00"))


class _JobClaim:
    """As of a call: what interrupts it before the function starts gives it back. Otherwise the slot waits for its lease."""

    def __init__(self, client: Client, body: dict[str, Any]) -> None:
        self._client = client
        self._body = body
        self._answer: dict[str, Any] | None = None
        self.asked: Moment | None = None
        self.is_refused = False
        self.is_started = False
        self._timeout = GIVE_BACK

    def ask(self) -> Talk[dict[str, Any]]:
        self.asked = Moment()
        try:
            self._answer = yield Request("/v1/jobs/begin", self._body)
        except SemelError as error:
            # Where nobody answered, it may be claimed all the same.
            self.is_refused = error.code != "STORE_UNAVAILABLE"
            self._timeout = LONG_GIVE_BACK
            raise
        return self._answer

    @property
    def may_be_held(self) -> bool:
        return not self.is_started and not self.is_refused and self._client.has_asked

    def give_back(self) -> Talk[None]:
        answer = self._answer
        if answer is None:
            answer = yield Request("/v1/jobs/begin", self._body, timeout=self._timeout, patience=0)
        if answer["outcome"] == "execute":
            error = {"message": "interrupted before it began"}
            for name in ("attempt", "lock"):
                body = {"attempt": answer[name], "outcome": "notLanded", "error": error}
                yield Request("/v1/settle", body, timeout=GIVE_BACK, patience=0)


class _Job:
    def __init__(self, name: str, fn: Callable[..., Any], terms: dict[str, Any], client: Client | None) -> None:
        self.name = name
        self._fn = fn
        self._terms = terms
        self._client = client
        shape = _Shape(name, fn)
        self._returns = shape.returns
        try:
            shape.signature.bind(None)
        except TypeError as error:
            raise ContractInvalid(
                f"{name}: its function gets a semel.JobContext, and nothing else ({error}).",
                corrective_action="Write `def digest(job: semel.JobContext)`.",
            ) from None

    def _claim(
        self, client: Client, at: datetime.datetime | None, ids: Mapping[str, str | int] | None, again: str | None
    ) -> _JobClaim:
        body: dict[str, Any] = {
            "job": self.name,
            **self._terms,
            "token": secrets.token_urlsafe(24),
            "worker": worker_name(),
        }
        if at is not None:
            body["at"] = encode(at, "at")
        if ids is not None:
            body["ids"] = encode(ids, "ids")
        if again is not None:
            body["again"] = again
        return _JobClaim(client, body)

    def _known(self, answer: dict[str, Any]) -> JobOutcome[Any]:
        slot = str(answer["slot"])
        if answer["outcome"] == "busy":
            return JobOutcome("busy", slot, holder=answer.get("holder"))
        stored = answer.get("value")
        value = stored.get("value") if isinstance(stored, dict) else stored
        return JobOutcome("skipped", slot, value=restore(value, self._returns))

    def _fail(self, context: _Run, thrown: BaseException) -> SemelError:
        if isinstance(thrown, SemelError) and not is_word(thrown):
            return thrown
        error = Failed(
            f"{self.name} {context.slot} failed: {words_of(thrown)}.",
            retriable=True,
            corrective_action="Run it again: steps that are done are not repeated.",
        )
        error.is_report = True
        return error

    def _check_unsettled(self, ended: Ended, error: SemelError) -> None:
        """What the function itself raised is told first: the error of its report would hide it."""
        if ended.thrown is not None:
            return
        if error.code not in ("STORE_UNAVAILABLE", "INVALID_ARGS"):
            raise error
        raise Unrecorded(f"{self.name} is done, but the ledger did not take the record.", value=ended.value) from error

    def _patience(self, ended: Ended) -> float:
        """A program that is told to end may not wait long."""
        return 60.0 if ended.thrown is None or isinstance(ended.thrown, Exception) else LAST_PATIENCE

    def _told(self, context: _Run, ended: Ended) -> JobOutcome[Any]:
        if ended.thrown is None:
            return JobOutcome("executed", context.slot, ended.value, context.attempt)
        if not isinstance(ended.thrown, Exception):
            raise ended.thrown
        raise self._fail(context, ended.thrown) from ended.thrown

    @property
    def _holds(self) -> bool:
        return self._terms.get("afterFailure") == "hold"


class Job(_Job, Generic[R]):
    """A sync job."""

    def run(
        self,
        *,
        at: datetime.datetime | None = None,
        ids: Mapping[str, str | int] | None = None,
        again: str | None = None,
    ) -> JobOutcome[R]:
        """Runs the job for its slot, unless that is done or running."""
        client = self._client or default_client()
        claim = self._claim(client, at, ids, again)
        try:
            return self._run(client, claim)
        except BaseException:
            if claim.may_be_held:
                with contextlib.suppress(Exception):
                    client.drive(claim.give_back())
            raise

    def _run(self, client: Client, claim: _JobClaim) -> JobOutcome[R]:
        answer = client.drive(claim.ask())
        if answer["outcome"] != "execute":
            return self._known(answer)
        context = JobContext(client, self.name, answer, claim.asked)
        client.drive(context._check_start())
        started = time.monotonic()
        with Heartbeat(client, context._lease, context._renew):
            try:
                with within(run=context.run, at=context.periods_at):
                    claim.is_started = True
                    ended = Ended("succeeded", self._fn(context))
                    context._steps.finish()
                    check_done(self.name, ended.value)
            except BaseException as thrown:
                claim.is_started = True
                ended = Ended("failed", thrown=thrown)
            took = time.monotonic() - started
            try:
                client.drive(context._settle(ended, self._holds, took, self._patience(ended)))
            except SemelError as error:
                self._check_unsettled(ended, error)
            except BaseException:
                with contextlib.suppress(Exception):
                    client.drive(context._settle(ended, self._holds, took, LAST_PATIENCE))
                raise
        return self._told(context, ended)


class AsyncJob(_Job, Generic[R]):
    """An async job."""

    async def run(
        self,
        *,
        at: datetime.datetime | None = None,
        ids: Mapping[str, str | int] | None = None,
        again: str | None = None,
    ) -> JobOutcome[R]:
        """Runs the job for its slot, unless that is done or running."""
        client = self._client or default_client()
        claim = self._claim(client, at, ids, again)
        asking = asyncio.ensure_future(client.drive_async(claim.ask()))
        try:
            return await self._run(client, claim, asking)
        except GeneratorExit:
            raise
        except BaseException:
            if claim.may_be_held:
                with contextlib.suppress(Exception):
                    await finish(give_back(client, asking, claim.give_back()))
            raise

    async def _run(self, client: Client, claim: _JobClaim, asking: asyncio.Future[dict[str, Any]]) -> JobOutcome[R]:
        answer = await asyncio.shield(asking)
        if answer["outcome"] != "execute":
            return self._known(answer)
        context = AsyncJobContext(client, self.name, answer, claim.asked)
        await client.drive_async(context._check_start())
        started = time.monotonic()
        async with AsyncHeartbeat(client, context._lease, context._renew):
            try:
                with within(run=context.run, at=context.periods_at):
                    claim.is_started = True
                    made: Any = self._fn(context)
                    ended = Ended("succeeded", await made)
                    await context._steps.finish_async()
                    check_done(self.name, ended.value)
            except GeneratorExit:
                raise
            except BaseException as thrown:
                claim.is_started = True
                ended = Ended("failed", thrown=thrown)
            report = context._settle(ended, self._holds, time.monotonic() - started, self._patience(ended))
            try:
                await finish(client.drive_async(report))
            except SemelError as error:
                self._check_unsettled(ended, error)
        return self._told(context, ended)


class JobDecorator(Protocol):
    @overload
    def __call__(self, fn: Callable[[AsyncJobContext], Coroutine[Any, Any, R]], /) -> AsyncJob[R]: ...
    @overload
    def __call__(self, fn: Callable[[JobContext], R], /) -> Job[R]: ...


def job(
    name: str,
    *,
    per: Literal["minute", "hour", "day", "week", "month", "ever"] | None = None,
    cron: str | None = None,
    tz: str = "UTC",
    lease: Duration | None = None,
    window: Duration | None = None,
    after_failure: Literal["rerun", "hold"] | None = None,
    client: Client | None = None,
) -> JobDecorator:
    """A function that runs once per slot: `per`, a schedule, or the instant `at` of each run."""
    check_name("job", name)
    terms: dict[str, Any] = {"per": per, "cron": cron, "tz": tz, "afterFailure": after_failure}
    for field, value in (("lease", lease), ("window", window)):
        if value is not None:
            terms[field] = _number(milliseconds(value), field)
    given = {field: value for field, value in terms.items() if value is not None}

    def decorate(fn: Callable[..., Any]) -> Any:
        kind: Any = AsyncJob if is_async(fn) else Job
        return kind(name, fn, given, client)

    return cast(JobDecorator, decorate)


_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def _number(value: str | int, field: str) -> int:
    if isinstance(value, int):
        return value
    for unit in ("ms", "s", "m", "h", "d", "w"):
        digits = value.removesuffix(unit)
        if digits != value and digits.replace(".", "", 1).isdigit():
            return int(float(digits) * _UNITS[unit])
    raise ValueError(f"{field} is {value!r}: write '15m', milliseconds or a timedelta")
