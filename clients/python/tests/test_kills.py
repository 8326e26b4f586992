"""Programs that are killed, for real: at each point, sync and async, alone and in turn with a TypeScript program."""

from __future__ import annotations

import os
import signal
import subprocess
import unittest

import semel

from .support import Place, wait_until

COMMON = """
import asyncio, os, signal, sys
import semel, semel.calls

order, crash_at = sys.argv[1], sys.argv[2]

def crash(point):
    if point == crash_at:
        os.kill(os.getpid(), signal.SIGKILL)

def effect(key):
    with open(os.environ["FOLDER"] + "/effects", "a") as file:
        file.write(key + "\\n")

settle = semel.calls.settle
def crash_before_settle(*args):
    crash("before settle")
    return settle(*args)
semel.calls.settle = crash_before_settle

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

TYPESCRIPT = """
import { appendFileSync } from 'node:fs';
const { createSemel } = await import(process.env.TEST_DOOR);
const [order, crashAt] = process.argv.slice(1);
const semel = createSemel({ namespace: 'default', onWarning: () => undefined });
const pay = semel.tool({
  name: 'pay', effect: 'irreversible', per: 'ever', identity: ['order'], lease: '2s', window: '1d',
  provider: { name: 'bank', window: '30d', sentBy: 'tool' },
  run: async (args, ctx) => {
    appendFileSync(process.env.FOLDER + '/effects', ctx.key + '\\n');
    if (crashAt === 'after effect') process.kill(process.pid, 'SIGKILL');
    return 'paid ' + args.order;
  },
});
console.log(await pay({ order }));
await semel.close();
"""


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

    @unittest.skipUnless("TEST_DOOR" in os.environ, "needs the built library")
    def test_python_and_typescript_share_an_effect_killed_in_turn(self) -> None:
        def typescript(crash_at: str) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [os.environ["TEST_NODE"], "--input-type=module", "-e", TYPESCRIPT, "o-1", crash_at],
                env={**os.environ, "FOLDER": str(self.folder)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        self.kill(SYNC, "o-1", "after effect", "keyed")
        process = typescript("after effect")
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, -signal.SIGKILL, err)
        self.assertEqual(self.finish(self.start(ASYNC, "o-1", "never", "keyed")), "paid o-1")
        self.assertEqual(self.finish(typescript("never")), "paid o-1")
        self.assertEqual(len(self.effects), 3)
        self.assertEqual(len(set(self.effects)), 1)


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
