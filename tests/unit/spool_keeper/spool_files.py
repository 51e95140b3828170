"""Spool files as broker 1.3.0 writes them: u32 little-endian length, JSON object, again and again."""

import json
import struct
from pathlib import Path


def record(number: int, payload_bytes: int = 100) -> bytes:
    body = json.dumps(
        {
            "queue": "orders",
            "partition": "Default",
            "transactionId": f"0198c0de-0000-7000-8000-{number:012d}",
            "encrypted": False,
            "payload": {"text": "x" * payload_bytes},
        },
        separators=(",", ":"),
    ).encode()
    return struct.pack("<I", len(body)) + body


def records(count: int, payload_bytes: int = 100) -> bytes:
    return b"".join(record(number, payload_bytes) for number in range(count))


def file_name(epoch_ms: int, sequence: int = 0, ending: str = "buf") -> str:
    return f"queen-{epoch_ms:013d}-{sequence:08d}.{ending}"


def add_file(directory: Path, epoch_ms: int, content: bytes, sequence: int = 0, ending: str = "buf") -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / file_name(epoch_ms, sequence, ending)
    path.write_bytes(content)
    return path


def add_links(directory: Path, epoch_ms: int, contents: list[bytes], count: int) -> None:
    """Add many files at the price of a few: each is a further name of one of `contents`, in turn."""
    originals = directory / "originals"
    originals.mkdir()
    for number, content in enumerate(contents):
        (originals / str(number)).write_bytes(content)
    for sequence in range(count):
        original = originals / str(sequence % len(contents))
        (directory / file_name(epoch_ms, sequence)).hardlink_to(original)
