"""A folder of its own per test: its ledger, its server, and a file that counts effects."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Mapping

import semel

ROOT = pathlib.Path(__file__).parent.parent


class Place(unittest.TestCase):
    folder: pathlib.Path

    #: A test that stops servers has a folder of its own.
    is_alone = False

    @classmethod
    def setUpClass(cls) -> None:
        if not pathlib.Path("/proc/self/cmdline").exists():
            raise unittest.SkipTest("servers are found and ended by /proc, which is Linux's")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="semel-py-"))
        cls.addClassCleanup(cls._remove)

    @classmethod
    def _remove(cls) -> None:
        for pid in cls.servers():
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not cls.servers(), "the server ends")
        shutil.rmtree(cls.folder, ignore_errors=True)

    def setUp(self) -> None:
        if self.is_alone:
            type(self).setUpClass()
        (self.folder / "effects").unlink(missing_ok=True)
        self._before = dict(os.environ)
        for name in [each for each in os.environ if each.startswith("SEMEL_") and each != "SEMEL_COMMAND"]:
            del os.environ[name]
        os.environ.pop("XDG_RUNTIME_DIR", None)
        os.environ["XDG_STATE_HOME"] = str(self.folder)
        os.environ["SEMEL_IDLE"] = "20s"
        semel.configure()
        self.addCleanup(self._clean)

    def _clean(self) -> None:
        semel.configure()
        os.environ.clear()
        os.environ.update(self._before)
        if self.is_alone:
            self._remove()

    @classmethod
    def servers(cls) -> list[int]:
        """Process ids of the servers of this folder."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if b"serve" in words and any(os.fsencode(cls.folder) in each for each in words) and state != "Z":
                found.append(int(entry.name))
        return found

    @property
    def effects(self) -> list[str]:
        file = self.folder / "effects"
        return file.read_text().split() if file.exists() else []

    def start(self, program: str, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FOLDER": str(self.folder), **(env or {})}
        return subprocess.Popen(
            [sys.executable, "-c", program, *args],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> str:
        out, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        return out.strip()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + 60
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"waited a minute until {what}")
        time.sleep(0.02)
