"""Adapters, against stand-ins with the documented shapes. With the packages themselves: test_real.py."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
import unittest
from types import SimpleNamespace
from typing import Any

import semel
from semel.adapters import LangChainMiddleware, as_function, from_airflow, from_apscheduler, from_celery

from .support import Place


class Adapters(Place):
    def test_a_plain_function_for_frameworks_that_read_signatures(self) -> None:
        @semel.tool("refund", per="ever", identity=["payment"])
        def refund(payment: str, ctx: semel.Context, reason: str = "") -> dict[str, str]:
            """Refunds a payment."""
            if payment == "bad":
                raise semel.Rejected("not found")
            return {"id": payment}

        plain = as_function(refund)
        self.assertTrue(inspect.isfunction(plain))
        self.assertEqual(list(inspect.signature(plain).parameters), ["payment", "reason"])
        self.assertEqual((plain.__name__, plain.__doc__), ("refund", "Refunds a payment."))
        self.assertEqual(plain("p1", reason="a"), {"id": "p1"})
        self.assertEqual(plain("bad")["error"]["code"], "FAILED")
        # A refusal is not one of these: what checks returned values against the annotation would refuse it.
        self.assertIs(inspect.signature(plain).return_annotation, inspect.Signature.empty)

        @semel.tool("refund.async", per="ever")
        async def later(payment: str) -> str:
            if payment == "bad":
                raise semel.Rejected("not found")
            return payment

        self.assertEqual(json.loads(asyncio.run(as_function(later)("bad")))["error"]["code"], "FAILED")
        self.assertTrue(inspect.iscoroutinefunction(as_function(later)))
        self.assertEqual(asyncio.run(as_function(later)("p2")), "p2")

    def test_langchain_middleware_runs_a_call_once_per_conversation(self) -> None:
        guard = LangChainMiddleware({"pay": {"effect": "irreversible", "per": "conversation", "identity": ["to"]}})
        runs: list[str] = []

        def request(call_id: str, name: str = "pay", to: str = "ann") -> Any:
            return SimpleNamespace(
                tool_call={"name": name, "args": {"to": to, "note": call_id}, "id": call_id},
                runtime=SimpleNamespace(config={"configurable": {"thread_id": "thread-1"}}),
            )

        def handler(asked: Any) -> Any:
            runs.append(asked.tool_call["id"])
            if asked.tool_call["args"]["to"] == "nobody":
                raise OSError("reset")
            return SimpleNamespace(content="paid", tool_call_id=asked.tool_call["id"], status="success")

        async def handler_async(asked: Any) -> Any:
            return handler(asked)

        self.assertEqual(guard.wrap_tool_call(request("c1"), handler).content, "paid")
        again = asyncio.run(guard.awrap_tool_call(request("c2"), handler_async))
        self.assertEqual((again.content, again.tool_call_id), ("paid", "c2"))
        doubt = guard.wrap_tool_call(request("c3", to="nobody"), handler)
        self.assertEqual(doubt.status, "error")
        self.assertIn("IN_DOUBT", doubt.content)
        guard.wrap_tool_call(request("c4", name="search"), handler)
        self.assertEqual(runs, ["c1", "c3", "c4"])

    def test_a_message_that_is_an_error_is_not_recorded_as_done(self) -> None:
        guard = LangChainMiddleware({"mail": {"effect": "irreversible", "per": "conversation"}})
        runs: list[str] = []

        def request(call_id: str) -> Any:
            call = {"name": "mail", "args": {"to": "ann"}, "id": call_id}
            return SimpleNamespace(
                tool_call=call, runtime=SimpleNamespace(config={"configurable": {"thread_id": "thread-2"}})
            )

        def handler(asked: Any) -> Any:
            runs.append(asked.tool_call["id"])
            return SimpleNamespace(content="Error: reset", tool_call_id=asked.tool_call["id"], status="error")

        for call_id in ("c1", "c2"):
            said = guard.wrap_tool_call(request(call_id), handler)
            self.assertEqual(said.status, "error")
            self.assertIn("IN_DOUBT", said.content)
            self.assertIn("reset", said.content)
        self.assertEqual(runs, ["c1"])

    def test_arguments_that_the_tool_itself_refuses_are_no_doubt(self) -> None:
        class ValidationError(Exception):
            pass

        class Schema:
            """Of pydantic."""

            model_fields = {"amount": int}

            @staticmethod
            def model_validate(args: Any) -> None:
                if not isinstance(args.get("amount"), int) or paid:
                    raise ValidationError("amount: Input should be a valid integer")

        class StructuredTool:
            args_schema = Schema
            tool_call_schema = Schema

        StructuredTool.__module__ = "langchain_core.tools.structured"

        class OwnTool(StructuredTool):
            """It may do anything with its arguments."""

        class Injected(StructuredTool):
            tool_call_schema = SimpleNamespace(model_fields={})

        Injected.__name__, Injected.__module__ = "StructuredTool", StructuredTool.__module__
        paid: list[Any] = []
        guard = LangChainMiddleware({"pay": {"effect": "irreversible", "per": "conversation", "identity": ["to"]}})

        def request(to: str, amount: Any, tool: Any = StructuredTool) -> Any:
            call = {"name": "pay", "args": {"to": to, "amount": amount}, "id": "c1"}
            config = {"configurable": {"thread_id": "thread-4"}}
            return SimpleNamespace(tool_call=call, tool=tool(), runtime=SimpleNamespace(config=config))

        def handler(asked: Any) -> Any:
            amount = asked.tool_call["args"]["amount"]
            if isinstance(amount, str):
                return SimpleNamespace(content="amount: Input should be a valid integer", tool_call_id="c1", status="error")
            paid.append(amount)
            status = "error" if amount == 0 else "success"
            return SimpleNamespace(content=f"paid {amount}", tool_call_id="c1", status=status)

        async def handler_async(asked: Any) -> Any:
            return handler(asked)

        refused = guard.wrap_tool_call(request("ann", "5 EUR"), handler)
        self.assertEqual((refused.content, refused.status), ("amount: Input should be a valid integer", "error"))
        refused = asyncio.run(guard.awrap_tool_call(request("ann", "six"), handler_async))
        self.assertEqual(refused.status, "error")
        self.assertEqual(guard.wrap_tool_call(request("ann", 5), handler).content, "paid 5")
        self.assertEqual(paid, [5])
        paid.clear()
        # It ran, and only then is the model of its arguments against it.
        self.assertIn("IN_DOUBT", guard.wrap_tool_call(request("bob", 0), handler).content)
        paid.clear()
        for kind in (OwnTool, Injected, type(None)):
            self.assertIn("IN_DOUBT", guard.wrap_tool_call(request(kind.__qualname__, "5", kind), handler).content)
        huge = guard.wrap_tool_call(request("eve", 2**60), handler)
        self.assertEqual(huge.status, "error")
        self.assertIn("NOT_CANONICAL", huge.content)

    def test_an_interrupt_pauses_the_graph_and_the_call_runs_when_it_is_resumed(self) -> None:
        class GraphBubbleUp(Exception):
            pass

        class GraphInterrupt(GraphBubbleUp):
            pass

        guard = LangChainMiddleware({"wire": {"effect": "irreversible", "per": "conversation"}})
        call = {"name": "wire", "args": {"to": "ann"}, "id": "c1"}
        asked = SimpleNamespace(
            tool_call=call, runtime=SimpleNamespace(config={"configurable": {"thread_id": "thread-3"}})
        )
        runs: list[str] = []

        def handler(_: Any) -> Any:
            runs.append("asked")
            if len(runs) < 3:
                raise GraphInterrupt("approve?")
            return SimpleNamespace(content="sent", tool_call_id="c1", status="success")

        async def handler_async(request: Any) -> Any:
            return handler(request)

        with self.assertRaises(GraphInterrupt):
            guard.wrap_tool_call(asked, handler)
        with self.assertRaises(GraphInterrupt):
            asyncio.run(guard.awrap_tool_call(asked, handler_async))
        self.assertEqual(guard.wrap_tool_call(asked, handler).content, "sent")
        self.assertEqual(guard.wrap_tool_call(asked, handler).content, "sent")
        self.assertEqual(len(runs), 3)

    def test_identity_of_engines_is_the_same_on_a_retry(self) -> None:
        first = SimpleNamespace(id="t-1", task="shop.mail", retries=0)
        retry = SimpleNamespace(id="t-1", task="shop.mail", retries=3)
        self.assertEqual(from_celery(first), from_celery(retry))
        task = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=2, try_number=1)
        other = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=2, try_number=4)
        self.assertEqual(from_airflow({"ti": task}), from_airflow({"ti": other}))
        self.assertEqual(from_airflow({"ti": task})["turn"], "t[2]")
        at = datetime.datetime(2026, 6, 19, 7, tzinfo=datetime.timezone.utc)
        with semel.within(**from_apscheduler("digest", at)):
            self.assertTrue(semel.handoff().startswith("semel1."))
        with self.assertRaises(semel.InvalidArgs):
            from_celery(SimpleNamespace(id=None))


if __name__ == "__main__":
    unittest.main()
