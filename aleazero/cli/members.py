"""`alea worker stop` and `alea worker token`: who takes part in a run, decided where its folder is."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

from aleazero.cli.answer import DONE, FAILED, print_json
from aleazero.cli.common import active_run
from aleazero.runs import runs_root
from aleazero.runtimes.redis import users
from aleazero.runtimes.redis.access import HEAD, AccessError
from aleazero.runtimes.redis.beats import read_beats
from aleazero.runtimes.redis.home import Home

POLL_SECONDS = 0.2


def stop(name: str, run: str | None, wait: float, runs: Path | None) -> int:
    """Asks a worker to leave, and waits until it has."""
    home = Home(active_run(runs_root(runs), run))
    keys = home.keys
    with contextlib.closing(home.connect()) as link:
        beat = read_beats(link, keys, [name]).get(name)
        if beat is None or beat.status.get("leaving"):
            print(f"worker {name!r} does not take part in run {keys.run!r}")
            return DONE
        instance = str(beat.status.get("instance"))
        link.call(lambda client: client.hset(keys.stops, name, instance), writes=True)
        end = time.monotonic() + wait
        while time.monotonic() < end:
            beat = read_beats(link, keys, [name]).get(name)
            if beat is None or beat.status.get("leaving") or beat.status.get("instance") != instance:
                print(f"worker {name!r} has left run {keys.run!r}")
                return DONE
            time.sleep(POLL_SECONDS)
    print(
        f"alea: worker {name!r} has not left within {wait:g} s; it leaves once it is done with what it does",
        file=sys.stderr,
    )
    return FAILED


def token(name: str, run: str | None, runs: Path | None, *, revoke: bool, as_json: bool) -> int:
    """Makes a worker's token, or takes it away."""
    home = Home(active_run(runs_root(runs), run))
    if name == HEAD:
        raise AccessError(f"{HEAD!r} is the head's own name: choose another one")
    ring, address = home.keyring(), home.address()
    if revoke:
        known = name in ring.names
        with contextlib.closing(home.connect()) as link:
            user = ring.token(name).user
            users.revoke(link, user)
        ring.drop(name)
        print(f"worker {name!r}: {'its token is no longer accepted' if known else 'it had no token'}")
        return DONE
    made = ring.token(name)
    with contextlib.closing(home.connect()) as link:
        users.admit(link, made)
    if as_json:
        print_json({"run": made.run, "worker": name, "url": address.outside, "token": made.text, "ca": address.ca_file})
        return DONE
    ca = f" --ca {address.ca_file}" if address.ca_file else ""
    print(f"alea worker game --url {address.outside} --token {made.text}{ca}")
    return DONE
