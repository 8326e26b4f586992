"""HTTP to the ledger's server, over TCP or a unix socket. Every request may be repeated, so a lost answer is asked for again."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import io
import ipaddress
import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from .encoding import to_text
from .errors import InvalidArgs, SemelError, StoreUnavailable, from_problem

T = TypeVar("T")

#: How long one try may take, in seconds, besides what it asks the server to wait.
ANSWER_TIMEOUT = 30.0
#: How long to go on trying, in seconds.
PATIENCE = 15.0


@dataclass(frozen=True)
class Address:
    token: str
    namespace: str | None = None
    socket: str | None = None
    host: str = "localhost"
    port: int = 80
    tls: bool = False
    prefix: str = ""


@dataclass(frozen=True)
class Request:
    path: str
    body: dict[str, Any]
    #: How long one try may take, in seconds.
    timeout: float = field(default_factory=lambda: ANSWER_TIMEOUT)
    #: How long to go on trying after the first try has failed, in seconds: an answer that took too long is asked for again too.
    patience: float = field(default_factory=lambda: PATIENCE)
    #: How long to wait before it is sent, in seconds.
    delay: float = 0.0


def parse_url(url: str, token: str, namespace: str | None) -> Address:
    """`http://127.0.0.1:8971`, `https://ledger.example.com`, `unix:/run/semel.sock`."""
    if url.startswith("unix:"):
        return Address(token, namespace, socket=url.removeprefix("unix:").removeprefix("//"))
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise _no_address() from None
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        raise _no_address()
    tls = parts.scheme == "https"
    return Address(
        token,
        namespace,
        host=parts.hostname,
        port=port or (443 if tls else 80),
        tls=tls,
        prefix=parts.path.rstrip("/"),
    )


def _no_address() -> SemelError:
    # Not what it is: the address of a database, with its password, gets there by mistake.
    return StoreUnavailable(
        "SEMEL_URL is not the address of a server.",
        retriable=False,
        corrective_action="Use http://, https:// or unix:/path.",
    )


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


#: The server closes idle connections after five seconds.
_MAX_IDLE = 3.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class _Tries:
    """When to send a request again."""

    def __init__(self, request: Request) -> None:
        self._patience = request.patience
        self._until: float | None = None
        self._pause = _FIRST_PAUSE

    def pause_after(self, failure: SemelError) -> float:
        """Raises the failure where it has been tried for long enough."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._patience
        pause = max(self._pause, failure.retry_after or 0.0)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        if now + pause > self._until:
            raise failure
        return pause


class Transport:
    """`locate(is_lost)` finds the server, or starts one; `is_lost` says that the last one did not answer. `known` is what it
    found before."""

    def __init__(self, locate: Callable[[bool], Address], known: Callable[[], Address | None]) -> None:
        self._locate = locate
        self._known = known
        self._free: list[tuple[float, Address, http.client.HTTPConnection]] = []
        # A handler of a signal may call too, in the middle of a call.
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def send(self, request: Request) -> dict[str, Any]:
        tries = _Tries(request)
        is_lost = False
        time.sleep(request.delay)
        while True:
            try:
                return self._try(self._locate(is_lost), request)
            except (OSError, http.client.HTTPException) as error:
                failure: SemelError = _unreachable(error)
                failure.__cause__ = error
                is_lost = True
            except SemelError as error:
                if not _may_repeat(error):
                    raise
                failure = error
            time.sleep(tries.pause_after(failure))

    async def send_async(self, request: Request) -> dict[str, Any]:
        tries = _Tries(request)
        is_lost = False
        await asyncio.sleep(request.delay)
        while True:
            try:
                known = None if is_lost else self._known()
                # Starting a server waits for it.
                address = known if known is not None else await _in_thread(functools.partial(self._locate, is_lost))
                return await asyncio.wait_for(_try_async(address, request), request.timeout)
            except (OSError, http.client.HTTPException, asyncio.TimeoutError, EOFError) as error:
                failure: SemelError = _unreachable(error)
                failure.__cause__ = error
                is_lost = True
            except SemelError as error:
                if not _may_repeat(error):
                    raise
                failure = error
            await asyncio.sleep(tries.pause_after(failure))

    def _try(self, address: Address, request: Request) -> dict[str, Any]:
        connection = self._take(address, request.timeout)
        try:
            connection.request("POST", address.prefix + request.path, _body(request), _headers(address))
            response = connection.getresponse()
            text = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._keep(address, connection)
        return _answer(response, text)

    def _take(self, address: Address, timeout: float) -> http.client.HTTPConnection:
        with self._lock:
            if self._pid != os.getpid():
                # A forked child must not share its parent's connections.
                self._pid = os.getpid()
                self._free = []
            while self._free:
                kept_at, of, found = self._free.pop()
                if of == address and time.monotonic() - kept_at < _MAX_IDLE and found.sock is not None:
                    found.sock.settimeout(timeout)
                    return found
                found.close()
        if address.socket is not None:
            return _UnixConnection(address.socket, timeout)
        if address.tls:
            return http.client.HTTPSConnection(address.host, address.port, timeout=timeout)
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout)

    def _keep(self, address: Address, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._free.append((time.monotonic(), address, connection))

    def close(self) -> None:
        with self._lock:
            for _, _, connection in self._free:
                connection.close()
            self._free = []


def _may_repeat(error: SemelError) -> bool:
    return error.code == "STORE_UNAVAILABLE" and error.retriable


def _unreachable(error: BaseException) -> SemelError:
    return StoreUnavailable(f"The server of the ledger does not answer ({type(error).__name__}: {error}).")


def _body(request: Request) -> bytes:
    return to_text(request.body).encode("utf-8")


def _headers(address: Address) -> dict[str, str]:
    for name, value in (("token", address.token), ("namespace", address.namespace or "x")):
        # A line break would begin another header, or another request.
        if not re.fullmatch(r"[!-~]+", value):
            raise InvalidArgs(
                f"The {name} has characters that a header cannot have.",
                path=name,
                corrective_action="Use visible ASCII characters only.",
            )
    headers = {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}
    if address.namespace is not None:
        headers["Semel-Namespace"] = address.namespace
    return headers


def _answer(response: http.client.HTTPResponse, text: bytes) -> dict[str, Any]:
    status = response.status
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise http.client.HTTPException(f"status {status}, and no JSON") from error
    if not isinstance(answer, dict):
        raise http.client.HTTPException(f"status {status}, and no JSON object")
    if status == 200:
        return answer
    if "code" not in answer:
        raise http.client.HTTPException(f"status {status}")
    refusal = from_problem(answer)
    if refusal.retry_after is None:
        refusal.retry_after = _seconds(response.getheader("Retry-After"))
    if status == 503 and refusal.retriable and refusal.code != "STORE_UNAVAILABLE":
        # It has no room for the request, whose code would say that something is wrong with it. It has done nothing.
        raise StoreUnavailable(refusal.message, retry_after=refusal.retry_after) from refusal
    raise refusal


def _seconds(text: str | None) -> float | None:
    """Of Retry-After. Dates are for browsers."""
    return float(text) if text is not None and text.isdecimal() else None


async def _in_thread(work: Callable[[], T]) -> T:
    """Not in the loop's own threads: a program may keep all of them busy for longer than a lease, and they end before it does."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(T, value))

    def run() -> None:
        value, failure = None, None
        try:
            value = work()
        except BaseException as error:
            failure = error
        # The loop may have ended meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, failure)

    try:
        threading.Thread(target=run, name="semel server", daemon=True).start()
    except RuntimeError:
        # The interpreter ends.
        return work()
    return await done


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context() if address.tls else None
    host, port = address.host, address.port
    look = functools.partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = look() if _is_number(host) else await _in_thread(look)
    failure: OSError | None = None
    for family, _, proto, _, place in found:
        try:
            return await asyncio.open_connection(
                str(place[0]), port, family=family, proto=proto, ssl=context, server_hostname=host if address.tls else None
            )
        except OSError as error:
            failure = failure or error
    raise failure or OSError(f"{host} has no address")


async def _try_async(address: Address, request: Request) -> dict[str, Any]:
    headers = _headers(address)
    if address.socket is not None:
        reader, writer = await asyncio.open_unix_connection(address.socket)
    else:
        reader, writer = await _connect(address)
    try:
        body = _body(request)
        default = 443 if address.tls else 80
        name = f"[{address.host}]" if ":" in address.host else address.host
        host = name if address.socket is not None or address.port == default else f"{name}:{address.port}"
        lines = [
            f"POST {address.prefix}{request.path} HTTP/1.1",
            f"Host: {host}",
            "Connection: close",
            f"Content-Length: {len(body)}",
            *(f"{key}: {value}" for key, value in headers.items()),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        await writer.drain()
        raw = await reader.read(-1)
    finally:
        writer.close()
    response = http.client.HTTPResponse(_Bytes(raw))  # type: ignore[arg-type]
    response.begin()
    return _answer(response, response.read())


class _Bytes:
    """Enough of a socket for http.client to read an answer that is there as a whole."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._raw)
