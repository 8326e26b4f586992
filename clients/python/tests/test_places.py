"""Servers that somebody else has started: by TCP, TLS and a unix socket, with the tools of a policy file."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import unittest
from unittest import mock

import semel

from .support import Place

POLICY = {"version": 1, "tools": {"refund": {"effect": "irreversible", "per": "ever", "identity": ["payment"]}}}


class Places(Place):
    def serve(self, *options: str) -> str:
        """Its address. Its ledger and token are those of this test's folder."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps(POLICY))
        words = [*shlex.split(os.environ["SEMEL_COMMAND"]), "serve", "--policy", str(policy), "--role", "execute", *options]
        # Its place is in its arguments, by which the test finds and ends it.
        process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            found = re.search(r"listening on (\S+)", line)
            if found is not None:
                self.addCleanup(self.stop, process)
                return found[1]
        process.wait()
        raise AssertionError(said)

    def stop(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def token(self) -> str:
        return (self.folder / "semel" / "serve.execute.token").read_text().strip()

    def check(self) -> None:
        """The terms are those of the file: nothing is said here."""
        runs: list[str] = []

        @semel.tool("refund")
        def refund(payment: str, reason: str) -> str:
            runs.append(reason)
            return f"re_{len(runs)}"

        @semel.tool("refund")
        async def refund_async(payment: str, reason: str) -> str:
            runs.append(reason)
            return f"re_{len(runs)}"

        name = self.id()
        self.assertEqual(refund(name, "broken"), "re_1")
        self.assertEqual(refund(name, "it was broken"), "re_1")
        self.assertEqual(asyncio.run(refund_async(name, "broken, async")), "re_1")
        self.assertEqual(asyncio.run(refund_async(name + "2", "other")), "re_2")
        self.assertEqual(runs, ["broken", "other"])

    def test_by_tcp_as_the_environment_says(self) -> None:
        url = self.serve("--port", "0")
        self.assertTrue(url.startswith("http://127.0.0.1:"))
        with mock.patch.dict(os.environ, {"SEMEL_URL": url, "SEMEL_TOKEN": self.token()}):
            semel.configure()
            self.check()

    def test_by_tcp_as_the_program_says(self) -> None:
        url = self.serve("--port", "0")
        semel.configure(url=url, token=self.token(), namespace="default")
        self.check()

    def test_by_a_unix_socket(self) -> None:
        url = self.serve("--socket", str(self.folder / "own.sock"))
        self.assertTrue(url.startswith("unix:"))
        for each in (url, url.replace("unix:", "unix://")):
            with mock.patch.dict(os.environ, {"SEMEL_URL": each, "SEMEL_TOKEN": self.token()}):
                semel.configure()
                with semel.within(conversation="c1"):
                    self.assertTrue(semel.handoff().startswith("semel1."))
                if each == url:
                    self.check()

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl to make a certificate")
    def test_by_tls_only_where_its_certificate_is_trusted(self) -> None:
        cert, key = str(self.folder / "cert.pem"), str(self.folder / "key.pem")
        words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
        names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert]
        subprocess.run([*words.split(), *names], check=True, stderr=subprocess.DEVNULL)
        url = self.serve("--port", "0", "--tls-cert", cert, "--tls-key", key)
        self.assertTrue(url.startswith("https://"))
        semel.configure(url=url, token=self.token())
        runs: list[str] = []

        @semel.tool("refund")
        def refund(payment: str) -> None:
            runs.append(payment)

        @semel.tool("refund")
        async def refund_async(payment: str) -> None:
            runs.append(payment)

        with mock.patch("semel.transport.PATIENCE", 0.0):
            for call in (lambda: refund("p"), lambda: asyncio.run(refund_async("p"))):
                with self.assertRaises(semel.StoreUnavailable) as told:
                    call()
                self.assertIn("certificate", str(told.exception))
        self.assertEqual(runs, [])
        with mock.patch.dict(os.environ, {"SSL_CERT_FILE": cert}):
            self.check()

    def test_terms_that_differ_from_the_file_are_refused(self) -> None:
        semel.configure(url=self.serve("--port", "0"), token=self.token())

        @semel.tool("refund", effect="irreversible", per="ever", identity=["payment"], lease="1h")
        def refund(payment: str) -> None: ...

        @semel.tool("unknown", per="ever")
        def unknown(payment: str) -> None: ...

        for call in (refund, unknown):
            with self.assertRaises(semel.ContractInvalid):
                call("p")


if __name__ == "__main__":
    unittest.main()
