"""The decorator: a function whose effect lands once. Arguments by parameter name."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import inspect
import sys
import typing
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, overload

from .calls import AsyncContext, Call, Context, Outcome, check_work, is_async, run, run_async
from .client import Client, default_client
from .encoding import encode, is_same, restore
from .errors import ContractInvalid, InvalidArgs, NotCanonical
from .identity import current_identity

P = ParamSpec("P")
R = TypeVar("R")

Effect = Literal["read", "write-idempotent", "write-non-idempotent", "irreversible"]
Duration = str | int | datetime.timedelta

_CALENDAR = ("minute", "hour", "day", "week", "month")
DEFAULT_WAIT = 600.0


@dataclasses.dataclass(frozen=True)
class Options:
    """Of one call."""

    tool_call_id: str | None = None
    key: str | None = None
    again: str | None = None
    at: datetime.datetime | None = None
    not_after: datetime.datetime | None = None
    version: str | None = None

    def to_json(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "toolCallId": self.tool_call_id,
            "key": self.key,
            "again": self.again,
            "version": self.version,
            "at": None if self.at is None else encode(self.at, "at"),
            "notAfter": None if self.not_after is None else encode(self.not_after, "not_after"),
        }
        return {name: value for name, value in given.items() if value is not None}


def milliseconds(value: Duration) -> str | int:
    return int(value.total_seconds() * 1000) if isinstance(value, datetime.timedelta) else value


def period(per: Any, tz: str) -> Any:
    if per in _CALENDAR:
        return {per: tz}
    return milliseconds(per)


class _Shape:
    """What a function takes: its arguments by name, without `self` and without the context."""

    def __init__(self, name: str, fn: Callable[..., Any]) -> None:
        self.name = name
        self.signature = inspect.signature(fn)
        try:
            self.hints = typing.get_type_hints(fn)
        except Exception:
            # Names that exist for type checkers only.
            self.hints = dict(getattr(fn, "__annotations__", {}))
        self.is_async = is_async(fn)
        check_work(name, fn, may_be_async=self.is_async)
        self.context = next((each for each in self.signature.parameters if self._is_context(each)), None)
        #: What callers pass: all but the context, wherever that stands.
        self.callers = self.signature.replace(
            parameters=[each for name, each in self.signature.parameters.items() if name != self.context]
        )
        self.returns = self.hints.get("return")
        if isinstance(self.returns, str):
            self.returns = None

    def _is_context(self, parameter: str) -> bool:
        hint = self.hints.get(parameter)
        wanted, other = (AsyncContext, Context) if self.is_async else (Context, AsyncContext)
        if hint is other or hint in (other.__name__, f"semel.{other.__name__}"):
            kind = "async" if self.is_async else "sync"
            raise ContractInvalid(
                f"{self.name}: an {kind} function gets a semel.{wanted.__name__}.",
                corrective_action=f"Annotate `{parameter}` with it.",
            )
        return hint is wanted or hint in (wanted.__name__, f"semel.{wanted.__name__}")

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any], skip: int) -> tuple[inspect.BoundArguments, dict[str, Any]]:
        if self.context in kwargs and kwargs[self.context] is None:
            # What type checkers ask for.
            kwargs = {name: value for name, value in kwargs.items() if name != self.context}
        try:
            bound = self.callers.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArgs(f"{self.name}: {error}.") from error
        sent: dict[str, Any] = {}
        for at, (name, value) in enumerate(bound.arguments.items()):
            parameter = self.signature.parameters[name]
            if at < skip:
                continue
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                for key, each in value.items():
                    # With f(*items, **rest), f(1) and f(items=[1]) would share a key.
                    if key in self.signature.parameters:
                        raise InvalidArgs(f"{self.name}: {key} is the name of a parameter.", path=key)
                    sent[key] = encode(each, f"{self.name}: `{key}`")
                continue
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL and value == ():
                continue
            plain = encode(value, f"{self.name}: `{name}`")
            # Adding an optional parameter must not change the keys of calls that do not use it.
            if not _is_default(parameter, plain):
                sent[name] = plain
        return bound, sent

    def rebind(
        self, bound: inspect.BoundArguments, sent: dict[str, Any], answered: Any, context: Any, skip: int
    ) -> inspect.BoundArguments:
        """The args to execute with: the caller's own objects, unless a re-run sends the first wording."""
        values = dict(bound.arguments)
        if isinstance(answered, dict) and not is_same(sent, answered):
            self._reword(values, sent, answered, skip)
        if self.context is not None:
            values[self.context] = context
        # In the order of the signature, which `args` and `kwargs` rely on.
        ordered = {name: values[name] for name in self.signature.parameters if name in values}
        return inspect.BoundArguments(self.signature, ordered)  # type: ignore[arg-type]

    def _reword(self, values: dict[str, Any], sent: dict[str, Any], answered: dict[str, Any], skip: int) -> None:
        names = list(self.callers.parameters)[skip:]
        for name in names:
            parameter = self.callers.parameters[name]
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                values[name] = {key: value for key, value in answered.items() if key not in names}
            elif name not in answered:
                values.pop(name, None)
            elif name not in sent or not is_same(sent[name], answered[name]):
                value = restore(answered[name], self.hints.get(name))
                is_rest = parameter.kind is inspect.Parameter.VAR_POSITIONAL
                values[name] = tuple(value) if is_rest else value


def _is_default(parameter: inspect.Parameter, plain: Any) -> bool:
    if parameter.default is inspect.Parameter.empty:
        return False
    try:
        return is_same(encode(parameter.default), plain)
    except NotCanonical:
        return False


class _Tool:
    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        policy: dict[str, Any] | None,
        wait: float,
        dispatch: str | None,
        client: Client | None,
        binds: str = "instance",
    ) -> None:
        self.name = name
        self.policy = policy
        self._binds = binds
        #: The tool of which this is one with options, or bound.
        self._origin: _Tool | None = None
        self._fn = fn
        self._shape = _Shape(name, fn)
        self._wait = wait
        self._dispatch = dispatch
        self._client = client
        self._options = Options()
        self._bound_to: tuple[Any, ...] = ()
        functools.update_wrapper(cast(Any, self), fn)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if self._binds == "class" and owner is not None:
            return self._copy(bound_to=(owner,))
        if instance is None or self._binds != "instance":
            return self
        return self._copy(bound_to=(instance,))

    def __reduce__(self) -> Any:
        """By its name, as a function: for other processes. Picklers that know functions of `__main__` by value know this one too."""
        if self._origin is not None:
            return _copied, (self._origin, self._options, self._bound_to)
        if self._fn.__module__ == "__main__" and "cloudpickle" in sys.modules:
            return super().__reduce__()
        return self._fn.__qualname__

    def with_options(
        self,
        *,
        tool_call_id: str | None = None,
        key: str | None = None,
        again: str | None = None,
        at: datetime.datetime | None = None,
        not_after: datetime.datetime | None = None,
        version: str | None = None,
    ) -> Any:
        """The same tool, for calls with these options: `refund.with_options(again="asked twice")(payment=...)`."""
        return self._copy(options=Options(tool_call_id, key, again, at, not_after, version))

    def _copy(self, *, options: Options | None = None, bound_to: tuple[Any, ...] | None = None) -> Any:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._origin = self._origin or self
        if options is not None:
            other._options = options
        if bound_to is not None:
            other._bound_to = bound_to
        return other

    def _make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, Callable[[Any, Any], Any]]:
        skip = len(self._bound_to)
        if skip == 0 and args and isinstance(args[0], type) and next(iter(self._shape.callers.parameters), "") == "cls":
            # A class method around it, in Python 3.13.
            skip = 1
        bound, sent = self._shape.bind((*self._bound_to, *args), kwargs, skip)
        body: dict[str, Any] = {"tool": self.name, "args": sent, **current_identity().to_json(), **self._options.to_json()}
        if self.policy is not None:
            body["policy"] = self.policy
        if self._dispatch is not None:
            body["dispatch"] = self._dispatch
        client = self._client or default_client()
        call = Call(self.name, "/v1/begin", body, self._wait, client, self._shape.returns)

        def effect(answered: Any, context: Any) -> Any:
            final = self._shape.rebind(bound, sent, answered, context, skip)
            return self._fn(*final.args, **final.kwargs)

        return call, effect


def _copied(origin: _Tool, options: Options, bound_to: tuple[Any, ...]) -> Any:
    return origin._copy(options=options, bound_to=bound_to)


class Tool(_Tool, Generic[P, R]):
    """A guarded function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.attempt(*args, **kwargs).unwrap()

    def attempt(self, *args: P.args, **kwargs: P.kwargs) -> Outcome[R]:
        """How it ended, as a value: `ok`, `value`, `error`, `receipt`."""
        return run(*self._make(args, kwargs))


class AsyncTool(_Tool, Generic[P, R]):
    """A guarded async function."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (await self.attempt(*args, **kwargs)).unwrap()

    async def attempt(self, *args: P.args, **kwargs: P.kwargs) -> Outcome[R]:
        """How it ended, as a value: `ok`, `value`, `error`, `receipt`."""
        return await run_async(*self._make(args, kwargs))


class Decorator(Protocol):
    @overload  # type: ignore[misc]
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTool[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Tool[P, R]: ...


def tool(
    name: str,
    *,
    effect: Effect | None = None,
    per: str | datetime.timedelta | None = None,
    tz: str = "UTC",
    identity: Sequence[str] | None = None,
    content: Sequence[str] | None = None,
    volatile: Sequence[str] | None = None,
    strict: Sequence[str] | None = None,
    redact: Sequence[str] | None = None,
    stakes: Literal["normal", "high"] | None = None,
    window: Duration | None = None,
    failure_window: Duration | None = None,
    lease: Duration | None = None,
    timeout: Duration | None = None,
    provider: str | dict[str, Any] | None = None,
    share: bool | None = None,
    dispatch: Literal["claim", "explicit"] | None = None,
    wait: float | None = None,
    client: Client | None = None,
) -> Decorator:
    """Guards a function. Without any terms, the server's policy file says them. `wait` is in seconds."""
    check_name("tool", name)
    if effect == "irreversible" and per is None:
        raise ContractInvalid(
            f"{name}: an irreversible effect needs `per`: within what two equal calls are one.",
            corrective_action='Write per="ever", "conversation" or "turn", or per="day", tz="Europe/Paris".',
        )
    terms: dict[str, Any] = {
        "effect": effect,
        "per": None if per is None else period(per, tz),
        "identity": _names(identity),
        "content": _names(content),
        "volatile": _names(volatile),
        "strict": _names(strict),
        "redact": _names(redact),
        "stakes": stakes,
        "window": None if window is None else milliseconds(window),
        "failureWindow": None if failure_window is None else milliseconds(failure_window),
        "lease": None if lease is None else milliseconds(lease),
        "timeout": None if timeout is None else milliseconds(timeout),
        "provider": provider,
        "share": share,
    }
    given = {field: value for field, value in terms.items() if value is not None}
    policy = None if not given else {"effect": "write-non-idempotent", **given}
    seconds = DEFAULT_WAIT if wait is None else wait

    def decorate(fn: Callable[..., Any]) -> Any:
        binds = "class" if isinstance(fn, classmethod) else "nothing" if isinstance(fn, staticmethod) else "instance"
        fn = fn.__func__ if isinstance(fn, (classmethod, staticmethod)) else fn
        kind: Any = AsyncTool if is_async(fn) else Tool
        made = kind(name, fn, policy, seconds, dispatch, client, binds)
        _check_names(made._shape, {"identity": identity, "content": content, "volatile": volatile, "strict": strict, "redact": redact})
        return made

    return cast(Decorator, decorate)


def check_name(kind: str, name: Any) -> None:
    if not isinstance(name, str):
        raise ContractInvalid(
            f"@semel.{kind} was written without a name.", corrective_action=f'Write @semel.{kind}("mail.send", per="day").'
        )


def _names(given: Sequence[str] | None) -> list[str] | None:
    if isinstance(given, str):
        raise ContractInvalid(f"{given!r} is a text, not a list of names.", corrective_action=f"Write [{given!r}].")
    return None if given is None else list(given)


def _check_names(shape: _Shape, lists: dict[str, Sequence[str] | None]) -> None:
    """A misspelt name would guard nothing."""
    parameters = shape.signature.parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    for field, names in lists.items():
        for each in names or ():
            if each.split(".")[0] not in parameters:
                raise ContractInvalid(
                    f"{shape.name}: `{field}` names {each!r}, which is not a parameter.",
                    corrective_action=f"Its parameters are {', '.join(parameters)}.",
                )


def once(
    name: str,
    id: Any,
    work: Callable[[], R],
    *,
    per: str | datetime.timedelta = "ever",
    tz: str = "UTC",
    content: Sequence[str] | None = None,
    window: Duration | None = None,
    lease: Duration | None = None,
    timeout: Duration | None = None,
    wait: float = DEFAULT_WAIT,
    client: Client | None = None,
    again: str | None = None,
) -> R:
    """Runs `work` once for this name and id, ever unless `per` says otherwise."""
    check_work(name, work)
    call = _once_call(name, id, per, tz, content, window, lease, timeout, wait, client, again)
    return cast(R, run(call, lambda _, __: work()).unwrap())


async def once_async(
    name: str,
    id: Any,
    work: Callable[[], Awaitable[R]],
    *,
    per: str | datetime.timedelta = "ever",
    tz: str = "UTC",
    content: Sequence[str] | None = None,
    window: Duration | None = None,
    lease: Duration | None = None,
    timeout: Duration | None = None,
    wait: float = DEFAULT_WAIT,
    client: Client | None = None,
    again: str | None = None,
) -> R:
    """The same for an async function."""
    check_work(name, work, may_be_async=True)
    call = _once_call(name, id, per, tz, content, window, lease, timeout, wait, client, again)
    return cast(R, (await run_async(call, lambda _, __: work())).unwrap())


def _once_call(
    name: str,
    id: Any,
    per: Any,
    tz: str,
    content: Sequence[str] | None,
    window: Duration | None,
    lease: Duration | None,
    timeout: Duration | None,
    wait: float,
    client: Client | None,
    again: str | None,
) -> Call:
    if id is None:
        # All calls without an id would be one.
        raise NotCanonical(f"once({name!r}, ...): its id is None.", path="id", corrective_action="Pass the id.")
    policy: dict[str, Any] = {"effect": "write-non-idempotent", "per": period(per, tz)}
    for field, value in (("window", window), ("lease", lease), ("timeout", timeout)):
        if value is not None:
            policy[field] = milliseconds(value)
    if content is not None:
        policy["content"] = _names(content)
    body = {"tool": name, "args": encode(id, "id"), "policy": policy, **current_identity().to_json()}
    if again is not None:
        body["again"] = again
    return Call(name, "/v1/begin", body, wait, client or default_client())
