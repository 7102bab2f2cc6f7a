"""How fast a map of basins is, beside one solve_ivp call a point, and whether both say the same.

taskset -c 0 python benchmarks/basins.py
"""

import json
import os
from dataclasses import asdict, dataclass
from time import perf_counter, process_time

import numpy as np
import tyro
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from phinets.dynamics.basins import NO_SINK, Basins, Box, basins, destinations
from phinets.dynamics.systems import Floats, PhiNet, Version

NEAR = 1e-3
"""Points as near to a border as this are not compared."""


@dataclass(frozen=True)
class Options:
    """Seconds for whole maps of PhiNet in both versions, and a sample of points followed one by one."""

    rhos: tuple[float, ...] = (0.12, 0.03, 0.003, 0.0001)
    """Weight decays."""
    sigma2: float = 1.5
    """Strength of augmentation."""
    grid: int = 401
    """Points a side."""
    sample: int = 100
    """Points a map that solve_ivp follows too."""
    seed: int = 0
    """Which points."""
    json: bool = False
    """Print one JSON document."""


@dataclass(frozen=True)
class Row:
    """One map."""

    version: Version
    rho: float
    seconds: float
    """For the whole map."""
    processor_seconds: float
    """The same, without what other programs took."""
    solve_ivp_seconds: float
    """For one point, in processor time."""
    ratio: float
    """How many times faster a point of the map is, in processor time."""
    compared: int
    """Points that are not near a border."""
    agree: int
    """How many of them end in the same sink."""
    undecided: int


def row(options: Options, version: Version, rho: float) -> Row:
    """One map, measured and compared."""
    system = PhiNet(sigma2=options.sigma2, rho=rho, version=version)
    wall, began = perf_counter(), process_time()
    found = basins(system, Box(), options.grid)
    seconds, busy = perf_counter() - wall, process_time() - began
    chosen = np.random.default_rng(options.seed).choice(found.labels.size, options.sample, replace=False)
    began = process_time()
    ends = np.array([_end(system, found, point) for point in chosen])
    one = (process_time() - began) / options.sample
    clear = _clear(system, found, chosen)
    same = ends == found.labels.ravel()[chosen]
    return Row(
        version=version,
        rho=rho,
        seconds=seconds,
        processor_seconds=busy,
        solve_ivp_seconds=one,
        ratio=one / (busy / found.labels.size),
        compared=int(clear.sum()),
        agree=int((same & clear).sum()),
        undecided=found.undecided,
    )


def _end(system: PhiNet, found: Basins, point: int) -> int:
    """The sink that solve_ivp takes a point of the map to: LSODA, which copes with stiffness, given the Jacobian."""
    gamma, psi = np.unravel_index(point, found.labels.shape)

    def rate(_: float, state: Floats) -> Floats:
        return system.flow(state)

    def slope(_: float, state: Floats) -> Floats:
        return system.jacobian(state)

    start, long = (found.psi[psi], found.gamma[gamma]), 100 / system.rho
    path = solve_ivp(rate, (0, long), start, method="LSODA", jac=slope, rtol=1e-8, atol=1e-8 * system.rho)
    away = [np.max(np.abs(path.y[:, -1] - np.array(sink.state))) for sink in found.sinks]
    return int(np.argmin(away)) if min(away) < 1e-2 * system.rho**0.5 else NO_SINK


def _clear(system: PhiNet, found: Basins, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which points of the map end where eight neighbors do that lie NEAR them, all around."""
    gamma, psi = np.unravel_index(chosen, found.labels.shape)
    turns = np.linspace(0, 2 * np.pi, 9)[:-1, None]
    ring = np.stack([found.psi[psi] + NEAR * np.cos(turns), found.gamma[gamma] + NEAR * np.sin(turns)])
    ends = destinations(system, ring.reshape(2, -1)).reshape(8, -1)
    clear: NDArray[np.bool_] = np.all(ends == found.labels.ravel()[chosen], axis=0)
    return clear


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    versions: tuple[Version, ...] = ("published", "corrected")
    rows = [row(options, version, rho) for version in versions for rho in options.rhos]
    if options.json:
        cores = len(os.sched_getaffinity(0))
        print(json.dumps({"grid": options.grid, "cores": cores, "maps": [asdict(each) for each in rows]}))
        return
    for each in rows:
        print(
            f"{each.version:9} rho {each.rho:<7g} {each.seconds:5.2f} s ({each.processor_seconds:.2f} s of processor), "
            f"solve_ivp {1e3 * each.solve_ivp_seconds:6.1f} ms a point, ratio {each.ratio:6.0f}, "
            f"{each.agree} of {each.compared} agree, {each.undecided} undecided"
        )


if __name__ == "__main__":
    main()
