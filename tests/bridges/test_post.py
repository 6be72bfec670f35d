from __future__ import annotations

import http.client
import time

import pytest

from aleazero.bridges.post import post
from tests.bridges.chat_endpoint import ChatEndpoint, dripping

OK = b"HTTP/1.1 200 OK\r\n"
ASKED = '{"messages": [{"content": "x"}]}'


@pytest.mark.parametrize(
    ("start", "drop"),
    [(OK, b"x: y\r\n"), (OK + b"Content-Length: 1000\r\n\r\n", b"x"), (OK + b"\r\n", b"x"), (b"", b"H")],
)
def test_an_answer_that_drips_is_late(start: bytes, drop: bytes) -> None:
    with dripping(start, drop) as url:
        started = time.monotonic()
        with pytest.raises((OSError, http.client.HTTPException)):
            post(url, "{}", {}, 0.3, 1 << 20)
        assert time.monotonic() - started < 4


def test_an_answer_is_brought_and_a_larger_one_refused() -> None:
    with ChatEndpoint(lambda question: b"12345", status=418) as endpoint:
        assert post(endpoint.url, ASKED, {"X-Mine": "y"}, 5.0, 5) == (418, b"12345")
        assert endpoint.headers[0]["X-Mine"] == "y"
        with pytest.raises(ValueError, match="more than 4 bytes"):
            post(endpoint.url, ASKED, {}, 5.0, 4)
