"""The server of this user's ledger: found by its socket, or started on first use. It ends by itself when nobody asks.

One per user and ledger: the process that holds the lock file starts it, all others wait and use it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import StoreUnavailable
from .transport import Address

IDLE = "2m"
_START_TIMEOUT = 60.0
#: A unix socket's path may have 107 bytes on Linux, and 103 elsewhere.
_MAX_PATH = 100
#: They are about the program that starts it, not about the server.
_OWN = ("SEMEL_TOKEN", "SEMEL_CONTEXT", "SEMEL_RUN", "SEMEL_HELD", "SEMEL_URL", "SEMEL_NAMESPACE")


@dataclass(frozen=True)
class Ledger:
    """What this program used first. It keeps it: after a `chdir` or in a child, a new server would have another ledger."""

    store: str
    state: pathlib.Path
    socket: pathlib.Path
    environment: dict[str, str | None]


def find() -> Ledger:
    environment = {name: os.environ.get(name) for name in ("XDG_STATE_HOME", "HOME", "SEMEL_HANDOFF_KEY")}
    return Ledger(_store(), _state().absolute(), (_folder() / f"{_name()}.sock").absolute(), environment)


def locate(ledger: Ledger, namespace: str | None) -> Address:
    """Where the server listens. Starts one if nobody does."""
    if not _answers(ledger.socket):
        _start(ledger)
    return Address(_token(ledger.state), namespace, socket=str(ledger.socket))


def _command() -> list[str]:
    given = os.environ.get("SEMEL_COMMAND")
    if given:
        return shlex.split(given)
    # Beside Python itself: in a virtual environment that was not activated.
    found = shutil.which("semel") or shutil.which("semel", path=os.path.dirname(sys.executable) or None)
    if found is not None:
        # The server starts in another folder, where a relative entry of PATH names something else.
        return [os.path.abspath(found)]
    raise StoreUnavailable(
        "There is no server: SEMEL_URL is not set, and the command `semel` is neither on PATH nor beside Python.",
        retriable=False,
        corrective_action="Install it (npm install -g semel), name it in SEMEL_COMMAND, or set SEMEL_URL and SEMEL_TOKEN.",
    )


def _name() -> str:
    """The same for all programs that use the same ledger and the same rules for hand-offs."""
    parts = [_store(), *(os.environ.get(name, "") for name in ("XDG_STATE_HOME", "HOME", "SEMEL_HANDOFF_KEY"))]
    return "ledger-" + hashlib.sha256("\0".join(["1", *parts]).encode()).hexdigest()[:16]


def _store() -> str:
    """A relative path counts from this program's folder, as for the command and in TypeScript: the server has another one."""
    given = os.environ.get("SEMEL_STORE", "")
    path = given.removeprefix("sqlite:")
    is_path = given.startswith("sqlite:") and path not in ("", ":memory:") and not os.path.isabs(path)
    return f"sqlite:{os.path.join(os.getcwd(), path)}" if is_path else given


def _state() -> pathlib.Path:
    """As the command has it: where its ledger and its token are."""
    given = os.environ.get("XDG_STATE_HOME", "")
    base = pathlib.Path(given) if os.path.isabs(given) else pathlib.Path.home() / ".local" / "state"
    return base / "semel"


def _folder() -> pathlib.Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    places = [pathlib.Path(runtime) / "semel"] if os.path.isabs(runtime) and os.path.isdir(runtime) else []
    places += [_state() / "serve", pathlib.Path(tempfile.gettempdir()) / f"semel-{os.getuid()}"]
    short = [each for each in places if len(os.fsencode(each)) + 30 <= _MAX_PATH]
    folder = short[0] if short else pathlib.Path("/tmp") / f"semel-{os.getuid()}"
    _check_folder(folder)
    return folder


def _check_folder(folder: pathlib.Path) -> None:
    _make(folder)
    facts = folder.lstat()
    # In a shared folder, somebody else could have made it first, and would get our token.
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise StoreUnavailable(
            f"{folder} belongs to another user, or others may open it.",
            retriable=False,
            corrective_action=f"Make it yours alone: chmod 700 {folder}",
        )


def _make(folder: pathlib.Path) -> None:
    """Its parents too are for this user only, as the command makes them: mkdir(parents=True) leaves theirs to the umask."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _token(state: pathlib.Path) -> str:
    path = state / "serve.execute.token"
    facts = path.stat()
    if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise StoreUnavailable(
            f"{path} belongs to another user, or others may read it.",
            retriable=False,
            corrective_action=f"Make it yours alone: chmod 600 {path}",
        )
    return path.read_text().strip()


def _answers(place: pathlib.Path) -> bool:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(5)
    try:
        probe.connect(str(place))
        return True
    except OSError:
        return False
    finally:
        probe.close()


#: Lock files that this process has open.
_held: set[int] = set()
#: Servers that this process has started. One that has ended is a zombie until it is asked for.
_started: list[subprocess.Popen[bytes]] = []


def _after_fork() -> None:
    # A child that has a copy would hold the lock after its parent was killed.
    for file in _held:
        with contextlib.suppress(OSError):
            os.close(file)
    _held.clear()
    _started.clear()


os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def _locked(place: pathlib.Path) -> Iterator[bool]:
    """False: a server answers meanwhile. The holder of the lock may have been stopped."""
    file = os.open(place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _held.add(file)
    try:
        yield _lock(file, place)
    finally:
        _held.discard(file)
        with contextlib.suppress(OSError):
            # Closed only, it would stay locked as long as a forked child has a copy.
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _lock(file: int, place: pathlib.Path) -> bool:
    until = time.monotonic() + _START_TIMEOUT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if _answers(place):
                return False
        if time.monotonic() > until:
            raise StoreUnavailable(
                f"Another program has been starting the server for {_START_TIMEOUT:.0f} s.",
                corrective_action=f"Nothing was run. End the program that holds {place.with_suffix('.lock')}, and call again.",
            )
        time.sleep(0.05)


def _start(ledger: Ledger) -> None:
    command = _command()
    place = ledger.socket
    _check_folder(place.parent)
    with _locked(place) as is_ours:
        until = time.monotonic() + _START_TIMEOUT
        while is_ours and not _answers(place):
            log = place.with_suffix(".log")
            process = _spawn(command, ledger, log)
            while process.poll() is None and time.monotonic() < until:
                if _answers(place):
                    return
                time.sleep(0.02)
            # Another server that was about to end may have kept the place until now.
            if _answers(place):
                return
            if time.monotonic() + 0.2 > until or _is_refusal(process, log):
                raise StoreUnavailable(
                    f"`{shlex.join(command)} serve` did not start: {_last_words(log)}",
                    retriable=False,
                    corrective_action=f"Start it by hand to see why, or look into {log}.",
                )
            time.sleep(0.2)


def _spawn(command: list[str], ledger: Ledger, log: pathlib.Path) -> subprocess.Popen[bytes]:
    settings = {**os.environ, **ledger.environment, "SEMEL_STORE": ledger.store or None}
    environment = {name: value for name, value in settings.items() if value is not None and name not in _OWN}
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    _started[:] = [each for each in _started if each.poll() is None]
    try:
        process = _Detached(
            [*command, "serve", "--socket", str(ledger.socket), "--define", "--role", "execute", "--idle", _idle()],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environment,
            cwd="/",
            # It outlives this program, and neither its signals nor its terminal reach it.
            start_new_session=True,
        )
        _started.append(process)
        return process
    except OSError as error:
        raise StoreUnavailable(
            f"`{command[0]}` cannot be started: {error}.",
            retriable=False,
            corrective_action="Correct SEMEL_COMMAND, or install the command.",
        ) from error
    finally:
        os.close(file)


class _Detached(subprocess.Popen[bytes]):
    """Not waited for: it is supposed to outlive this program."""

    def __del__(self, *_: object, **__: object) -> None:
        self.returncode = 0 if self.returncode is None else self.returncode


def _idle() -> str:
    return os.environ.get("SEMEL_IDLE") or IDLE


def _is_refusal(process: subprocess.Popen[bytes], log: pathlib.Path) -> bool:
    """One that was killed while it started has refused nothing."""
    status = process.poll()
    return status is not None and status >= 0 and "listens there already" not in _last_words(log)


def _last_words(log: pathlib.Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return " ".join(lines[-3:]) or "it said nothing"
