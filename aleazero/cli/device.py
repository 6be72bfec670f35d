"""`--device`: where JAX computes. It must be chosen before anything is computed, so commands do it first."""

from __future__ import annotations

import sys

from aleazero.core.errors import AleaError


class DeviceError(AleaError):
    """The device asked for is not there."""


def choose(name: str) -> None:
    """Makes JAX compute on `cpu`, `cuda` or `tpu`; `auto` leaves the choice to JAX, `metal` comes to the CPU."""
    if name == "auto":
        return
    if name == "metal":
        print("alea: JAX's Metal plug-in lags behind JAX and is not used; going on on the CPU", file=sys.stderr)
        name = "cpu"
    import jax

    before: str | None = jax.config.jax_platforms
    # The CPU stays within reach: replay may live there.
    jax.config.update("jax_platforms", name if name == "cpu" else f"{name},cpu")
    try:
        jax.devices(name)
    except RuntimeError as error:
        jax.config.update("jax_platforms", before)
        raise DeviceError(
            f"there is no {name} device here, or JAX cannot use it: {error}. Use --device auto or cpu, or install "
            f"JAX for it (pip install 'jax[{name}]')"
        ) from error
