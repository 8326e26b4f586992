"""Guarded tools in agent frameworks. Nothing of them is imported: each shape is what the framework documents.

Tested with stand-ins of these shapes, not with the packages themselves.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .calls import Call, Ended, Outcome, _Base, classify, run, run_async
from .client import Client, default_client
from .encoding import encode
from .errors import InvalidArgs, SemelError
from .identity import current_identity
from .tools import AsyncTool, Tool


def as_function(tool: Tool[..., Any] | AsyncTool[..., Any]) -> Callable[..., Any]:
    """A plain function with the tool's name, signature and docstring, for `@function_tool` (OpenAI Agents), `Agent(tools=[...])`
    (Pydantic AI), `@tool` (CrewAI) and `@server.tool()` (MCP). A refusal is returned as a value: raised errors are replaced by
    "please try again" in some of them, which asks the model for a duplicate."""
    shape = tool._shape
    parameters = [each for name, each in shape.signature.parameters.items() if name != shape.context]
    skip = len(tool._bound_to)
    returns = shape.hints.get("return", Any)
    is_text = returns is str

    attempt: Any = tool.attempt
    if isinstance(tool, AsyncTool):

        async def guarded_async(*args: Any, **kwargs: Any) -> Any:
            return _for_model(await attempt(*args, **kwargs), is_text)

        made: Callable[..., Any] = guarded_async
    else:

        def guarded(*args: Any, **kwargs: Any) -> Any:
            return _for_model(attempt(*args, **kwargs), is_text)

        made = guarded
    functools.update_wrapper(made, tool._fn)
    # Otherwise frameworks would look through to the function itself.
    del made.__wrapped__  # type: ignore[attr-defined]
    signature = shape.signature.replace(parameters=parameters[skip:])
    annotations = {name: hint for name, hint in shape.hints.items() if name != shape.context}
    if returns not in (str, dict, dict[str, Any], Any, object):
        # MCP servers check what comes back, and would refuse a refusal: the model would read that the tool failed.
        signature = signature.replace(return_annotation=inspect.Signature.empty)
        annotations.pop("return", None)
    made.__signature__ = signature  # type: ignore[attr-defined]
    made.__annotations__ = annotations
    return made


def _for_model(outcome: Outcome[Any], is_text: bool) -> Any:
    if outcome.error is None:
        return outcome.value
    refusal = describe(outcome.error)
    return json.dumps(refusal) if is_text else refusal


def describe(error: SemelError) -> dict[str, Any]:
    """What a model reads: what happened, whether it may try again, what to do."""
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "retriable": error.retriable,
            "correctiveAction": error.corrective_action,
        }
    }


class LangChainMiddleware:
    """`create_agent(..., middleware=[..., LangChainMiddleware({...})])` for LangChain and LangGraph: guards the calls of the named
    tools. It must be the last of the list, so that a retry middleware around it is guarded too. `policies` are terms as in a
    policy file: `{"refund": {"effect": "irreversible", "per": "conversation"}}`. Tools that are not named run freely.

    With LangChain installed, make a class of both: `class Guard(LangChainMiddleware, AgentMiddleware): ...`."""

    name = "semel"

    def __init__(self, policies: Mapping[str, Mapping[str, Any]], *, client: Client | None = None) -> None:
        self._policies = policies
        self._client = client

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            call = self._call(request)
        except SemelError as error:
            return _Kept(request).give(Outcome(False, None, error, None))
        if call is None:
            return handler(request)
        kept = _Kept(request)
        return kept.give(run(call, lambda _, __: kept.take(handler(request)), kept.judge))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            call = self._call(request)
        except SemelError as error:
            return _Kept(request).give(Outcome(False, None, error, None))
        if call is None:
            return await handler(request)
        kept = _Kept(request)

        async def effect(_: Any, __: Any) -> Any:
            return kept.take(await handler(request))

        return kept.give(await run_async(call, effect, kept.judge))

    def _call(self, request: Any) -> Call | None:
        asked = request.tool_call
        policy = self._policies.get(asked["name"])
        if policy is None:
            return None
        body: dict[str, Any] = {
            "tool": asked["name"],
            "args": encode(asked.get("args") or {}, asked["name"]),
            "policy": dict(policy),
            **current_identity().to_json(),
        }
        if asked.get("id"):
            body["toolCallId"] = asked["id"]
        thread = _thread_of(request)
        if thread is not None:
            body.setdefault("conversation", thread)
        return Call(asked["name"], "/v1/begin", body, 600.0, self._client or default_client())


class ToolMessageError(Exception):
    """A message with the status `error`: the tool has failed, as one that raises. What it did before is unknown."""


def _is_control_flow(thrown: BaseException | None) -> bool:
    """An interrupt of LangGraph: the graph pauses, and calls the tool again when it is resumed."""
    return any(each.__name__ == "GraphBubbleUp" for each in type(thrown).__mro__)


def _refuses(request: Any) -> bool:
    """Whether the tool refuses these arguments before its function runs. Its error could also be one of that function, which may
    have done something. So this is asked only of LangChain's own class of tools, which checks them against a model and then calls
    the function, and not where the graph adds arguments that the model describes."""
    tool = getattr(request, "tool", None)
    kind = type(tool)
    schema = getattr(tool, "args_schema", None)
    if kind.__name__ != "StructuredTool" or not kind.__module__.startswith("langchain_core.tools"):
        return False
    validate = getattr(schema, "model_validate", None)
    try:
        if not callable(validate) or set(schema.model_fields) != set(tool.tool_call_schema.model_fields):  # type: ignore[union-attr]
            return False
    except AttributeError:
        return False
    try:
        validate(request.tool_call.get("args") or {})
    except Exception as error:
        return type(error).__name__ == "ValidationError"
    return False


class _Kept:
    """The message of an execution as it was; of a replay, one with the id of the present call."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._message: Any = None
        self._refusal: Any = None
        #: Asked before it runs: what the function does may change what its model says.
        self._is_refused = _refuses(request)

    def take(self, message: Any) -> Any:
        if getattr(message, "status", None) == "error":
            self._refusal = message
            raise ToolMessageError(_text_of(message.content))
        self._message = message
        if not hasattr(message, "tool_call_id"):
            # A Command steers the graph: it cannot be replayed.
            return message
        return {"content": message.content, "status": getattr(message, "status", "success")}

    def judge(self, context: _Base, thrown: BaseException) -> Ended:
        if _is_control_flow(thrown):
            return Ended("notLanded", thrown=thrown)
        self._is_refused = self._is_refused and isinstance(thrown, Exception) and _refuses(self._request)
        return Ended("notLanded", thrown=thrown) if self._is_refused else classify(context, thrown)

    def give(self, outcome: Outcome[Any]) -> Any:
        if self._message is not None and outcome.ok:
            return self._message
        if outcome.error is not None and _is_control_flow(outcome.error.__cause__):
            raise outcome.error.__cause__ or outcome.error
        if outcome.error is not None and outcome.error.code == "NOT_LANDED" and self._is_refused:
            if self._refusal is not None:
                # It tells the model what to correct.
                return self._refusal
            error = InvalidArgs(outcome.error.message, corrective_action="Correct the arguments and call again.")
            outcome = Outcome(False, None, error, outcome.receipt)
        asked = self._request.tool_call
        stored = outcome.value if isinstance(outcome.value, dict) else {}
        content = stored.get("content", "") if outcome.error is None else str(describe(outcome.error))
        status = stored.get("status", "success") if outcome.error is None else "error"
        return _message_class()(content=content, tool_call_id=asked["id"], name=asked["name"], status=status)


def _text_of(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return " ".join(text for text in texts if isinstance(text, str)) or "The tool answered with an error"


def _message_class() -> Any:
    try:
        return importlib.import_module("langchain_core.messages").ToolMessage
    except ImportError:
        from types import SimpleNamespace

        return SimpleNamespace


def _thread_of(request: Any) -> str | None:
    config = getattr(getattr(request, "runtime", None), "config", None)
    thread = config.get("configurable", {}).get("thread_id") if isinstance(config, Mapping) else None
    return None if thread is None else str(thread)


def from_celery(request: Any, *, step: str | None = None) -> dict[str, str]:
    """`with semel.within(**from_celery(self.request)):` in a bound task. A retry and a redelivery have the same id."""
    task = _text(getattr(request, "id", None), "request.id")
    return {"conversation": f"celery:{task}", "turn": step or "task"}


def from_airflow(context: Mapping[str, Any], *, step: str | None = None) -> dict[str, str]:
    """`with semel.within(**from_airflow(context)):` with the context of a task. Never the try number."""
    instance = context["ti"] if "ti" in context else context["task_instance"]
    parts = [_text(getattr(instance, name, None), name) for name in ("dag_id", "run_id", "task_id")]
    index = getattr(instance, "map_index", -1)
    turn = parts[2] if index in (None, -1) else f"{parts[2]}[{index}]"
    return {"conversation": f"airflow:{parts[0]}:{parts[1]}", "turn": turn if step is None else f"{turn}:{step}"}


def from_apscheduler(job_id: str, scheduled: Any) -> dict[str, Any]:
    """`job.run(at=...)` is better. For tools: the job and its scheduled instant, not the time of a late start."""
    moment = encode(scheduled, "scheduled")
    return {"run": f"apscheduler:{_text(job_id, 'job_id')}@{moment}", "at": scheduled}


def _text(value: Any, name: str) -> str:
    if isinstance(value, str) and value.strip() != "":
        return value
    raise InvalidArgs(f"`{name}` is {value!r}.", path=name, corrective_action="Call it inside a task.")


