"""Which Python values become which JSON, and which are refused."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import unittest
import uuid
from typing import Any

from semel.encoding import encode, is_same, restore, to_text
from semel.errors import NotCanonical


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Money:
    amount: decimal.Decimal
    currency: str


class Masked(str):
    """As libraries of settings have it: a log must not show the value."""

    def __str__(self) -> str:
        return "***"


class Rounded(int):
    def __int__(self) -> int:
        return 0


class Twin(str):
    """Equal to itself only, so that a dict has it twice."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class Timestamp(datetime.datetime):
    """As pandas has it."""

    nanosecond = 1


class Encoding(unittest.TestCase):
    def test_a_subclass_that_shows_another_text_keeps_its_value(self) -> None:
        self.assertEqual(to_text(encode([Masked("a"), Masked("b")])), '["a","b"]')
        self.assertEqual(to_text(encode({Masked("a"): 1, Masked("b"): 2})), '{"a":1,"b":2}')
        self.assertEqual(to_text(encode([Rounded(1), Rounded(2)])), "[1,2]")

    def test_plain_values_stay_what_they_are(self) -> None:
        for value in (None, True, False, 0, -1, 2**53 - 1, 1.5, -0.25, 1e300, 5e-324, "é😀", "", [], {}, [1, [None]]):
            self.assertEqual(json.loads(to_text(encode(value))), value)
        self.assertEqual(encode((1, 2)), [1, 2])

    def test_what_the_server_sends_back_is_what_was_sent(self) -> None:
        for sent, answered in (
            ({"b": 1, "a": 2}, {"a": 2, "b": 1}),
            ({"a": [100.0]}, {"a": [100]}),
            (-0.0, 0),
            (1.2345678901234568e20, 123456789012345680000),
            (1e23, 1e23),
        ):
            self.assertTrue(is_same(sent, answered), sent)
        for sent, answered in (
            ({"a": None}, {}),
            (1, True),
            (0, False),
            (1, "1"),
            (None, False),
            ([1], [1, 2]),
            ({"a": 1}, {"b": 1}),
            (0.1, 0.2),
        ):
            self.assertFalse(is_same(sent, answered), sent)

    def test_what_would_be_another_value_elsewhere_is_refused_with_its_place(self) -> None:
        cycle: list[Any] = []
        cycle.append(cycle)
        refused: list[Any] = [
            2**53,
            -(2**53),
            math.nan,
            math.inf,
            "\ud800",
            b"x",
            bytearray(b"x"),
            {1},
            frozenset(),
            {1: 2},
            {"a\udfff": 1},
            {Twin("a"): 1, Twin("a"): 2},
            Timestamp(2026, 1, 1, tzinfo=datetime.timezone.utc),
            object(),
            int,
            datetime.datetime(2026, 1, 1),
            datetime.timedelta(1),
            datetime.time(1),
            decimal.Decimal("NaN"),
            1j,
            cycle,
        ]
        for value in refused:
            with self.assertRaises(NotCanonical, msg=repr(value)) as error:
                encode({"a": [value]})
            self.assertIn("args.a[0]", error.exception.path or "")

    def test_values_with_one_text(self) -> None:
        paris = datetime.timezone(datetime.timedelta(hours=1))
        cases = [
            (datetime.datetime(2026, 11, 18, 10, tzinfo=paris), "2026-11-18T09:00:00.000Z"),
            (datetime.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=datetime.timezone.utc), "2026-01-01T00:00:00.000001Z"),
            (datetime.date(2026, 11, 18), "2026-11-18"),
            (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (decimal.Decimal("1.50"), "1.5"),
            (decimal.Decimal("1E+2"), "100"),
            (decimal.Decimal("-0.00"), "0"),
            (Colour.RED, "red"),
            (Money(decimal.Decimal("2.0"), "EUR"), {"amount": "2", "currency": "EUR"}),
        ]
        for value, text in cases:
            self.assertEqual(encode(value), text)

    def test_decimals_never_collide(self) -> None:
        one = decimal.Decimal("0.1234567890123456789012345678901")
        other = decimal.Decimal("0.1234567890123456789012345678902")
        self.assertNotEqual(encode(one), encode(other))

    def test_an_annotation_brings_a_type_back(self) -> None:
        money = Money(decimal.Decimal("2.5"), "EUR")
        pairs: list[tuple[Any, Any]] = [
            (money, Money),
            ([money], list[Money]),
            ({"a": money}, dict[str, Money]),
            ((1, "a"), tuple[int, str]),
            ((1, 2, 3), tuple[int, ...]),
            (Colour.RED, Colour | None),
            (None, Money | None),
            (datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), datetime.datetime),
            (datetime.date(2026, 1, 1), datetime.date),
            (uuid.UUID(int=7), uuid.UUID),
        ]
        for value, hint in pairs:
            self.assertEqual(restore(json.loads(to_text(encode(value))), hint), value)


if __name__ == "__main__":
    unittest.main()
