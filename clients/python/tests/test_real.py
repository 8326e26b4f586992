"""Adapters with the packages themselves, where they can be imported. What cannot be imported is skipped, and says so."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import importlib
import sys
import threading
import unittest
from collections.abc import Callable
from typing import Any

import semel
from semel.adapters import LangChainMiddleware, as_function, from_apscheduler, from_celery

from .support import Place, wait_until


def needs(*modules: str) -> Callable[[Any], Any]:
    for each in modules:
        try:
            importlib.import_module(each)
        except Exception as error:
            why = f"{each} cannot be imported ({type(error).__name__}: {error})"
            print(f"SKIPPED: an adapter was not tested with its package: {why}", file=sys.stderr)
            return unittest.skip(why)
    return lambda test: test


@dataclasses.dataclass
class Stored:
    payment: str
    cents: int


@needs("langchain.agents", "langgraph.graph")
class LangChain(Place):
    def agent(self, tools: list[Any], policies: Any, messages: list[Any]) -> Any:
        """A real agent, whose model says these messages."""
        from langchain.agents import create_agent  # type: ignore[import]
        from langchain.agents.middleware import AgentMiddleware  # type: ignore[import]
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # type: ignore[import]
        from langgraph.checkpoint.memory import InMemorySaver  # type: ignore[import]

        class Guard(LangChainMiddleware, AgentMiddleware):  # type: ignore[misc]
            def __init__(self) -> None:
                AgentMiddleware.__init__(self)
                LangChainMiddleware.__init__(self, policies)

        class Model(GenericFakeChatModel):  # type: ignore[misc]
            def bind_tools(self, *_: Any, **__: Any) -> Any:
                return self

        return create_agent(Model(messages=iter(messages)), tools, middleware=[Guard()], checkpointer=InMemorySaver())

    def call(self, id: str, name: str, **args: Any) -> Any:
        from langchain_core.messages import AIMessage

        return AIMessage(content="", tool_calls=[{"name": name, "args": args, "id": id}])

    def ask(self, agent: Any, thread: str, asked: Any, is_async: bool) -> list[Any]:
        """What the tools answered in this turn."""
        from langchain_core.messages import ToolMessage

        config = {"configurable": {"thread_id": thread}}
        answer = asyncio.run(agent.ainvoke(asked, config)) if is_async else agent.invoke(asked, config)
        return [each for each in answer["messages"] if isinstance(each, ToolMessage)]

    def test_an_agent_that_calls_twice_pays_once(self) -> None:
        from langchain_core.messages import AIMessage
        from langchain_core.tools import tool

        policies = {"pay": {"effect": "irreversible", "per": "conversation", "identity": ["to"]}}
        for is_async in (False, True):
            with self.subTest(is_async=is_async):
                paid: list[str] = []

                @tool
                def pay(to: str, amount: int, note: str = "") -> str:
                    """Pays."""
                    paid.append(to)
                    if to == "nobody":
                        raise OSError("reset")
                    return f"paid {to}"

                def done() -> Any:
                    return AIMessage(content="done")

                agent = self.agent(
                    [pay],
                    policies,
                    [
                        *(self.call("c1", "pay", to="ann", amount=5), done()),
                        *(self.call("c2", "pay", to="ann", amount=5, note="as asked"), done()),
                        *(self.call("c3", "pay", to="bob", amount="five"), self.call("c4", "pay", to="bob", amount=5), done()),
                        *(self.call("c5", "pay", to="nobody", amount=5), self.call("c6", "pay", to="nobody", amount=5), done()),
                    ],
                )
                said: list[Any] = []
                for text in ("pay ann", "pay ann, please", "pay bob", "pay nobody"):
                    said = self.ask(agent, f"real {is_async}", {"messages": [("user", text)]}, is_async)
                by_id = {each.tool_call_id: each for each in said}
                self.assertEqual((by_id["c1"].content, by_id["c2"].content), ("paid ann", "paid ann"))
                # Its arguments were refused before it ran, so the model may correct them.
                self.assertEqual((by_id["c3"].status, by_id["c4"].content), ("error", "paid bob"))
                for id in ("c5", "c6"):
                    self.assertEqual(by_id[id].status, "error")
                    self.assertIn("IN_DOUBT", by_id[id].content)
                self.assertEqual(paid, ["ann", "bob", "nobody"])

    def test_an_interrupt_pauses_the_graph_and_the_call_runs_when_it_is_resumed(self) -> None:
        from langchain_core.messages import AIMessage
        from langchain_core.tools import tool
        from langgraph.types import Command, interrupt  # type: ignore[import]

        sent: list[str] = []

        @tool
        def wire(to: str) -> str:
            """Wires."""
            sent.append(f"{to} {interrupt('approve?')}")
            return "sent"

        policies = {"wire": {"effect": "irreversible", "per": "conversation"}}
        agent = self.agent([wire], policies, [self.call("c1", "wire", to="ann"), AIMessage(content="done")])
        self.assertEqual(self.ask(agent, "paused", {"messages": [("user", "wire")]}, False), [])
        self.assertEqual(sent, [])
        self.assertEqual(self.ask(agent, "paused", Command(resume="yes"), False)[0].content, "sent")
        self.assertEqual(sent, ["ann yes"])


@needs("mcp.server.mcpserver")
class Mcp(Place):
    def test_a_server_answers_a_refusal_instead_of_asking_to_try_again(self) -> None:
        from mcp import Client  # type: ignore[import]
        from mcp.server.mcpserver import MCPServer  # type: ignore[import]

        refunds: list[str] = []

        @semel.tool("mcp.refund", per="ever", effect="irreversible", identity=["payment"])
        def refund(payment: str, reason: str = "") -> str:
            """Refunds a payment."""
            refunds.append(payment)
            if payment == "p2":
                raise OSError("reset")
            return f"re_{len(refunds)}"

        @semel.tool("mcp.lookup", per="ever")
        async def look_up(payment: str) -> Stored:
            if payment == "p2":
                raise OSError("reset")
            return Stored(payment, 5)

        server = MCPServer("shop")
        server.tool()(as_function(look_up))
        server.tool()(as_function(refund))

        async def main() -> list[tuple[bool, str]]:
            async with Client(server) as client:
                (found,) = [each for each in (await client.list_tools()).tools if each.name == "refund"]
                self.assertEqual((found.name, found.description), ("refund", "Refunds a payment."))
                self.assertEqual(sorted(found.input_schema["properties"]), ["payment", "reason"])
                asked = [{"payment": "p1"}, {"payment": "p1", "reason": "broken"}, {"payment": "p2"}, {"payment": "p2"}]
                answers = [await client.call_tool("refund", each) for each in asked]
                answers += [await client.call_tool("look_up", {"payment": each}) for each in ("p1", "p1", "p2")]
                return [(bool(each.is_error), each.content[0].text) for each in answers]

        said = asyncio.run(main())
        self.assertEqual(said[:2], [(False, "re_1"), (False, "re_1")])
        for is_error, text in (*said[2:4], said[6]):
            self.assertIn("IN_DOUBT", text)
            self.assertFalse(is_error)
        for _, text in said[4:6]:
            self.assertIn('"cents": 5', text)
        self.assertEqual(refunds, ["p1", "p2"])


@needs("pydantic.json_schema")
class Pydantic(Place):
    def test_models_are_args_and_results(self) -> None:
        import pydantic

        class Order(pydantic.BaseModel):
            id: int
            at: datetime.datetime

        class Paid(pydantic.BaseModel):
            order: Order
            ref: str

        globals().update(Order=Order, Paid=Paid)
        runs: list[int] = []

        @semel.tool("pydantic.pay", per="ever")
        def pay(order: Order) -> Paid:
            runs.append(order.id)
            return Paid(order=order, ref="tx_1")

        order = Order(id=7, at=datetime.datetime(2026, 6, 19, 7, tzinfo=datetime.timezone.utc))
        first, again = pay(order), pay(Order.model_validate(order.model_dump()))
        self.assertEqual(first, again)
        self.assertIsInstance(again, Paid)
        self.assertEqual(runs, [7])


@needs("celery")
class Celery(Place):
    def test_a_retry_and_a_redelivery_send_one_mail(self) -> None:
        import celery  # type: ignore[import]

        app = celery.Celery("test", broker="memory://")
        app.conf.task_always_eager = True
        seen: list[dict[str, str]] = []
        sent: list[str] = []

        @semel.tool("celery.mail", per="turn")
        def send(to: str) -> None:
            sent.append(to)

        @app.task(bind=True, name="mail")  # type: ignore[misc]
        def mail(self: Any) -> None:
            seen.append(from_celery(self.request))
            with semel.within(**seen[-1]):
                send("ann")
            if len(seen) < 3:
                raise self.retry(countdown=0)

        mail.apply(task_id="t-7")
        self.assertEqual(seen, [{"conversation": "celery:t-7", "turn": "task"}] * 3)
        # As after a worker that died.
        mail.apply(task_id="t-7")
        self.assertEqual(sent, ["ann"])
        mail.apply(task_id="t-8")
        self.assertEqual(sent, ["ann", "ann"])


@needs("apscheduler.schedulers.background")
class APScheduler(Place):
    def test_two_schedulers_send_the_report_of_an_instant_once(self) -> None:
        from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_SUBMITTED  # type: ignore[import]
        from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import]

        sent: list[str] = []

        @semel.tool("apscheduler.report", per="run")
        def report(name: str) -> None:
            sent.append(name)

        at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
        done: list[Any] = []
        for _ in range(2):
            scheduler = BackgroundScheduler(timezone="UTC")
            scheduled: list[datetime.datetime] = []
            submitted = threading.Event()

            def on_submitted(event: Any, scheduled: Any = scheduled, submitted: Any = submitted) -> None:
                scheduled.extend(event.scheduled_run_times)
                submitted.set()

            def run(scheduled: Any = scheduled, submitted: Any = submitted) -> None:
                submitted.wait(30)
                with semel.within(**from_apscheduler("digest", scheduled[-1])):
                    report("week")

            scheduler.add_listener(on_submitted, EVENT_JOB_SUBMITTED)
            scheduler.add_listener(done.append, EVENT_JOB_EXECUTED)
            scheduler.add_job(run, "date", run_date=at, id="digest", misfire_grace_time=60)
            scheduler.start()
            self.addCleanup(scheduler.shutdown)
        wait_until(lambda: len(done) == 2, "both have run")
        self.assertEqual(sent, ["week"])


if __name__ == "__main__":
    unittest.main()
