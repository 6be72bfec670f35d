"""One HTTP request, within its time as a whole: an endpoint that drips its answer is as late as one that is silent.

Knows HTTP; nothing of what is asked.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from urllib.parse import urlsplit


def post(url: str, body: str, headers: Mapping[str, str], seconds: float, largest: int) -> tuple[int, bytes]:
    """Status and body of the answer; OSError, HTTPException or ValueError where none comes in time, or a larger one."""
    until = time.monotonic() + seconds
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(host, parts.port)
    link = socket.create_connection((host, connection.port), timeout=seconds)
    connection.sock = link
    other_end = link.dup()  # it can be shut whatever becomes of the first
    timer = threading.Timer(max(0.0, until - time.monotonic()), _shut, (other_end,))
    timer.start()
    try:
        if secure:
            connection.sock = ssl.create_default_context().wrap_socket(link, server_hostname=host)
        if time.monotonic() >= until:
            raise TimeoutError("the connection took too long")
        connection.request(
            "POST", f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}", body, dict(headers)
        )
        response = connection.getresponse()
        held = response.read(largest + 1)
        if time.monotonic() >= until:
            raise TimeoutError("the answer took too long")
        if len(held) > largest:
            raise ValueError(f"the answer has more than {largest} bytes")
        return response.status, held
    finally:
        timer.cancel()
        connection.close()
        link.close()
        other_end.close()


def _shut(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
