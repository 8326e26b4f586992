"""Programs that are interrupted, cancelled or stopped: before the effect nothing is in doubt, after it nothing is forgotten."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
import time
import unittest
import unittest.mock
from collections.abc import Callable
from typing import Any

import semel
from semel import lease, transport

from .support import Place, wait_until


class TimeLimit(Exception):
    """As Celery raises it, from a signal handler, anywhere."""


STOPPED = """
import asyncio, os, signal, sys, time
import semel, semel.calls

kind, point, how = sys.argv[1], sys.argv[2], sys.argv[4]
monotonic, asleep = time.monotonic, [0]
# As on a machine that sleeps.
time.monotonic = lambda: monotonic() - asleep[0]

def stop(at):
    if at == point:
        before = monotonic()
        os.kill(os.getpid(), signal.SIGSTOP)
        if how == "asleep":
            asleep[0] += monotonic() - before

begin = semel.calls._Base.__init__
def stop_before_start(*args):
    stop("before start")
    begin(*args)
semel.calls._Base.__init__ = stop_before_start

def effect(context):
    stop("in effect")
    print("lost" if context.lost.is_set() else "held", flush=True)
    with open(os.environ["FOLDER"] + "/effects", "a") as file:
        file.write(kind + "\\n")

terms = dict(per="ever", lease="2s", wait=0)
if "unkeyed" not in sys.argv:
    terms["provider"] = {"name": "bank", "window": "30d"}
prefix = "unkeyed." if "unkeyed" in sys.argv else ""

@semel.tool(prefix + "stopped.sync", **terms)
def sync(point: str) -> str:
    effect(semel.current())
    return "done"

@semel.tool(prefix + "stopped.async", **terms)
async def later(point: str) -> str:
    effect(semel.current_async())
    return "done"

outcome = sync.attempt(sys.argv[3]) if kind == "sync" else asyncio.run(later.attempt(sys.argv[3]))
print(outcome.value if outcome.ok else outcome.error.code)
"""


class Interrupts(Place):
    def interrupt(self, path: str, thrown: type[BaseException], when: str) -> Any:
        """Of the first request to this path, before it is sent or where its answer is read."""
        tried = transport.Transport._try
        left = [1]

        def interrupted(own: transport.Transport, address: transport.Address, request: transport.Request) -> dict[str, Any]:
            is_due = request.path == path and left[0] > 0
            if is_due:
                left[0] -= 1
            if is_due and when == "before":
                raise thrown()
            answer = tried(own, address, request)
            if is_due:
                raise thrown()
            return answer

        return unittest.mock.patch.object(transport.Transport, "_try", interrupted)

    def test_an_interrupt_before_the_effect_gives_the_claim_back(self) -> None:
        runs: list[int] = []

        @semel.tool("interrupted.begin", per="ever", wait=0)
        def tool(n: int) -> None:
            runs.append(n)

        tool(0)
        n = 0
        for thrown in (KeyboardInterrupt, SystemExit, TimeLimit):
            for when in ("before", "after"):
                n += 1
                with self.interrupt("/v1/begin", thrown, when), self.assertRaises(thrown):
                    tool(n)
                self.assertNotIn(n, runs)
                tool(n)
                self.assertIn(n, runs)
        # The interrupt comes after the claim, and before the function.
        with unittest.mock.patch.object(lease.Heartbeat, "__enter__", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                tool(100)
        tool(100)
        self.assertIn(100, runs)

    def test_an_interrupt_while_it_reports_does_not_lose_the_report(self) -> None:
        runs: list[int] = []

        @semel.tool("interrupted.settle", per="ever", wait=0)
        def tool(n: int) -> int:
            runs.append(n)
            return n

        n = 0
        for thrown in (KeyboardInterrupt, SystemExit, TimeLimit):
            for when in ("before", "after"):
                n += 1
                with self.interrupt("/v1/settle", thrown, when), self.assertRaises(thrown):
                    tool(n)
                self.assertEqual(tool(n), n)
        self.assertEqual(runs, list(range(1, n + 1)))

    def test_a_job_that_is_interrupted_is_neither_busy_nor_forgotten(self) -> None:
        for path in ("/v1/jobs/begin", "/v1/settle"):
            for when in ("before", "after"):
                runs: list[str] = []

                @semel.job(f"interrupted{path}.{when}".replace("/", "."), per="ever")
                def job(_: semel.JobContext) -> str:
                    runs.append("x")
                    return "done"

                with self.interrupt(path, KeyboardInterrupt, when), self.assertRaises(KeyboardInterrupt):
                    job.run()
                outcome = job.run()
                self.assertEqual((outcome.status, outcome.value), ("executed" if "begin" in path else "skipped", "done"))
                self.assertEqual(runs, ["x"])

    def test_a_task_that_is_cancelled_again_and_again_still_reports(self) -> None:
        runs: list[int] = []
        sent = transport.Transport.send_async
        reached = asyncio.Event()

        @semel.tool("cancelled.often", per="ever", wait=0)
        async def tool(n: int) -> int:
            runs.append(n)
            return n

        @semel.job("cancelled.job", per="ever")
        async def job(_: semel.AsyncJobContext) -> int:
            runs.append(-1)
            return -1

        async def cancel(start: Callable[[], Any], path: str) -> None:
            async def slow(own: transport.Transport, request: transport.Request) -> dict[str, Any]:
                if request.path == path:
                    reached.set()
                    await asyncio.sleep(0.1)
                answer = await sent(own, request)
                if request.path == path:
                    await asyncio.sleep(0.1)
                return answer

            reached.clear()
            with unittest.mock.patch.object(transport.Transport, "send_async", slow):
                task = asyncio.ensure_future(start())
                await reached.wait()
                # As anyio does it, until the task ends.
                while not task.done():
                    task.cancel()
                    await asyncio.sleep(0.01)
                self.assertTrue(task.cancelled())

        async def main() -> None:
            nonlocal reached
            reached = asyncio.Event()
            await tool(0)
            await cancel(lambda: tool(1), "/v1/begin")
            self.assertEqual(await tool(1), 1)
            await cancel(lambda: tool(2), "/v1/settle")
            self.assertEqual(await tool(2), 2)
            self.assertEqual(runs, [0, 1, 2])
            await cancel(job.run, "/v1/jobs/begin")
            self.assertEqual(runs, [0, 1, 2])
            await cancel(job.run, "/v1/settle")
            self.assertEqual((await job.run()).status, "skipped")
            self.assertEqual(runs, [0, 1, 2, -1])

        asyncio.run(main())

    def test_where_no_thread_can_be_started_it_runs_without_a_heartbeat(self) -> None:
        @semel.tool("threadless", per="ever", lease="1s")
        def tool(n: int, ctx: semel.Context) -> bool:
            # Nobody renews the lease.
            return ctx.lost.wait(30)

        call: Any = tool
        with unittest.mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            self.assertTrue(call(1))

    def test_an_interrupt_while_the_heartbeat_starts_leaves_no_heartbeat(self) -> None:
        started = threading.Thread.start

        def interrupted(thread: threading.Thread) -> None:
            started(thread)
            raise KeyboardInterrupt

        @semel.tool("heart", per="ever", lease="1s", wait=0)
        def tool(n: int) -> int:
            return n

        with unittest.mock.patch.object(threading.Thread, "start", interrupted), self.assertRaises(KeyboardInterrupt):
            tool(1)
        wait_until(lambda: not any("heartbeat" in each.name for each in threading.enumerate()), "the heartbeat ends")
        self.assertEqual(tool(1), 1)

    def test_a_program_that_was_stopped_or_asleep_starts_nothing_that_another_one_did(self) -> None:
        cases = itertools.product(("sync", "async"), ("before start", "in effect"), ("stopped", "asleep"))
        for kind, point, how in cases:
            with self.subTest(kind=kind, point=point, how=how):
                (self.folder / "effects").unlink(missing_ok=True)
                id = f"{point}, {how}"
                stopped = self.start(STOPPED, kind, point, id, how)
                wait_until(lambda: is_stopped(stopped.pid), "it is stopped")
                time.sleep(2.1)
                self.assertEqual(self.finish(self.start(STOPPED, kind, "never", id, how)).split(), ["held", "done"])
                os.kill(stopped.pid, signal.SIGCONT)
                then = ["LEASE_LOST"] if point == "before start" else ["lost", "done"]
                self.assertEqual(self.finish(stopped).split(), then)
                self.assertEqual(len(self.effects), 1 if point == "before start" else 2)

    def test_without_a_key_a_program_that_was_stopped_past_its_lease_does_nothing_twice(self) -> None:
        for kind, point in itertools.product(("sync", "async"), ("before start", "in effect")):
            with self.subTest(kind=kind, point=point):
                (self.folder / "effects").unlink(missing_ok=True)
                stopped = self.start(STOPPED, kind, point, point, "stopped", "unkeyed")
                wait_until(lambda: is_stopped(stopped.pid), "it is stopped")
                time.sleep(2.1)
                other = (STOPPED, kind, "never", point, "stopped", "unkeyed")
                self.assertEqual(self.finish(self.start(*other)), "IN_DOUBT")
                self.assertEqual(self.effects, [])
                os.kill(stopped.pid, signal.SIGCONT)
                # Nobody did it meanwhile, nor decided about it: it is done once, and its late success ends the doubt.
                self.assertEqual(self.finish(stopped).split()[-1], "done")
                self.assertEqual(self.finish(self.start(*other)), "done")
                self.assertEqual(len(self.effects), 1)


class Leases(unittest.TestCase):
    def test_it_is_lost_while_it_has_ended_unrenewed(self) -> None:
        held = lease.Lease(0.2, lease.Moment())
        self.assertFalse(held.lost.is_set())
        self.assertFalse(held.lost.wait(0.01))
        self.assertTrue(held.lost.wait(30))
        held.renewed(ago(-30))
        self.assertFalse(held.lost.is_set())
        held.lost.set()
        self.assertTrue(held.lost.wait(0))

    def test_it_counts_from_when_it_was_asked_for_and_ends_with_the_timeout(self) -> None:
        self.assertTrue(lease.Lease(10, ago(11)).lost.is_set())
        self.assertTrue(lease.Lease(60, lease.Moment(), 0).lost.is_set())
        self.assertFalse(lease.Lease(60, ago(30)).is_young)

    def test_after_a_sleep_of_the_machine_it_is_renewed_soon(self) -> None:
        held = lease.Lease(3_600, lease.Moment())
        self.assertLessEqual(held.pause, 10)
        self.assertFalse(held.is_due)
        with unittest.mock.patch("time.time", lambda before=time.time(): before + 3_700):
            self.assertTrue(held.is_due)
            self.assertTrue(held.lost.wait(0))


def ago(seconds: float) -> lease.Moment:
    moment = lease.Moment()
    moment._mono -= seconds
    moment._wall -= seconds
    return moment


def is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


if __name__ == "__main__":
    unittest.main()
