"""Runs on Ray: actors that play, one that learns, one that answers for a network; everything else is a local run's.

Ray reads how it is to authenticate when it is imported, so that is settled here, before any module imports it: by the
user's token, as clusters of `alea ray head` want it. RAY_AUTH_MODE overrides.
"""

import os
import sys

if "ray" not in sys.modules:
    os.environ.setdefault("RAY_AUTH_MODE", "token")
