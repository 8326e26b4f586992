"""Builds the wheel without a network and without tools: python3 build_wheel.py <folder>. The same sources give the same bytes."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "semel/__init__.py").read_text(), re.MULTILINE)[1]  # type: ignore[index]
INFO = f"semel-{VERSION}.dist-info"

METADATA = f"""Metadata-Version: 2.1
Name: semel
Version: {VERSION}
Summary: Every effect lands once: an idempotency layer for AI agents and scheduled jobs.
License: MIT
Requires-Python: >=3.10
Description-Content-Type: text/markdown

"""

WHEEL = """Wheel-Version: 1.0
Generator: semel
Root-Is-Purelib: true
Tag: py3-none-any
"""


def main(folder: pathlib.Path) -> pathlib.Path:
    files = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for path in sorted((ROOT / "semel").rglob("*"))
        if path.suffix == ".py" or path.name == "py.typed"
    }
    files[f"{INFO}/METADATA"] = METADATA.encode() + (ROOT / "README.md").read_bytes()
    files[f"{INFO}/WHEEL"] = WHEEL.encode()
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{INFO}/RECORD"] = "\n".join([*record, f"{INFO}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"semel-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, content)
    return target


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "dist")))
