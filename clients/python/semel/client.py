"""One connection to a ledger: by SEMEL_URL and SEMEL_TOKEN, or to a server that is started on first use."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import SemelError, StoreUnavailable
from .transport import Address, Request, Transport, parse_url

if TYPE_CHECKING:
    from .local import Ledger

T = TypeVar("T")

#: A conversation with the server that does not care who sends: it yields requests and gets answers.
Talk = Generator[Request, dict[str, Any], T]


class Client:
    def __init__(self, url: str | None = None, token: str | None = None, namespace: str | None = None) -> None:
        self._url = url
        self._token = token
        self._namespace = namespace
        self._is_found = False
        self._ledger: Ledger | None = None
        self._renew()
        _all.add(self)

    def _renew(self) -> None:
        """Without the locks of another thread, which are held for ever in a forked child, and without its connections."""
        self._known: Address | None = None
        self._lock = threading.RLock()
        self.transport = Transport(self._locate, lambda: self._known)

    @property
    def has_asked(self) -> bool:
        """Otherwise no server has heard of it."""
        return self._known is not None

    def _locate(self, is_lost: bool) -> Address:
        known = self._known
        if known is not None and not is_lost:
            return known
        with self._lock:
            # Once found, it stays: what the program changes in its environment later must not lead to another ledger.
            url, namespace = self._url, self._namespace
            if not self._is_found:
                url = url or os.environ.get("SEMEL_URL") or None
                namespace = namespace or os.environ.get("SEMEL_NAMESPACE") or None
            if url:
                token = self._token or os.environ.get("SEMEL_TOKEN")
                if not token:
                    raise StoreUnavailable(
                        "SEMEL_URL is set, and SEMEL_TOKEN is not.",
                        retriable=False,
                        corrective_action="Set SEMEL_TOKEN: `semel serve token` makes one.",
                    )
                found = parse_url(url, token, namespace)
            else:
                # Does not exist on Windows.
                from . import local

                ledger = self._ledger or local.find()
                found = local.locate(ledger, namespace)
                self._ledger = ledger
            self._url, self._namespace, self._is_found = url, namespace, True
            self._known = found
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


_all: weakref.WeakSet[Client] = weakref.WeakSet()
_default = Client()


def default_client() -> Client:
    return _default


def configure(*, url: str | None = None, token: str | None = None, namespace: str | None = None) -> None:
    """Which server and namespace this program uses, instead of SEMEL_URL, SEMEL_TOKEN and SEMEL_NAMESPACE."""
    global _default
    _default.transport.close()
    _default = Client(url, token, namespace)


def _after_fork() -> None:
    for each in list(_all):
        # Closes the copies only: the parent goes on with its own.
        for _, _, connection in each.transport._free:
            connection.close()
        each._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
