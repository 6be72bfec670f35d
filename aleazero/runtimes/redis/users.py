"""Lets workers in and out of a running Redis: one user each, with the rules of `aleazero.runtimes.redis.access`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import redis
from redis.exceptions import ResponseError

from aleazero.runtimes.redis.access import DEFAULT_RULES, HEAD, LEAST_VERSION, AccessError, Keys, Token, rules
from aleazero.runtimes.redis.link import Link


def admit(link: Link, token: Token) -> None:
    """Make the token's user, as the head, or bring its rules up to date; it lasts as long as the server's files."""

    def do(client: redis.Redis) -> None:
        info: Any = client.info("server")
        if int(str(info["redis_version"]).split(".")[0]) < LEAST_VERSION[0]:
            raise AccessError(
                f"Redis at {link.where} has version {info['redis_version']}, whose users cannot have permissions by "
                f"key: version {'.'.join(map(str, LEAST_VERSION))} or newer is needed"
            )
        client.execute_command("ACL SETUSER", token.user, *rules(token))
        _save(client)

    link.call(do, writes=False)  # users are no data: they can be made where memory is full


def revoke(link: Link, user: str) -> bool:
    """Removes a user and ends its connections; whether there was one."""

    def do(client: redis.Redis) -> bool:
        gone: Any = client.execute_command("ACL DELUSER", user)
        _save(client)
        return int(gone) > 0

    return link.call(do, writes=False)


def forget(link: Link, keys: Keys, names: Iterable[str]) -> None:
    """Removes all that a server holds of a run: its keys, its workers' users, and last the head's own."""

    def do(client: redis.Redis) -> None:
        for key in client.scan_iter(match=keys.everything, count=1000):
            client.unlink(key)
        for name in names:
            if name != HEAD:
                client.execute_command("ACL DELUSER", Token.user_of(keys.run, name))
        _save(client)
        client.execute_command("ACL DELUSER", Token.user_of(keys.run, HEAD))

    link.attempt(do, writes=False)


def durability_problems(link: Link) -> list[str]:
    """What keeps a server that is not ours from holding on to what it has acknowledged, as its owner sees it."""

    def do(client: redis.Redis) -> list[str]:
        persistence: Any = client.info("persistence")
        memory: Any = client.info("memory")
        found = []
        if not persistence.get("aof_enabled"):
            found.append("it keeps no append-only file: a crash loses what it has acknowledged (appendonly yes)")
        if (policy := memory.get("maxmemory_policy")) != "noeviction":
            found.append(f"when it is full it throws away what it has acknowledged (maxmemory-policy is {policy})")
        with contextlib.suppress(ResponseError):  # not every owner may ask
            fsync: Any = client.config_get("appendfsync")
            if fsync.get("appendfsync") not in ("always", None):
                found.append(f"a crash may lose the last second (appendfsync is {fsync['appendfsync']})")
        return found

    return link.call(do, writes=False)


def check_default_user(link: Link) -> None:
    """Raises `AccessError` where a server would forget transactions when it reads its append-only file again.

    For servers that are not ours: it then acts as the default user, which must be allowed everything, even if nobody
    can log in as it (`access.DEFAULT_RULES`).
    """

    user: Any = link.call(lambda client: client.acl_getuser("default"), writes=False) or {}
    commands = [*user.get("categories", []), *user.get("commands", [])]
    keys = {key.decode() if isinstance(key, bytes) else key for key in user.get("keys", [])}
    if commands != ["+@all"] or not keys & {"*", "~*"}:
        raise AccessError(
            f"the default user of Redis at {link.where} is not allowed everything, so that transactions would be lost "
            f"when the server starts again: ACL SETUSER default {' '.join(DEFAULT_RULES)}"
        )


def _save(client: redis.Redis) -> None:
    try:
        client.execute_command("ACL SAVE")
    except ResponseError as error:
        if "ACL file" not in str(error):  # a server that keeps its users elsewhere; the head admits them at every start
            raise
