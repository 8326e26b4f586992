"""What must not pass between a program and its server, and what a program is told when nobody answers."""

from __future__ import annotations

import asyncio
import os
import pathlib
import stat
import tempfile
import unittest
from typing import Any
from unittest import mock

from semel import local
from semel.calls import Begun, Call, Context
from semel.client import Client
from semel.errors import InvalidArgs, LeaseLost, StoreUnavailable, from_problem
from semel.jobs import AsyncJobContext, JobContext
from semel.lease import Heartbeat
from semel.transport import Request

NOBODY = "http://127.0.0.1:9"


class Silence(unittest.TestCase):
    """The server is gone for longer than the lease, and another one may have given the work to another worker."""

    def test_a_tool_is_told(self) -> None:
        call = Call("charge", "/v1/begin", {}, 0.0, Client(NOBODY, "t"))
        context = Context(call, Begun("execute", {"attempt": "x", "leaseMs": 300}))
        with Heartbeat(call.client, context._lease, context._renew):
            self.assertTrue(context.lost.wait(30))

    def test_a_job_is_told(self) -> None:
        answer: dict[str, Any] = {"attempt": "x", "lock": "y", "leaseMs": 300, "slot": "s", "date": "d", "zone": "UTC"}
        more = {"at": "2026-11-18T10:00:00Z", "run": "r", "number": 1, "fence": 1}
        context = JobContext(Client(NOBODY, "t"), "nightly", {**answer, **more})
        with Heartbeat(context._client, context._lease, context._renew):
            self.assertTrue(context.lost.wait(30))


class Taken(unittest.TestCase):
    """The run of another slot has the lock."""

    def context(self, kind: type[Any]) -> Any:
        client = Client(NOBODY, "t")
        asked: list[str] = []

        def send(request: Request) -> dict[str, Any]:
            asked.append(request.body.get("attempt", ""))
            if request.path == "/v1/renew" and request.body["attempt"] == "y":
                raise from_problem({"code": "LEASE_LOST", "detail": "taken over", "retriable": True})
            return {"held": True, "leaseMs": 60_000}

        async def send_async(request: Request) -> dict[str, Any]:
            return send(request)

        client.transport.send = send  # type: ignore[method-assign]
        client.transport.send_async = send_async  # type: ignore[method-assign]
        answer: dict[str, Any] = {"attempt": "x", "lock": "y", "leaseMs": 60_000, "slot": "s", "date": "d", "zone": "UTC"}
        more = {"at": "2026-11-18T10:00:00Z", "run": "r", "number": 1, "fence": 1}
        context = kind(client, "nightly", {**answer, **more})
        context._lease._asked._wall -= 61
        return context

    def test_a_job_starts_no_step_beside_it(self) -> None:
        ran: list[str] = []
        context = self.context(JobContext)
        # Also not the next one, in a function that catches the error.
        for step in (context.step, context.once, context.step):
            with self.assertRaises(LeaseLost):
                step("late", lambda: ran.append("late"))
        self.assertEqual(ran, [])

    def test_an_async_job_starts_no_step_beside_it(self) -> None:
        ran: list[str] = []

        async def late() -> None:
            ran.append("late")

        async def steps() -> None:
            context = self.context(AsyncJobContext)
            for step in (context.step, context.once, context.step):
                with self.assertRaises(LeaseLost):
                    await step("late", late)

        asyncio.run(steps())
        self.assertEqual(ran, [])


class Headers(unittest.TestCase):
    def test_a_namespace_cannot_begin_another_header_or_request(self) -> None:
        for namespace in ("shop\r\nX-Other: 1", "shop\n\nGET / HTTP/1.1", "caf\u00e9", "a b"):
            client = Client(NOBODY, "t", namespace)
            with self.assertRaises(InvalidArgs):
                client.transport.send(Request("/v1/begin", {}, patience=0))
            with self.assertRaises(InvalidArgs):
                asyncio.run(client.transport.send_async(Request("/v1/begin", {}, patience=0)))


class Addresses(unittest.TestCase):
    def test_an_address_that_is_none_is_not_shown(self) -> None:
        mistakes = ("postgres://app:hunter2@db/ledger", "http://app:hunter2", "https://h:99999/hunter2", "http://[hunter2")
        for url in (*mistakes, "hunter2"):
            with self.assertRaises(StoreUnavailable) as caught:
                Client(url, "t").transport.send(Request("/v1/begin", {}, patience=0))
            self.assertNotIn("hunter2", f"{caught.exception} {caught.exception.__cause__}")
            self.assertFalse(caught.exception.retriable)


class Folders(unittest.TestCase):
    def test_whatever_the_umask_no_folder_that_it_makes_is_open_to_others(self) -> None:
        self.addCleanup(os.umask, os.umask(0))
        with tempfile.TemporaryDirectory() as home:
            with mock.patch.dict(os.environ, {"HOME": home, "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""}):
                folder = local._folder()
                local._folder()
            made = [folder, *folder.parents][: len(folder.relative_to(home).parts)]
            self.assertEqual({stat.S_IMODE(each.stat().st_mode) for each in made}, {0o700})


class Stores(unittest.TestCase):
    def test_a_relative_ledger_is_that_of_the_programs_folder(self) -> None:
        before = pathlib.Path.cwd()
        self.addCleanup(os.chdir, before)
        names = set()
        with mock.patch.dict(os.environ, {"SEMEL_STORE": "sqlite:ledger.db"}):
            for _ in range(2):
                with tempfile.TemporaryDirectory() as folder:
                    os.chdir(folder)
                    names.add(local._name())
                    self.assertEqual(local._store(), f"sqlite:{os.path.join(os.getcwd(), 'ledger.db')}")
                    os.chdir(before)
        self.assertEqual(len(names), 2)

    def test_other_addresses_stay_as_they_are(self) -> None:
        for address in ("", "sqlite:", "sqlite:/var/l.db", "postgres://db/x", "memory:", "module:/a.js"):
            with mock.patch.dict(os.environ, {"SEMEL_STORE": address}):
                self.assertEqual(local._store(), address)


class Commands(unittest.TestCase):
    def test_a_relative_entry_of_path_is_of_the_folder_that_it_was_found_in(self) -> None:
        self.addCleanup(os.chdir, os.getcwd())
        with tempfile.TemporaryDirectory() as folder:
            command = pathlib.Path(folder, "bin", "semel")
            command.parent.mkdir()
            command.write_text("#!/bin/sh\n")
            command.chmod(0o755)
            os.chdir(folder)
            with mock.patch.dict(os.environ, {"PATH": "bin", "SEMEL_COMMAND": ""}):
                (found,) = local._command()
            os.chdir("/")
            self.assertTrue(os.path.samefile(found, command))

    def test_without_one_on_path_that_beside_python_is_used(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            beside, other = pathlib.Path(folder, "venv", "semel"), pathlib.Path(folder, "other", "semel")
            for command in (beside, other):
                command.parent.mkdir()
                command.write_text("#!/bin/sh\n")
                command.chmod(0o755)
            with mock.patch("sys.executable", str(beside.parent / "python3")), mock.patch.dict(os.environ, {"SEMEL_COMMAND": ""}):
                for path, found in (("/nowhere", beside), (str(other.parent), other)):
                    with mock.patch.dict(os.environ, {"PATH": path}):
                        self.assertEqual(local._command(), [str(found)])
            with mock.patch("sys.executable", "/nowhere/python3"), mock.patch.dict(os.environ, {"SEMEL_COMMAND": "", "PATH": "/nowhere"}):
                with self.assertRaises(StoreUnavailable) as told:
                    local._command()
            self.assertIn("neither on PATH nor beside Python", str(told.exception))


if __name__ == "__main__":
    unittest.main()
