"""Sharing the cores with whoever else is on the machine."""

import os

SPINS = "100000"
"""How long an OpenMP thread spins before it sleeps. By default it spins for good, and where another program wants the
cores too, a step then takes up to ten times as long; with this it takes its fair share, and a quiet machine loses
nothing."""

ALONE = "1"
"""Threads of numpy's and scipy's own OpenBLAS. Their products are small here (torch does the large ones), and waking a
second thread for each makes a step of L-BFGS fifty times as long."""


def share_cores() -> None:
    """Let waiting threads sleep, unless the person has said otherwise. The libraries read it when they are loaded."""
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", ALONE)


def own_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
