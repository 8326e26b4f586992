"""A lease: renewed while its holder works, and over where nobody could renew it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable
from types import TracebackType

from .client import Client, Talk


class Moment:
    """Now, by both clocks: the monotonic one stops while the machine sleeps. A wall clock that is set forward costs a renewal."""

    def __init__(self) -> None:
        self._mono = time.monotonic()
        self._wall = time.time()

    @property
    def age(self) -> float:
        return max(time.monotonic() - self._mono, time.time() - self._wall)


#: Waits do not count while the machine sleeps either: after it wakes up, its effects may run this long under a lost lease.
_LONGEST_PAUSE = 10.0


class Lost(threading.Event):
    """Set when another worker may take over. A program that was stopped goes on before the thread that renews its lease: where
    the lease has ended, it is set, until a renewal says that nobody took over."""

    def __init__(self, left: Callable[[], float]) -> None:
        super().__init__()
        self._left = left

    def is_set(self) -> bool:
        return super().is_set() or self._left() <= 0

    def wait(self, timeout: float | None = None) -> bool:
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            now = time.monotonic()
            if now >= end:
                return False
            super().wait(min(max(0.0, self._left()), end - now, _LONGEST_PAUSE))
        return True


class Lease:
    """Counted from when it was asked for, and no longer than the timeout, after which nothing renews it."""

    def __init__(self, seconds: float, asked: Moment, timeout: float | None = None) -> None:
        self.seconds = seconds
        self._asked = asked
        self._started = Moment()
        self._timeout = math.inf if timeout is None else timeout
        self.lost = Lost(self._left)
        third = seconds / 3
        #: Between looks whether it is due. Its third is a whole number of them.
        self.pause = third / math.ceil(third / _LONGEST_PAUSE)

    def _left(self) -> float:
        return min(self.seconds - self._asked.age, self._timeout - self._started.age)

    def renewed(self, asked: Moment) -> None:
        self._asked = asked

    @property
    def request_timeout(self) -> float:
        """Of a renewal: one that hangs must leave time for another."""
        return min(10.0, max(1.0, self.seconds / 3))

    @property
    def is_young(self) -> bool:
        """Whether an effect may start under it without asking again."""
        return self._asked.age < self.seconds / 3

    @property
    def is_due(self) -> bool:
        """Whether to renew it now. A look may come a little early."""
        return self._asked.age > self.seconds / 3 - self.pause / 2


class Heartbeat:
    """Renews at a third of the lease. A daemon: it does not keep a dead program's call alive."""

    def __init__(self, client: Client, lease: Lease, renew: Callable[[], Talk[bool]]) -> None:
        self._client = client
        self._lease = lease
        self._renew = renew
        self._is_over = False
        self._over = threading.Event()
        self._holder = threading.current_thread()

    def __enter__(self) -> None:
        try:
            threading.Thread(target=self._beat, name="semel heartbeat", daemon=True).start()
        except RuntimeError:
            # The interpreter ends, or there are no threads left: `lost` tells when the lease is over.
            pass
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        # An interrupt can come before the event is set. A thread that went on would hold the call as long as the program lives.
        self._is_over = True
        self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(self._lease.pause):
            if self._is_over or not self._is_held():
                return
            if not self._lease.is_due:
                continue
            try:
                if not self._client.drive(self._renew()):
                    return
            except Exception:
                # Of this one renewal: the next may succeed.
                continue

    def _is_held(self) -> bool:
        # The main thread counts as ended while it runs what is registered for its end.
        return self._holder is threading.main_thread() or self._holder.is_alive()


class AsyncHeartbeat:
    """The same in a task."""

    def __init__(self, client: Client, lease: Lease, renew: Callable[[], Talk[bool]]) -> None:
        self._client = client
        self._lease = lease
        self._renew = renew
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._beat())

    async def __aexit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        task = self._task
        if task is None:
            return
        # The loop may be closed already.
        with contextlib.suppress(RuntimeError):
            task.cancel()
            if kind is not GeneratorExit:
                await asyncio.wait({task})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease.pause)
            if not self._lease.is_due:
                continue
            try:
                if not await self._client.drive_async(self._renew()):
                    return
            except Exception:
                continue
