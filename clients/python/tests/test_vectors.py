"""Keys equal to TypeScript's: args that a TypeScript program wrote with their keys, sent by Python."""

from __future__ import annotations

import json
import os
import pathlib
import unittest
from typing import Any

import semel
from semel.client import Talk, default_client
from semel.transport import Request

from .support import Place


@semel.tool("vector", per="ever")
def vector(**fields: Any) -> None: ...


class Vectors(Place):
    def check(self, file: pathlib.Path) -> None:
        vectors = json.loads(file.read_text("utf-8"))
        self.assertGreater(len(vectors), 200)
        semel.configure(namespace="vectors")

        def ask(items: list[dict[str, Any]]) -> Talk[list[dict[str, Any]]]:
            answer = yield Request("/v1/begin", {"items": items}, timeout=100)
            return [each["body"] for each in answer["items"]]

        for start in range(0, len(vectors), 500):
            part = vectors[start : start + 500]
            items = [vector._make((), each["args"])[0].body for each in part]
            for each, body in zip(part, default_client().drive(ask(items)), strict=True):
                # The same intent in another order is in flight, under the same key.
                key = body.get("recordKey") or body.get("evidence", {}).get("key")
                self.assertEqual(key, each["key"], each["args"])

    def test_those_of_the_repository(self) -> None:
        self.check(pathlib.Path(__file__).parent / "vectors.json")

    @unittest.skipUnless("VECTORS" in os.environ, "test/python/client.test.ts brings ten thousand more")
    def test_ten_thousand_more(self) -> None:
        self.check(pathlib.Path(os.environ["VECTORS"]))
