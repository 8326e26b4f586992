"""Answers that come late, never, or say that the server has no room."""

from __future__ import annotations

import asyncio
import time
import unittest
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import semel
from semel import calls

from .between import BUSY, Instead, between
from .support import Place


class Answers(Place):
    def setUp(self) -> None:
        super().setUp()
        self.between = between(self.folder)
        self.addCleanup(self.between.close)
        (token,) = self.folder.rglob("serve.execute.token")
        semel.configure(url=self.between.url, token=token.read_text().strip())

    def late(self, path: str, *nths: int) -> None:
        """These answers come after their client has given up."""

        def wait(asked: str, nth: int) -> None:
            if asked == path and nth in nths:
                time.sleep(1.5)

        self.between.seen.clear()
        self.between.after = wait

    def refuse(self, path: str, *nths: int) -> None:
        def refusal(asked: str, nth: int) -> Instead | None:
            return BUSY if asked == path and nth in nths else None

        self.between.seen.clear()
        self.between.before = refusal

    def each_kind(self, name: str, **terms: Any) -> dict[str, Callable[[int], Any]]:
        """A tool, an async tool and both kinds of jobs that note what they run."""
        self.runs: list[str] = []

        @semel.tool(f"{name}.sync", per="ever", **terms)
        def tool(n: int) -> str:
            self.runs.append(f"sync {n}")
            return "done"

        @semel.tool(f"{name}.async", per="ever", **terms)
        async def tool_async(n: int) -> str:
            self.runs.append(f"async {n}")
            return "done"

        @semel.job(f"{name}.job", per="ever")
        def job(context: semel.JobContext) -> str:
            self.runs.append("job")
            return "done"

        @semel.job(f"{name}.job.async", per="ever")
        async def job_async(context: semel.AsyncJobContext) -> str:
            self.runs.append("async job")
            return "done"

        return {
            "sync": tool,
            "async": lambda n: asyncio.run(tool_async(n)),
            "job": lambda n: job.run(ids={"n": n}).value,
            "async job": lambda n: asyncio.run(job_async.run(ids={"n": n})).value,
        }

    def test_a_claim_whose_answer_was_late_is_asked_for_again(self) -> None:
        for kind, call in self.each_kind("late", lease="60s", wait=0).items():
            with self.subTest(kind), mock.patch("semel.transport.ANSWER_TIMEOUT", 1.0):
                self.late("/v1/jobs/begin" if "job" in kind else "/v1/begin", 1)
                self.assertEqual(call(1), "done")
        self.assertEqual(len(self.runs), 4)

    def test_a_claim_whose_answer_never_came_is_given_back(self) -> None:
        for kind, call in self.each_kind("never", lease="60s", wait=0).items():
            with self.subTest(kind):
                self.late("/v1/jobs/begin" if "job" in kind else "/v1/begin", 1)
                with mock.patch("semel.transport.ANSWER_TIMEOUT", 1.0), mock.patch("semel.transport.PATIENCE", 0.0):
                    with self.assertRaises(semel.StoreUnavailable) as told:
                        call(1)
                self.assertIn("Nothing was run", str(told.exception))
                self.assertEqual(self.runs, [])
                # Neither in doubt nor held.
                self.assertEqual(call(1), "done")
                self.runs.clear()

    def test_a_server_without_room_is_asked_again_when_it_says(self) -> None:
        for kind, call in self.each_kind("busy", lease="60s", wait=0).items():
            for path in ("/v1/jobs/begin" if "job" in kind else "/v1/begin", "/v1/settle"):
                with self.subTest(kind=kind, path=path):
                    self.refuse(path, 1, 2)
                    began = time.monotonic()
                    self.assertEqual(call(len(path)), "done")
                    # Not sooner than it asked for.
                    self.assertGreater(time.monotonic() - began, 2)
        self.assertEqual(len(self.runs), 8)

    def test_where_it_never_has_room_nothing_is_run_and_what_was_run_is_told(self) -> None:
        kinds = self.each_kind("full", lease="60s", wait=0)
        settle = calls.settle
        impatient = mock.patch.object(calls, "settle", lambda *args: settle(*args[:3], 0.0))
        with mock.patch("semel.transport.PATIENCE", 0.0), impatient:
            self.refuse("/v1/begin", *range(1, 9))
            for kind in ("sync", "async"):
                with self.assertRaises(semel.StoreUnavailable):
                    kinds[kind](1)
            self.assertEqual(self.runs, [])
            self.refuse("/v1/settle", *range(1, 9))
            for kind in ("sync", "async"):
                with self.assertRaises(semel.Unrecorded) as done:
                    kinds[kind](2)
                self.assertEqual(done.exception.value, "done")

    def test_where_the_server_has_no_place_to_wait_it_is_not_asked_all_the_time(self) -> None:
        problem = {"code": "IN_FLIGHT", "detail": "Another worker executes it.", "retriable": True, "correctiveAction": "", "retryAfterMs": 60_000}
        self.between.before = lambda path, _: (409, {}, problem) if path == "/v1/begin" else None
        kinds = self.each_kind("full", wait=3)
        for kind in ("sync", "async"):
            self.between.seen.clear()
            began = time.monotonic()
            with self.subTest(kind), self.assertRaises(semel.InFlight):
                kinds[kind](3)
            self.assertGreater(time.monotonic() - began, 2.9)
            self.assertLess(self.between.seen["/v1/begin"], 12)

    def test_other_tasks_go_on_while_a_hand_off_is_made(self) -> None:
        self.late("/v1/handoff", 1)

        @semel.tool("renewed", per="ever", lease="1s")
        async def renewed(n: int, ctx: semel.AsyncContext) -> tuple[str, bool]:
            with semel.within(conversation="c1"):
                text = await semel.handoff_async()
            return text[:7], ctx.lost.is_set()

        call: Any = renewed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Longer than its lease.
            self.assertEqual(asyncio.run(call(1)), ("semel1.", False))

    def test_a_program_that_ends_waits_only_seconds_for_each_answer(self) -> None:
        for patience, longest in ((calls.LAST_PATIENCE, calls.LAST_PATIENCE), (60.0, 30.0)):
            context = mock.Mock(_ticket="t", _remote_ref=None)
            ended = calls.Ended("unknown", thrown=SystemExit(1))
            asked = next(calls.settle(mock.Mock(), context, ended, patience))
            self.assertEqual((asked.path, asked.timeout), ("/v1/settle", longest))


if __name__ == "__main__":
    unittest.main()
