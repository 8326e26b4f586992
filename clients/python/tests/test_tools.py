"""Calls through a server that is started on first use."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import dataclasses
import datetime
import functools
import multiprocessing
import pickle
import sqlite3
import threading
import unittest
import unittest.mock
import warnings
from collections.abc import Iterator
from typing import Any

import semel
from semel import transport

from .support import Place


@dataclasses.dataclass
class Sent:
    id: str
    at: datetime.datetime


@dataclasses.dataclass
class Priced:
    amount: float


@semel.tool("picklable", per="ever")
def picklable(n: int) -> int:
    return n


class Calls(Place):
    def test_a_repeat_gets_the_value_and_runs_nothing(self) -> None:
        sent: list[str] = []

        @semel.tool("email.send", identity=["lead", "template"], per="day", tz="Europe/Paris", content=["body"])
        def send(lead: int, template: str, body: str) -> str:
            sent.append(body)
            return f"m{len(sent)}"

        self.assertEqual(send(7, "welcome", "Hello"), "m1")
        self.assertEqual(send(7, template="welcome", body="Dear Ann"), "m1")
        outcome = send.attempt(7, "welcome", body="Hi")
        assert outcome.receipt is not None
        self.assertTrue(outcome.ok and outcome.receipt.replayed and not outcome.receipt.executed)
        self.assertEqual(outcome.receipt.drift, ("body",))
        self.assertTrue(outcome.receipt.key.startswith("email.send/"))
        self.assertEqual(send(8, "welcome", "Hello"), "m2")
        self.assertEqual(len(sent), 2)

    def test_one_decorator_serves_async_functions_too(self) -> None:
        sent: list[str] = []

        @semel.tool("email.send.async", per="ever", identity=["lead"])
        async def send(lead: int, body: str) -> str:
            await asyncio.sleep(0)
            sent.append(semel.current_async().key)
            return body

        async def main() -> list[str]:
            return await asyncio.gather(*(send(1, f"text {at}") for at in range(8)))

        values = asyncio.run(main())
        self.assertEqual(len(sent), 1)
        self.assertEqual(len(set(values)), 1)
        self.assertRegex(sent[0], "^[0-9a-f-]{36}$")

    def test_what_the_function_raises_says_what_its_error_means(self) -> None:
        runs: list[str] = []

        @semel.tool("refund", per="ever", effect="irreversible")
        def refund(payment: str) -> str:
            runs.append(payment)
            if payment == "not landed" and len(runs) == 1:
                raise semel.NotLanded("no connection")
            if payment == "rejected":
                raise semel.Rejected("too late")
            if payment == "unknown":
                raise OSError("reset")
            return "ok"

        with self.assertRaises(semel.NotLanded) as not_landed:
            refund("not landed")
        self.assertTrue(not_landed.exception.retriable)
        self.assertEqual(refund("not landed"), "ok")
        for _ in range(2):
            with self.assertRaises(semel.Failed) as failed:
                refund("rejected")
            self.assertIn("too late", str(failed.exception))
        with self.assertRaises(semel.InDoubt) as first:
            refund("unknown")
        self.assertIsInstance(first.exception.__cause__, OSError)
        self.assertIn(f"semel resolve {first.exception.ref} landed", str(first.exception))
        with self.assertRaises(semel.InDoubt) as doubt:
            refund("unknown")
        self.assertEqual(doubt.exception.code, "IN_DOUBT")
        self.assertFalse(doubt.exception.retriable)
        self.assertRegex(doubt.exception.ref or "", "@")
        self.assertTrue(doubt.exception.corrective_action and doubt.exception.evidence)
        self.assertEqual(runs.count("unknown"), 1)
        self.assertEqual(runs.count("rejected"), 1)

    def test_an_inner_call_that_did_not_land_says_nothing_about_the_outer_one(self) -> None:
        @semel.tool("inner", per="ever")
        def inner(n: int) -> None:
            raise semel.NotLanded("refused")

        @semel.tool("outer", per="ever")
        def outer(n: int) -> None:
            inner(n)

        with self.assertRaises(semel.InDoubt):
            outer(1)

    def test_the_word_of_a_read_or_a_job_says_nothing_about_the_call_around_it(self) -> None:
        sent: list[str] = []

        @semel.tool("look", effect="read")
        def look(word: str) -> None:
            raise semel.NotLanded("no index") if word == "not landed" else semel.Rejected("no index")

        @semel.job("inner.job", per="ever")
        def inner(job: semel.JobContext) -> None:
            raise semel.NotLanded("no disk")

        @semel.tool("around", per="ever")
        def around(word: str) -> None:
            sent.append(word)
            if word == "job":
                inner.run()
            look(word)

        for word in ("not landed", "rejected", "job"):
            for _ in range(2):
                with self.assertRaises(semel.InDoubt):
                    around(word)
        self.assertEqual(sent, ["not landed", "rejected", "job"])

    def test_what_has_not_run_is_not_recorded_as_done(self) -> None:
        ran: list[str] = []

        def generator() -> Iterator[str]:
            ran.append("generator")
            yield "x"

        async def later() -> None:
            ran.append("coroutine")

        class Sender:
            async def __call__(self, n: int) -> None:
                ran.append("object")

        pool = concurrent.futures.ThreadPoolExecutor(1)
        self.addCleanup(pool.shutdown)
        works: dict[str, Any] = {
            "generator": lambda: generator(),
            "coroutine": lambda: later(),
            "map": lambda: map(ran.append, ["map"]),
            "future": lambda: pool.submit(str),
            "list": lambda: [later(), later()],
            "record": lambda: {"sent": 1, "rest": later()},
        }
        for name, work in works.items():
            for _ in range(2):
                with self.subTest(name), self.assertRaises(semel.InDoubt):
                    semel.once("lazy", name, work)
        # What can be seen before it runs is not even claimed.
        for work in (generator, later, Sender().__call__, functools.partial(later)):
            for _ in range(2):
                with self.assertRaises(semel.ContractInvalid):
                    semel.once("lazy", "seen", work)
        self.assertIsInstance(semel.tool("lazy.object", per="ever")(Sender()), semel.AsyncTool)

        async def main() -> None:
            with self.assertRaises(semel.ContractInvalid):
                await semel.once_async("lazy", "seen", generator)  # type: ignore[arg-type]
            # A sync function has run when it returns: it is done.
            self.assertEqual(await semel.once_async("lazy", "seen", lambda: "done"), "done")  # type: ignore[arg-type]
            with self.assertRaises(semel.InDoubt) as doubt:
                await semel.once_async("lazy", "async", lambda: asyncio.sleep(0, generator()))
            self.assertIsInstance(doubt.exception.__cause__, semel.ContractInvalid)

        asyncio.run(main())
        self.assertEqual(ran, [])

    def test_a_call_is_not_done_before_the_steps_that_it_does_not_wait_for(self) -> None:
        done: list[str] = []

        @semel.tool("careless", per="ever")
        async def careless(ok: bool, ctx: semel.AsyncContext) -> str:
            async def mail() -> None:
                await asyncio.sleep(0.2)
                if not ok:
                    raise OSError("reset")
                done.append("mail")

            self.task = asyncio.create_task(ctx.step("mail", mail))
            await asyncio.sleep(0.05)
            return "ok"

        async def main() -> None:
            self.assertEqual(await careless(True), "ok")
            self.assertEqual(done, ["mail"])
            with self.assertRaises(semel.InDoubt):
                await careless(False)
            with self.assertRaises(semel.InDoubt):
                await self.task

        asyncio.run(main())

    def test_a_step_that_is_not_awaited_does_not_count_as_done(self) -> None:
        ran: list[str] = []

        async def mail() -> None:
            ran.append("mail")

        @semel.tool("forgotten", per="ever")
        async def forgotten(n: int, ctx: semel.AsyncContext) -> str:
            ctx.step("mail", mail)
            return "ok"

        @semel.tool("forgotten.dispatch", per="ever", dispatch="explicit")
        async def unsent(n: int, ctx: semel.AsyncContext) -> str:
            ctx.dispatch().close()
            ran.append("sent")
            raise OSError("reset")

        @semel.job("forgotten.job", per="ever")
        async def job(ctx: semel.AsyncJobContext) -> None:
            ctx.once("mail", mail)

        async def main() -> None:
            calls: list[Any] = [forgotten, unsent]
            for call in calls:
                for _ in range(2):
                    with self.assertRaises(semel.InDoubt):
                        await call(1)
            with self.assertRaises(semel.ContractInvalid) as failed:
                await job.run()
            self.assertIn("not awaited", str(failed.exception))

        asyncio.run(main())
        self.assertEqual(ran, ["sent"])

    def test_a_tool_that_calls_itself_does_not_wait_for_itself(self) -> None:
        @semel.tool("loop", per="ever")
        def loop(n: int) -> Any:
            return loop.attempt(n).error

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertIsInstance(loop(1), semel.Reentrant)

    def test_identity_is_the_place_of_a_call_in_threads_and_tasks(self) -> None:
        runs: list[str] = []

        @semel.tool("note", per="turn")
        def note(text: str) -> int:
            runs.append(text)
            return len(runs)

        with self.assertRaises(semel.NoIdentity):
            note("a")
        with semel.within(conversation="c1", turn="t1"):
            self.assertEqual(note("a"), 1)
            context = contextvars.copy_context()
            with concurrent.futures.ThreadPoolExecutor() as pool:
                self.assertEqual(pool.submit(context.run, note, "a").result(), 1)

            async def task() -> int:
                return await asyncio.to_thread(note, "a")

            self.assertEqual(asyncio.run(task()), 1)
            text = semel.handoff()
            with semel.within(turn="t2"):
                self.assertEqual(note("a"), 2)
            with semel.within(conversation="c2"), self.assertRaises(semel.NoIdentity):
                note("a")
        with semel.within(handoff=text):
            self.assertEqual(note("a"), 1)
            with semel.within(turn="t2"):
                self.assertEqual(note("a"), 2)

    def test_a_caller_gets_only_its_own(self) -> None:
        @semel.tool("secret", per="ever")
        def secret(n: int) -> str:
            return "of ann"

        with semel.within(caller="ann"):
            self.assertEqual(secret(1), "of ann")
        with semel.within(caller="bob"), self.assertRaises(semel.NotPermitted):
            secret(1)

    def test_own_keys_conflicts_and_deliberate_repeats(self) -> None:
        runs: list[int] = []

        @semel.tool("charge", per="ever")
        def charge(amount: int) -> int:
            runs.append(amount)
            return len(runs)

        keyed = charge.with_options(key="k1")
        self.assertEqual(keyed(5), 1)
        self.assertEqual(keyed(5), 1)
        with self.assertRaises(semel.KeyConflict):
            keyed(6)
        self.assertEqual(charge(5), 2)
        self.assertEqual(charge.with_options(again="the customer asked")(5), 3)

    def test_the_context_notes_dispatches_and_takes_steps(self) -> None:
        charged: list[str] = []
        fail = [True]

        @semel.tool("order", per="ever", dispatch="explicit")
        def order(n: int, ctx: semel.Context) -> str:
            charge = ctx.step("charge", lambda: charged.append("x") or "ch_1")  # type: ignore[func-returns-value]
            ctx.dispatch()
            ctx.note("or_1")
            if fail.pop() if fail else False:
                raise semel.NotLanded("shipping is down")
            return f"{charge} {ctx.attempt}"

        # A step landed, so the whole is not "not landed".
        with self.assertRaises(semel.InDoubt) as doubt:
            order(1)  # type: ignore[call-arg]
        self.assertEqual(charged, ["x"])
        self.assertIsNotNone(doubt.exception.ref)

    def test_before_dispatch_a_failure_is_free(self) -> None:
        runs: list[int] = []

        @semel.tool("prepared", per="ever", dispatch="explicit")
        async def prepared(n: int, ctx: semel.AsyncContext) -> str:
            runs.append(n)
            if len(runs) == 1:
                raise OSError("before anything was sent")
            await ctx.dispatch()
            await ctx.note("x1")
            return await ctx.step("only", step)

        async def step() -> str:
            return "done"

        with self.assertRaises(semel.SemelError):
            asyncio.run(prepared(1))  # type: ignore[call-arg]
        self.assertEqual(asyncio.run(prepared(1)), "done")  # type: ignore[call-arg]

    def test_reads_and_idempotent_writes_run_each_time(self) -> None:
        runs: list[str] = []

        @semel.tool("look", effect="read")
        def look(n: int) -> int:
            runs.append("look")
            if n == 0:
                raise KeyError("missing")
            return n

        @semel.tool("light", effect="write-idempotent", identity=["lamp"])
        def light(lamp: str, on: bool) -> bool:
            runs.append(f"{lamp} {on}")
            return on

        self.assertEqual([look(1), look(1)], [1, 1])
        with self.assertRaises(KeyError):
            look(0)
        self.assertEqual([light("a", True), light("a", False), light("a", True)], [True, False, True])
        self.assertEqual(len(runs), 6)

    def test_once_runs_once_for_its_name_and_id(self) -> None:
        runs: list[int] = []

        def work() -> int:
            runs.append(1)
            return len(runs)

        self.assertEqual(semel.once("welcome", {"user": 7}, work), 1)
        self.assertEqual(semel.once("welcome", {"user": 7}, work), 1)
        self.assertEqual(semel.once("welcome", {"user": 8}, work), 2)

        async def later() -> int:
            return work()

        self.assertEqual(asyncio.run(semel.once_async("welcome", {"user": 8}, later)), 2)
        with self.assertRaises(semel.NotCanonical):
            semel.once("welcome", None, work)

    def test_a_replay_equals_the_first_answer_or_is_refused(self) -> None:
        moment = datetime.datetime(2026, 11, 18, 9, tzinfo=datetime.timezone.utc)

        @semel.tool("typed", per="ever")
        def typed(n: int) -> Sent:
            return Sent("m1", moment)

        first, again = typed(1), typed.attempt(1)
        self.assertEqual(first, again.value)
        self.assertIsInstance(again.value, Sent)

        @semel.tool("loose", per="ever")
        def loose(n: int) -> object:
            return object()

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            loose(1)
        self.assertEqual(len(seen), 1)
        with self.assertRaises(semel.ResultOmitted):
            loose(1)

    def test_a_result_that_no_server_takes_is_recorded_without_its_value(self) -> None:
        @semel.tool("too-large", per="ever")
        def send(n: int) -> str:
            return "x" * 17_000_000

        @semel.job("too-large", per="ever")
        def job_of_it(job: semel.JobContext) -> str:
            return job.once("too-large-too", lambda: "x" * 17_000_000)

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.assertEqual(len(send(1)), 17_000_000)
            self.assertEqual(job_of_it.run().status, "executed")
        self.assertRegex(str(seen[0].message), "more than 1048576 bytes")
        with self.assertRaises(semel.ResultOmitted):
            send(1)
        self.assertEqual(job_of_it.run().status, "skipped")

    def test_nothing_that_python_says_about_a_result_keeps_it_from_its_record(self) -> None:
        class Unreadable(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        class Unclear(dict):  # type: ignore[type-arg]
            """As arrays have it."""

            def __eq__(self, other: object) -> Any:
                return Unclear()

            def __bool__(self) -> bool:
                raise ValueError("the truth value is ambiguous")

        @semel.tool("strange", per="ever")
        def strange(what: str, ctx: semel.Context) -> Any:
            if what == "error":
                raise Unreadable()
            if what in refs:
                with self.assertRaises(ValueError):
                    ctx.note(refs[what])
            return {"set": {1}, "unclear": Unclear()}.get(what, what)

        refs = {"long": "x" * 501, "surrogate": "\ud800", "wide": "\U0001f600" * 251}
        call: Any = strange
        with warnings.catch_warnings():
            # As test runners are often told to.
            warnings.simplefilter("error")
            for what, code in (("set", "RESULT_OMITTED"), ("unclear", "RESULT_OMITTED"), ("error", "IN_DOUBT")):
                self.assertEqual(call.attempt(what).ok, what != "error")
                self.assertEqual(call.attempt(what).error.code, code)
            for what in refs:
                self.assertEqual(call(what), what)
                self.assertTrue(call.attempt(what).receipt.replayed)

    def test_a_value_that_no_longer_fits_is_told_as_done(self) -> None:
        def define(returns: Any) -> Any:
            def typed(n: int) -> Any:
                return Priced(1.0)

            typed.__annotations__["return"] = returns
            return semel.tool("outgrown", per="ever")(typed)

        define(Priced)(1)
        error = define(Sent).attempt(1).error
        self.assertEqual((error.code, error.retriable, error.value), ("RESULT_OMITTED", False, {"amount": 1}))

    def test_a_success_whose_record_was_removed_keeps_its_value(self) -> None:
        @semel.tool("removed", per="ever")
        def removed(n: int) -> str:
            for file in self.folder.rglob("*.db"):
                with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as ledger:
                    ledger.execute("DELETE FROM records WHERE id = (SELECT max(id) FROM records)")
            return "tx_1"

        with self.assertRaises(semel.Unrecorded) as done:
            removed(1)
        self.assertEqual(done.exception.value, "tx_1")

    def test_the_lease_is_renewed_while_it_runs(self) -> None:
        @semel.tool("slow", per="ever", lease="1s")
        def slow(n: int) -> bool:
            # Longer than three leases, in which nobody may take it over.
            threading.Event().wait(4)
            return semel.current().lost.is_set()

        self.assertFalse(slow(1))

        @semel.tool("slow.async", per="ever", lease="1s")
        async def slow_async(n: int) -> bool:
            await asyncio.sleep(4)
            return semel.current_async().lost.is_set()

        self.assertFalse(asyncio.run(slow_async(1)))

    def test_answers_that_are_lost_are_asked_for_again(self) -> None:
        lost: list[str] = []
        answer = transport.Transport._try

        def lose_first(this: Any, address: Any, request: Any) -> Any:
            answered = answer(this, address, request)
            if request.path not in lost:
                lost.append(request.path)
                raise ConnectionResetError("the answer is lost")
            return answered

        runs: list[int] = []

        @semel.tool("lossy", per="ever", dispatch="explicit")
        def lossy(n: int, ctx: semel.Context) -> str:
            runs.append(n)
            ctx.dispatch()
            ctx.note("x1")
            return ctx.step("only", lambda: runs.append(n) or "done")  # type: ignore[func-returns-value]

        with unittest.mock.patch.object(transport.Transport, "_try", lose_first):
            outcome = lossy.attempt(1)  # type: ignore[call-arg]
        self.assertEqual((outcome.value, runs), ("done", [1, 1]))
        assert outcome.receipt is not None
        self.assertEqual((outcome.receipt.attempt, outcome.receipt.remote_ref), (1, "x1"))
        self.assertEqual(sorted(lost), ["/v1/begin", "/v1/dispatch", "/v1/renew", "/v1/settle", "/v1/step"])

    def test_a_method_is_guarded_without_its_object(self) -> None:
        class Shop:
            def __init__(self) -> None:
                self.sold: list[str] = []

            @semel.tool("sell", per="ever")
            def sell(self, item: str) -> int:
                self.sold.append(item)
                return len(self.sold)

        self.assertEqual(Shop().sell("cup"), 1)
        other = Shop()
        self.assertEqual(other.sell("cup"), 1)
        self.assertEqual(other.sold, [])

    def test_class_methods_and_static_methods_are_guarded_either_way_round(self) -> None:
        def define() -> Any:
            class Shop:
                @classmethod
                @semel.tool("shop.inner", per="ever")
                def inner(cls, item: str) -> list[Any]:
                    return [cls.__name__, item]

                @semel.tool("shop.outer", per="ever")
                @classmethod
                def outer(cls, item: str) -> list[Any]:
                    return [cls.__name__, item]

                @staticmethod
                @semel.tool("shop.static.inner", per="ever")
                def static_inner(item: str = "x") -> str:
                    return item

                @semel.tool("shop.static.outer", per="ever")
                @staticmethod
                def static_outer(item: str = "x") -> str:
                    return item

            return Shop

        shop = define()
        for place in (shop, shop()):
            for method in (place.inner, place.outer):
                self.assertEqual(method("cup"), ["Shop", "cup"])
            for method in (place.static_inner, place.static_outer):
                self.assertEqual((method(), method("cup")), ("x", "cup"))
        self.assertTrue(shop().outer.attempt("cup").receipt.replayed)

    def test_a_tool_and_its_errors_go_to_other_processes(self) -> None:
        self.assertIs(pickle.loads(pickle.dumps(picklable)), picklable)
        again = pickle.loads(pickle.dumps(picklable.with_options(again="asked twice")))
        self.assertEqual((again(1), again.attempt(1).receipt.replayed), (1, True))
        self.assertFalse(picklable.attempt(1).receipt.replayed)
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
            self.assertEqual(pool.submit(picklable, 2).result(60), 2)
        error = semel.InDoubt("it may have landed.", ref="a@1", evidence={"n": 1})
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.ref, copy.evidence, copy.is_report), (str(error), "a@1", {"n": 1}, False))

    def test_a_default_is_the_same_as_nothing_said(self) -> None:
        runs: list[int] = []

        @semel.tool("search.save", per="ever")
        def save(text: str, limit: int = 10, *more: int, **rest: int) -> int:
            runs.append(1)
            return len(runs)

        self.assertEqual(save("a"), 1)
        self.assertEqual(save("a", limit=10), 1)
        self.assertEqual(save("a", limit=11), 2)
        self.assertEqual(save("a", 10, 1), 3)
        self.assertEqual(save("a", page=2), 4)

    def test_a_function_gets_the_objects_that_it_was_called_with(self) -> None:
        got: list[Any] = []

        @semel.tool("price.set", per="ever")
        def price(amount, quantity=1.0):  # type: ignore[no-untyped-def]
            got.append(amount)
            return str(amount)

        sent = Sent("m", datetime.datetime(2026, 6, 19, tzinfo=datetime.timezone.utc))
        plain = Priced(100.0)
        for value in (100.0, 1e17, plain, sent):
            price(value)
            self.assertIs(got[-1], value)
        # 1 and 1.0 are one number.
        self.assertEqual(price(100), "100.0")
        keys = {price.attempt(*args).receipt.key for args in ((7,), (7, 1), (7, 1.0))}
        self.assertEqual(len(keys), 1)

    def test_no_two_calls_share_a_key_by_the_names_of_their_arguments(self) -> None:
        runs: list[Any] = []

        @semel.tool("named", per="ever")
        def named(a: int, *more: int, **rest: Any) -> None:
            runs.append((a, more, rest))

        named(1, 2)
        with self.assertRaises(semel.InvalidArgs):
            named(1, more=[2])
        self.assertEqual(runs, [(1, (2,), {})])

    def test_the_context_may_stand_anywhere(self) -> None:
        @semel.tool("placed.first", per="ever")
        def first(ctx: semel.Context, n: int, step: int = 1, *more: int, **rest: int) -> list[Any]:
            return [ctx.attempt, n, step, list(more), rest]

        @semel.tool("placed.last", per="ever")
        async def last(n: int, step: int = 1, *, ctx: semel.AsyncContext) -> list[Any]:
            return [ctx.attempt, n, step]

        call: Any = first
        self.assertEqual(call(5), [1, 5, 1, [], {}])
        self.assertEqual(call(5, 2, 3, page=4), [1, 5, 2, [3], {"page": 4}])
        with self.assertRaises(semel.InvalidArgs):
            call(5, ctx=6)
        later: Any = last
        self.assertEqual(asyncio.run(later(6)), [1, 6, 1])
        self.assertEqual(asyncio.run(later(7, ctx=None)), [1, 7, 1])

    def test_what_is_missing_is_said_where_it_is_written_and_as_python_writes_it(self) -> None:
        decorate: Any = semel.tool
        job: Any = semel.job

        def plain() -> None: ...

        for write, said in (
            (lambda: decorate(plain), '@semel.tool("mail.send"'),
            (lambda: job(plain), '@semel.job("mail.send"'),
            (lambda: decorate("wire", effect="irreversible"), 'per="ever"'),
            (lambda: job("none", per="day")(plain), "JobContext"),
        ):
            with self.assertRaises(semel.ContractInvalid) as error:
                write()
            self.assertIn(said, str(error.exception))
        with self.assertRaises(semel.NoIdentity) as nobody:
            semel.tool("whose", per="conversation")(plain)()
        self.assertIn("with semel.within(conversation=", str(nobody.exception))
        semel.tool("edited", per="ever")(plain)()
        with self.assertRaises(semel.ContractInvalid) as edited:
            semel.tool("edited", per="day")(plain)()
        self.assertIn("SEMEL_IDLE", str(edited.exception))

    def test_terms_that_make_no_key_may_change_and_those_that_do_may_not(self) -> None:
        def define(**terms: Any) -> Any:
            return semel.tool("changed", **terms)(lambda n, m=0: n)

        self.assertEqual(define(per="ever", lease="10s")(1), 1)
        changes: list[dict[str, Any]] = [
            {"lease": "20s"},
            {"window": "2d"},
            {"timeout": "1m"},
            {"stakes": "high"},
            {"provider": {"name": "bank", "window": "30d"}},
        ]
        for at, change in enumerate(changes):
            self.assertEqual(define(**{"per": "ever", **change})(at + 2), at + 2)
        for change in ({"per": "day"}, {"effect": "write-idempotent"}, {"identity": ["n"]}, {"content": ["m"]}, {"volatile": ["m"]}):
            with self.subTest(change), self.assertRaises(semel.ContractInvalid):
                define(**{"per": "ever", **change})(9)

    def test_a_misspelt_field_is_refused_at_once(self) -> None:
        with self.assertRaises(semel.ContractInvalid):

            @semel.tool("x", per="ever", identity=["leed"])
            def x(lead: int) -> None: ...

        with self.assertRaises(semel.ContractInvalid):

            @semel.tool("y", per="ever")
            def y(n: int) -> Any:
                yield n

    def test_a_task_that_is_cancelled_before_it_runs_is_not_in_doubt(self) -> None:
        runs: list[int] = []

        @semel.tool("early", per="ever", lease="1s")
        async def early(n: int) -> str:
            runs.append(n)
            return "done"

        asked: list[str] = []
        send = transport.Transport.send_async

        async def answered_late(own: transport.Transport, request: transport.Request) -> dict[str, Any]:
            answer = await send(own, request)
            asked.append(request.path)
            if len(asked) == 1:
                await asyncio.sleep(0.1)
            return answer

        async def main() -> None:
            with unittest.mock.patch.object(transport.Transport, "send_async", answered_late):
                task = asyncio.create_task(early(1))
                while not asked:
                    await asyncio.sleep(0.005)
                # The claim is made, and nobody has heard of it.
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
            self.assertEqual(runs, [])
            self.assertEqual(await early(1), "done")

        asyncio.run(main())
        self.assertEqual(asked, ["/v1/begin", "/v1/settle"])

    def test_a_cancelled_task_is_in_doubt(self) -> None:
        started = asyncio.Event()

        @semel.tool("cancelled", per="ever")
        async def cancelled(n: int) -> None:
            started.set()
            await asyncio.sleep(60)

        async def main() -> None:
            task = asyncio.ensure_future(cancelled(1))
            await started.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            with self.assertRaises(semel.InDoubt):
                await cancelled(1)

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
