"""Jobs and their steps: once per slot, one at a time, and on after a crash, also in another language."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import signal
import subprocess
import threading
import unittest

import semel

from .support import Place

MORNING = datetime.datetime(2026, 6, 19, 7, tzinfo=datetime.timezone.utc)

PROGRAM = """
import os, signal, sys
import semel

def note(text):
    with open(os.environ["FOLDER"] + "/effects", "a") as file:
        file.write(text + "\\n")

@semel.job("blog", per="day", tz="Europe/Paris", lease="10s")
def blog(job: semel.JobContext) -> str:
    job.step("draft", lambda: note("draft"))
    job.once("publish", lambda: note("publish"))
    if sys.argv[1] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    job.step("tweet", lambda: note("tweet"))
    return "done"

print(blog.run().status)
"""

INSIDE = """
import asyncio, os, signal, sys, time
import semel

kind, how = sys.argv[1], sys.argv[2]

def note(text):
    with open(os.environ["FOLDER"] + "/effects", "a") as file:
        file.write(text + "\\n")

def draft():
    note("draft")
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)

async def draft_async():
    draft()

if kind == "sync":
    @semel.job("inside.sync", per="ever", lease="10s")
    def job(context: semel.JobContext) -> str:
        # The lease of the step ends this much later than that of the run.
        time.sleep(2.5 if how == "die" else 0)
        context.step("draft", draft)
        return "done"
    print(job.run().status)
else:
    @semel.job("inside.async", per="ever", lease="10s")
    async def job(context: semel.AsyncJobContext) -> str:
        await asyncio.sleep(2.5 if how == "die" else 0)
        await context.step("draft", draft_async)
        return "done"
    print(asyncio.run(job.run()).status)
"""

TYPESCRIPT = """
import { appendFileSync } from 'node:fs';
const { createSemel, day } = await import(process.env.TEST_DOOR);
const note = (text) => appendFileSync(process.env.FOLDER + '/effects', text + '\\n');
const semel = createSemel({ namespace: 'default', onWarning: () => undefined });
const blog = semel.job('blog', { per: day('Europe/Paris'), lease: '10s', wait: '60s' }, async (job) => {
  await job.step('draft', () => note('draft'));
  await job.once('publish', () => note('publish'));
  if (process.argv[1] === 'die') process.kill(process.pid, 'SIGKILL');
  await job.step('tweet', () => note('tweet'));
  return 'done';
});
const outcome = await blog.run();
console.log(outcome.status, outcome.value);
await semel.close();
"""


class Jobs(Place):
    def test_a_slot_is_done_once(self) -> None:
        runs: list[str] = []

        @semel.job("digest", per="day", tz="Europe/Paris")
        def digest(job: semel.JobContext) -> dict[str, str]:
            runs.append(job.slot)
            return {"date": job.date}

        first = digest.run(at=MORNING)
        self.assertEqual((first.status, first.slot, first.value), ("executed", "2026-06-19", {"date": "2026-06-19"}))
        again = digest.run(at=MORNING + datetime.timedelta(hours=3))
        self.assertEqual((again.status, again.value), ("skipped", first.value))
        self.assertEqual(digest.run(at=MORNING, ids={"customer": 7}).status, "executed")
        self.assertEqual(digest.run(at=MORNING, again="asked for").status, "executed")
        self.assertEqual(digest.run(at=MORNING + datetime.timedelta(days=1)).status, "executed")
        self.assertEqual(len(runs), 4)

    def test_the_word_of_a_step_says_nothing_about_the_effect_around_it(self) -> None:
        sent: list[str] = []

        def fail(word: str) -> None:
            raise semel.NotLanded("no log") if word == "not landed" else semel.Rejected("no log")

        @semel.job("worded", per="day")
        def worded(job: semel.JobContext) -> None:
            for word in ("not landed", "rejected"):

                def mail() -> None:
                    sent.append(word)
                    job.step("log", lambda: fail(word))

                with contextlib.suppress(semel.InDoubt):
                    job.once(f"mail {word}", mail)
            raise OSError("once more")

        for _ in range(2):
            with self.assertRaises(semel.Failed):
                worded.run(at=MORNING)
        self.assertEqual(sent, ["not landed", "rejected"])

    def test_a_job_whose_function_has_not_run_is_not_done(self) -> None:
        ran: list[int] = []

        async def later(job: semel.AsyncJobContext) -> None:
            ran.append(1)

        careless = semel.job("careless", per="day")(lambda job: later(job))
        for _ in range(2):
            with self.assertRaises(semel.ContractInvalid):
                careless.run(at=MORNING)
        self.assertEqual(ran, [])

    def test_two_runs_never_overlap(self) -> None:
        started, go = threading.Event(), threading.Event()

        @semel.job("slow", per="day")
        def slow(job: semel.JobContext) -> None:
            started.set()
            go.wait(60)

        thread = threading.Thread(target=slow.run, kwargs={"at": MORNING})
        thread.start()
        started.wait(60)
        self.assertEqual(slow.run(at=MORNING).status, "busy")
        self.assertEqual(slow.run(at=MORNING + datetime.timedelta(days=1)).status, "busy")
        go.set()
        thread.join()
        self.assertEqual(slow.run(at=MORNING).status, "skipped")

    def test_a_run_that_failed_goes_on_after_its_last_step(self) -> None:
        done: list[str] = []
        fail = [True]

        @semel.tool("mail", per="run")
        def mail(to: str) -> str:
            done.append(f"mail {to}")
            return to

        @semel.job("report", per="day")
        async def report(job: semel.AsyncJobContext) -> int:
            async def gather() -> int:
                done.append("gather")
                return 41

            async def broken() -> None:
                raise KeyError("flaky")

            found = await job.step("gather", gather, args={"source": "crm"})
            await asyncio.to_thread(mail, "ann")
            if fail:
                fail.pop()
                await job.step("flaky", broken)
            return found + job.attempt

        with self.assertRaises(semel.Failed) as failed:
            asyncio.run(report.run(at=MORNING))
        self.assertIsInstance(failed.exception.__cause__, KeyError)
        self.assertTrue(failed.exception.retriable)
        outcome = asyncio.run(report.run(at=MORNING))
        self.assertEqual((outcome.value, outcome.attempt), (43, 2))
        self.assertEqual(done, ["gather", "mail ann"])

    def test_a_failure_that_is_held_waits_for_a_person(self) -> None:
        @semel.job("held", per="day", after_failure="hold")
        def held(job: semel.JobContext) -> None:
            raise OSError("half done")

        with self.assertRaises(semel.Failed):
            held.run(at=MORNING)
        with self.assertRaises(semel.InDoubt):
            held.run(at=MORNING)

    def test_a_run_waits_for_the_step_that_its_predecessor_died_in(self) -> None:
        kinds = ("sync", "async")
        for died in [self.start(INSIDE, kind, "die") for kind in kinds]:
            _, err = died.communicate(timeout=100)
            self.assertEqual(died.returncode, -signal.SIGKILL, err)
        for kind in kinds:
            said = "busy"
            while said == "busy":
                said = self.finish(self.start(INSIDE, kind, "live"))
            self.assertEqual(said, "executed")
        self.assertEqual(self.effects, ["draft"] * 4)

    def test_a_step_that_calls_itself_does_not_wait_for_itself(self) -> None:
        @semel.job("own", per="ever")
        def own(job: semel.JobContext) -> str:
            def outer() -> str:
                with self.assertRaises(semel.Reentrant):
                    job.once("own.mail", lambda: None)
                return "sent"

            return job.once("own.mail", outer)

        self.assertEqual(own.run().value, "sent")

    @unittest.skipUnless("TEST_DOOR" in os.environ, "needs the built library")
    def test_python_and_typescript_share_a_job_killed_in_turn(self) -> None:
        def typescript(how: str) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [os.environ["TEST_NODE"], "--input-type=module", "-e", TYPESCRIPT, how],
                env={**os.environ, "FOLDER": str(self.folder)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        process = self.start(PROGRAM, "die")
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, -signal.SIGKILL, err)
        # It waits until the lease of the dead program is over.
        process = typescript("die")
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, -signal.SIGKILL, err)
        said = ""
        while said != "executed":
            said = self.finish(self.start(PROGRAM, "live"))
            self.assertIn(said, ("busy", "executed"))
        self.assertEqual(self.finish(typescript("live")), "skipped done")
        self.assertEqual(self.effects, ["draft", "publish", "tweet"])


if __name__ == "__main__":
    unittest.main()
