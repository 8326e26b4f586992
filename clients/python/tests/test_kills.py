"""Programs that are killed, for real: at each point, sync and async, alone and in turn with a TypeScript program."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import unittest
from typing import Any
from unittest import mock

import semel
from semel import local

from .support import Place, wait_until

COMMON = """
import asyncio, http.client, os, signal, sys, time
import semel, semel.calls

order, crash_at = sys.argv[1], sys.argv[2]

def crash(point):
    if point == crash_at:
        os.kill(os.getpid(), signal.SIGKILL)

def effect(key):
    with open(os.environ["FOLDER"] + "/effects", "a") as file:
        file.write(key + "\\n")

settle = semel.calls.settle
def crash_around_settle(*args):
    crash("before settle")
    outcome = yield from settle(*args)
    crash("settled")
    return outcome
semel.calls.settle = crash_around_settle

getresponse, read = http.client.HTTPConnection.getresponse, asyncio.StreamReader.read
def crash_before_answer(*args):
    if crash_at == "begin sent":
        # The server has claimed it.
        time.sleep(0.5)
    crash("begin sent")
    return getresponse(*args)
async def crash_before_answer_async(*args):
    if crash_at == "begin sent":
        await asyncio.sleep(0.5)
    crash("begin sent")
    return await read(*args)
http.client.HTTPConnection.getresponse = crash_before_answer
asyncio.StreamReader.read = crash_before_answer_async

terms = dict(effect="irreversible", per="ever", identity=["order"], lease="2s", window="1d")
if "keyed" in sys.argv:
    terms["provider"] = {"name": "bank", "window": "30d"}
"""

SYNC = (
    COMMON
    + """
@semel.tool("pay", **terms)
def pay(order: str) -> str:
    crash("after begin")
    effect(semel.current().key)
    crash("after effect")
    return "paid " + order

crash("before begin")
outcome = pay.attempt(order)
print(outcome.value if outcome.ok else outcome.error.code)
"""
)

ASYNC = (
    COMMON
    + """
@semel.tool("pay", **terms)
async def pay(order: str) -> str:
    crash("after begin")
    await asyncio.sleep(0)
    effect(semel.current_async().key)
    crash("after effect")
    return "paid " + order

crash("before begin")
outcome = asyncio.run(pay.attempt(order))
print(outcome.value if outcome.ok else outcome.error.code)
"""
)

ONCE = (
    COMMON
    + """
def work():
    crash("after begin")
    effect("once")
    crash("after effect")
    return "paid " + order

try:
    print(semel.once("pay.once", order, work, lease="2s"))
except semel.SemelError as error:
    print(error.code)
"""
)

ONCE_ASYNC = ONCE.replace("def work", "async def work").replace('semel.once("pay.once"', 'asyncio.run(semel.once_async("pay.once.async"').replace(
    '"2s"))', '"2s")))'
)

STEP = (
    COMMON
    + """
@semel.tool("pay.step", **terms)
def pay(order: str, ctx: semel.Context) -> str:
    def charge() -> str:
        crash("step begun")
        effect("step")
        crash("in step")
        return order
    ctx.step("charge", charge)
    crash("after step")
    return "paid " + order

outcome = pay.attempt(order)
print(outcome.value if outcome.ok else outcome.error.code)
"""
)

STEP_ASYNC = (
    STEP.replace('"pay.step"', '"pay.step.async"')
    .replace("    def charge", "    async def charge")
    .replace("def pay(order: str, ctx: semel.Context", "async def pay(order: str, ctx: semel.AsyncContext")
    .replace("ctx.step(", "await ctx.step(")
    .replace("pay.attempt(order)", "asyncio.run(pay.attempt(order))")
)

JOB = (
    COMMON
    + """
@semel.job("pay.job." + order, per="ever", lease="10s")
def pay(job: semel.JobContext) -> str:
    def draft():
        crash("in step")
        return "draft"
    def charge():
        effect("charge")
        return "ch_1"
    crash("job begun")
    job.step("draft", draft)
    job.once("charge", charge)
    crash("after step")
    return "paid"

settle_job = semel.jobs._Run._settle
def crash_around_job(*args):
    crash("before job settle")
    yield from settle_job(*args)
    crash("job settled")
semel.jobs._Run._settle = crash_around_job

while True:
    outcome = pay.run()
    if outcome.status != "busy":
        break
    time.sleep(0.2)
print(outcome.status)
"""
)

JOB_ASYNC = (
    JOB.replace("def draft", "async def draft")
    .replace("def charge", "async def charge")
    .replace("def pay(job: semel.JobContext", "async def pay(job: semel.AsyncJobContext")
    .replace("job.step(", "await job.step(")
    .replace("job.once(", "await job.once(")
    .replace("pay.run()", "asyncio.run(pay.run())")
)

TYPESCRIPT = """
import { appendFileSync } from 'node:fs';
const { createSemel } = await import(process.env.TEST_DOOR);
const [order, crashAt, how] = process.argv.slice(1);
const semel = createSemel({ namespace: 'default', onWarning: () => undefined });
const pay = semel.tool({
  name: 'pay', effect: 'irreversible', per: 'ever', identity: ['order'], lease: '2s', window: '1d',
  ...(how === 'keyed' ? { provider: { name: 'bank', window: '30d', sentBy: 'tool' } } : {}),
  run: async (args, ctx) => {
    appendFileSync(process.env.FOLDER + '/effects', ctx.key + '\\n');
    if (crashAt === 'after effect') process.kill(process.pid, 'SIGKILL');
    return 'paid ' + args.order;
  },
});
console.log(await pay({ order }).catch((error) => error.code));
await semel.close();
"""


def typescript(order: str, crash_at: str, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [os.environ["TEST_NODE"], "--input-type=module", "-e", TYPESCRIPT, order, crash_at, how],
        env={**os.environ, "FOLDER": os.environ["XDG_STATE_HOME"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def zombies() -> list[str]:
    """Children of this process that have ended, and that it has not asked for."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) == os.getpid():
            found.append(entry.name)
    return found


class Kills(Place):
    def kill(self, program: str, *args: str) -> None:
        process = self.start(program, *args)
        process.communicate(timeout=100)
        self.assertEqual(process.returncode, -signal.SIGKILL)

    def test_a_program_that_is_killed_repeats_nothing_and_loses_nothing(self) -> None:
        for kind, program in (("sync", SYNC), ("async", ASYNC)):
            for point, then, effects in (
                ("before begin", "paid", 1),
                ("after begin", "IN_DOUBT", 0),
                ("after effect", "IN_DOUBT", 1),
                ("before settle", "IN_DOUBT", 1),
            ):
                with self.subTest(kind=kind, point=point):
                    (self.folder / "effects").unlink(missing_ok=True)
                    order = f"{kind}-{point}".replace(" ", "-")
                    self.kill(program, order, point)
                    # The lease of the dead program ends while this one waits.
                    said = self.finish(self.start(program, order, "never"))
                    self.assertEqual(said.split()[0], then)
                    self.assertEqual(len(self.effects), effects)

    def test_under_a_key_that_the_target_honours_it_is_run_again(self) -> None:
        for kind, program in (("sync", SYNC), ("async", ASYNC)):
            for point in ("after begin", "after effect", "before settle"):
                with self.subTest(kind=kind, point=point):
                    (self.folder / "effects").unlink(missing_ok=True)
                    order = f"keyed-{kind}-{point}".replace(" ", "-")
                    self.kill(program, order, point, "keyed")
                    self.assertEqual(self.finish(self.start(program, order, "never", "keyed")), f"paid {order}")
                    self.assertEqual(len(set(self.effects)), 1)

    def check_all(self, cases: dict[str, tuple[str, str, str, int]]) -> None:
        """Name → program, where it is killed, what the next one says, how many effects there are then. All at once."""
        killed = {name: self.start(case[0], name, case[1], env=self.own(name)) for name, case in cases.items()}
        for name, process in killed.items():
            _, err = process.communicate(timeout=100)
            self.assertEqual(process.returncode, -signal.SIGKILL, f"{name}: {err}")
        # Some leases are over only while the next ones wait.
        nexts = {name: self.start(case[0], name, "never", env=self.own(name)) for name, case in cases.items()}
        for name, process in nexts.items():
            with self.subTest(name):
                self.assertEqual(self.finish(process).split()[0], cases[name][2])
                file = self.folder / name / "effects"
                self.assertEqual(len(file.read_text().split()) if file.exists() else 0, cases[name][3])

    def own(self, name: str) -> dict[str, str]:
        (self.folder / name).mkdir(exist_ok=True)
        return {"FOLDER": str(self.folder / name)}

    def test_killed_between_a_request_and_what_it_is_for(self) -> None:
        cases = {}
        for kind, program in (("sync", SYNC), ("async", ASYNC)):
            # Claimed, and it never heard of it: nobody can know that it did not begin.
            cases[f"sent-{kind}"] = (program, "begin sent", "IN_DOUBT", 0)
            cases[f"settled-{kind}"] = (program, "settled", "paid", 1)
        self.check_all(cases)

    def test_killed_in_once_and_in_steps(self) -> None:
        cases = {}
        for kind, once, step in (("sync", ONCE, STEP), ("async", ONCE_ASYNC, STEP_ASYNC)):
            cases[f"once-sent-{kind}"] = (once, "begin sent", "IN_DOUBT", 0)
            cases[f"once-begun-{kind}"] = (once, "after begin", "IN_DOUBT", 0)
            cases[f"once-effect-{kind}"] = (once, "after effect", "IN_DOUBT", 1)
            cases[f"once-settled-{kind}"] = (once, "settled", "paid", 1)
            cases[f"step-begun-{kind}"] = (step, "step begun", "IN_DOUBT", 0)
            cases[f"step-in-{kind}"] = (step, "in step", "IN_DOUBT", 1)
            cases[f"step-after-{kind}"] = (step, "after step", "IN_DOUBT", 1)
        self.check_all(cases)

    def test_killed_in_jobs(self) -> None:
        cases = {}
        for kind, job in (("sync", JOB), ("async", JOB_ASYNC)):
            for point in ("begin sent", "job begun", "in step", "after step", "before job settle"):
                cases[f"{point}-{kind}".replace(" ", "-")] = (job, point, "executed", 1)
            cases[f"job-settled-{kind}"] = (job, "job settled", "skipped", 1)
        self.check_all(cases)

    @unittest.skipUnless("TEST_DOOR" in os.environ, "needs the built library")
    def test_python_and_typescript_share_an_effect_killed_in_turn(self) -> None:
        self.kill(SYNC, "o-1", "after effect", "keyed")
        process = typescript("o-1", "after effect", "keyed")
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, -signal.SIGKILL, err)
        self.assertEqual(self.finish(self.start(ASYNC, "o-1", "never", "keyed")), "paid o-1")
        self.assertEqual(self.finish(typescript("o-1", "never", "keyed")), "paid o-1")
        self.assertEqual(len(self.effects), 3)
        self.assertEqual(len(set(self.effects)), 1)

    @unittest.skipUnless("TEST_DOOR" in os.environ, "needs the built library")
    def test_without_a_key_neither_repeats_what_the_other_may_have_done(self) -> None:
        for order, program in (("u-1", SYNC), ("u-2", ASYNC)):
            with self.subTest(order):
                (self.folder / "effects").unlink(missing_ok=True)
                self.kill(program, order, "after effect")
                self.assertEqual(self.finish(typescript(order, "never", "unkeyed")), "IN_DOUBT")
                self.assertEqual(len(self.effects), 1)
        (self.folder / "effects").unlink(missing_ok=True)
        process = typescript("u-3", "after effect", "unkeyed")
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, -signal.SIGKILL, err)
        for program in (SYNC, ASYNC):
            self.assertEqual(self.finish(self.start(program, "u-3", "never")), "IN_DOUBT")
        self.assertEqual(len(self.effects), 1)


class Servers(Place):
    is_alone = True

    RACE = """
import sys, semel
@semel.tool("race", per="ever")
def race(n: int) -> str:
    with open(sys.argv[1] + "/effects", "a") as file:
        file.write("x\\n")
    return "won"
print(race(1))
"""

    def test_ten_programs_that_start_at_once_share_one_server(self) -> None:
        programs = [self.start(self.RACE, str(self.folder)) for _ in range(10)]
        self.assertEqual({self.finish(each) for each in programs}, {"won"})
        self.assertEqual(self.effects, ["x"])
        self.assertEqual(len(self.servers()), 1)
        folder = next(self.folder.glob("semel/serve"))
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        # It survives the programs, and a program after it was killed starts another.
        os.kill(self.servers()[0], signal.SIGKILL)
        wait_until(lambda: not self.servers(), "the server is gone")
        self.assertEqual(self.finish(self.start(self.RACE, str(self.folder))), "won")
        self.assertEqual(len(self.servers()), 1)

    def test_a_server_that_is_killed_while_the_effect_runs_is_replaced(self) -> None:
        @semel.tool("long", per="ever")
        def long(n: int) -> str:
            os.kill(self.servers()[0], signal.SIGKILL)
            wait_until(lambda: not self.servers(), "the server is gone")
            return "done"

        self.assertEqual(long(1), "done")
        outcome = long.attempt(1)
        self.assertTrue(outcome.receipt is not None and outcome.receipt.replayed)

    def test_a_program_keeps_its_ledger_where_it_changes_its_folder_or_environment(self) -> None:
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        for name in ("first", "second"):
            (self.folder / name).mkdir()
        os.chdir(self.folder / "first")
        os.environ["SEMEL_STORE"] = "sqlite:ledger.db"
        runs: list[int] = []

        @semel.tool("kept", per="ever")
        def kept(n: int) -> str:
            runs.append(n)
            return "done"

        kept(1)
        os.chdir(self.folder / "second")
        os.environ["SEMEL_NAMESPACE"] = "another"
        os.environ["XDG_STATE_HOME"] = str(self.folder / "second")
        for _ in range(2):
            os.kill(self.servers()[0], signal.SIGKILL)
            wait_until(lambda: not self.servers(), "the server is gone")
            self.assertEqual(kept(1), "done")
        child = os.fork()
        if child == 0:
            os._exit(0 if kept(1) == "done" and runs == [1] else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(runs, [1])

    def test_a_child_does_not_wait_for_locks_of_its_parents_threads(self) -> None:
        client = semel.Client()

        @semel.tool("forked", per="ever", client=client)
        def forked(n: int) -> int:
            return n

        forked(0)
        # Another thread is taking a connection, and looking for the server.
        with client.transport._lock, client._lock:
            child = os.fork()
            if child == 0:
                os._exit(0 if forked(0) == 0 else 1)
            ends: list[int] = []

            def has_ended() -> bool:
                found, status = os.waitpid(child, os.WNOHANG)
                ends.extend([status] * (found != 0))
                return found != 0

            try:
                wait_until(has_ended, "the child has called")
            except AssertionError:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise
        self.assertEqual(ends, [0])

    def test_a_handler_of_a_signal_does_not_wait_for_the_call_that_it_interrupts(self) -> None:
        client = semel.Client()

        @semel.tool("handled", per="ever", client=client)
        def handled(n: int) -> int:
            return n

        handled(0)
        with client.transport._lock, client._lock:
            self.assertEqual(handled(1), 1)

    def test_a_forked_child_keeps_no_lock_of_the_thread_that_started_the_server(self) -> None:
        children: list[int] = []
        spawn = local._spawn

        def fork(*args: Any) -> Any:
            # As another thread may do it while this one holds the lock.
            children.append(os.fork())
            if children[-1] == 0:
                time.sleep(60)
                os._exit(0)
            return spawn(*args)

        @semel.tool("locked", per="ever")
        def locked(n: int) -> int:
            return n

        try:
            with mock.patch.object(local, "_spawn", fork):
                locked(0)
            os.kill(self.servers()[0], signal.SIGKILL)
            wait_until(lambda: not self.servers(), "the server is gone")
            with mock.patch.object(local, "_START_TIMEOUT", 10):
                self.assertEqual(locked(1), 1)
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def test_a_program_that_is_stopped_while_it_starts_the_server_holds_up_nobody_for_ever(self) -> None:
        place = self.folder / "s.sock"
        hold = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); time.sleep(60)"
        holder = self.start(hold, str(place.with_suffix(".lock")))
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            with mock.patch.object(local, "_START_TIMEOUT", 0.2):
                with self.assertRaises(semel.StoreUnavailable), local._locked(place):
                    self.fail("it is locked")
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(place))
                server.listen()
                with local._locked(place) as is_ours:
                    self.assertFalse(is_ours)
        finally:
            holder.kill()
            holder.communicate()

    def test_servers_that_have_ended_are_no_zombies_of_a_program_that_goes_on(self) -> None:
        @semel.tool("lasting", per="ever")
        def lasting(n: int) -> int:
            return n

        for n in range(4):
            lasting(n)
            os.kill(self.servers()[0], signal.SIGKILL)
            wait_until(lambda: not self.servers(), "the server is gone")
        lasting(4)
        self.assertEqual(zombies(), [])

    def test_a_server_that_is_killed_while_it_starts_is_started_again(self) -> None:
        spawn = local._spawn
        left = [1]

        def kill(*args: Any) -> Any:
            process = spawn(*args)
            if left.pop() if left else False:
                process.kill()
                process.wait()
            return process

        @semel.tool("started", per="ever")
        def started(n: int) -> int:
            return n

        with mock.patch.object(local, "_spawn", kill):
            self.assertEqual(started(1), 1)

    def test_it_needs_no_thread_of_the_loop(self) -> None:
        @semel.tool("crowded", per="ever", lease="1s")
        async def crowded(n: int, ctx: semel.AsyncContext) -> bool:
            # A program may keep them busy with its own work.
            end = threading.Event()
            for _ in range(3):
                asyncio.get_running_loop().run_in_executor(None, end.wait, 60)
            try:
                await asyncio.sleep(2.5)
                return ctx.lost.is_set()
            finally:
                end.set()

        async def main() -> Any:
            asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(2))
            call: Any = crowded
            return await call(1)

        self.assertFalse(asyncio.run(main()))

    AT_EXIT = """
import asyncio, atexit, semel
@semel.tool("exit", per="ever")
async def exit(n: int) -> str:
    return "done"
@semel.tool("exit.sync", per="ever")
def exit_sync(n: int) -> str:
    return "done"
atexit.register(lambda: print(asyncio.run(exit(1)), exit_sync(1)))
"""

    def test_a_call_at_the_end_of_the_program_is_one_like_any_other(self) -> None:
        self.assertEqual(self.finish(self.start(self.AT_EXIT)), "done done")

    def test_what_was_run_is_not_told_as_if_nothing_was(self) -> None:
        def lose_the_ledger() -> None:
            os.environ["SEMEL_COMMAND"] = "/nowhere/semel"
            for pid in self.servers():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not self.servers(), "the server is gone")

        @semel.tool("sent", per="ever")
        def sent(ok: bool) -> str:
            lose_the_ledger()
            if not ok:
                raise OSError("reset")
            return "tx_1"

        @semel.job("written", per="ever")
        def written(job: semel.JobContext) -> str:
            lose_the_ledger()
            return "file"

        @semel.job("broken", per="ever")
        def broken(job: semel.JobContext) -> str:
            lose_the_ledger()
            raise KeyboardInterrupt

        command = os.environ["SEMEL_COMMAND"]
        for run, kind, value in (
            (lambda: sent(True), semel.Unrecorded, "tx_1"),
            (lambda: sent(False), semel.StoreUnavailable, None),
            (written.run, semel.Unrecorded, "file"),
            (broken.run, KeyboardInterrupt, None),
        ):
            os.environ["SEMEL_COMMAND"] = command
            with self.assertRaises(kind) as told:
                run()
            self.assertEqual(getattr(told.exception, "value", None), value)
            self.assertNotIn("Nothing was run", str(told.exception))

    def test_the_server_ends_when_nobody_asks(self) -> None:
        self.finish(self.start(self.RACE, str(self.folder), env={"SEMEL_IDLE": "1s"}))
        wait_until(lambda: not self.servers(), "the server ends")

    def test_without_a_server_and_without_the_command_nothing_runs(self) -> None:
        os.environ["SEMEL_COMMAND"] = "/nowhere/semel"
        runs: list[int] = []

        @semel.tool("never", per="ever")
        def never(n: int) -> None:
            runs.append(n)

        with self.assertRaises(semel.StoreUnavailable) as error:
            never(1)
        self.assertIn("SEMEL_COMMAND", str(error.exception))
        self.assertEqual(runs, [])


if __name__ == "__main__":
    unittest.main()
