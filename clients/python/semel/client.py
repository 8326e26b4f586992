"""One connection to a ledger: by SEMEL_URL and SEMEL_TOKEN, or to a server that is started on first use."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from typing import Any, TypeVar

from .errors import SemelError, StoreUnavailable
from .transport import Address, Request, Transport, parse_url

T = TypeVar("T")

#: A conversation with the server that does not care who sends: it yields requests and gets answers.
Talk = Generator[Request, dict[str, Any], T]


class Client:
    def __init__(self, url: str | None = None, token: str | None = None, namespace: str | None = None) -> None:
        self._url = url
        self._token = token
        self._namespace = namespace
        self._known: Address | None = None
        self._lock = threading.Lock()
        self.transport = Transport(self._locate)

    def _locate(self, is_lost: bool) -> Address:
        known = self._known
        if known is not None and not is_lost:
            return known
        with self._lock:
            namespace = self._namespace or os.environ.get("SEMEL_NAMESPACE") or None
            url = self._url or os.environ.get("SEMEL_URL")
            if url:
                token = self._token or os.environ.get("SEMEL_TOKEN")
                if not token:
                    raise StoreUnavailable(
                        "SEMEL_URL is set, and SEMEL_TOKEN is not.",
                        retriable=False,
                        corrective_action="Set SEMEL_TOKEN: `semel serve token` makes one.",
                    )
                self._known = parse_url(url, token, namespace)
            else:
                from . import local

                self._known = local.locate(is_lost, namespace)
            return self._known

    def drive(self, talk: Talk[T]) -> T:
        try:
            request = next(talk)
            while True:
                try:
                    answer = self.transport.send(request)
                except SemelError as error:
                    request = talk.throw(error)
                else:
                    request = talk.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def drive_async(self, talk: Talk[T]) -> T:
        try:
            request = next(talk)
            while True:
                try:
                    answer = await self.transport.send_async(request)
                except SemelError as error:
                    request = talk.throw(error)
                else:
                    request = talk.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


_default = Client()


def default_client() -> Client:
    return _default


def configure(*, url: str | None = None, token: str | None = None, namespace: str | None = None) -> None:
    """Which server and namespace this program uses, instead of SEMEL_URL, SEMEL_TOKEN and SEMEL_NAMESPACE."""
    global _default
    _default.transport.close()
    _default = Client(url, token, namespace)


def _after_fork() -> None:
    global _default
    # A lock that another thread held is held for ever in the child.
    old = _default
    _default = Client(old._url, old._token, old._namespace)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
