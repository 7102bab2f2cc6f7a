"""The map of basins shows every start's end, and the shares that the library counts."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from phinets.dynamics.basins import Basins, Box, basins, simsiam_beside
from phinets.dynamics.systems import PhiNet
from phinets.reports.basin_map import basin_map
from phinets.reports.palette import COLLAPSED, SINK

SYSTEM = PhiNet(rho=0.0005, version="published")
BOX = Box(psi_min=-0.3, psi_max=0.5, gamma_min=-1, gamma_max=5)


@pytest.fixture(scope="module")
def pair() -> tuple[Basins, Basins]:
    return basins(SYSTEM, BOX, 41), simsiam_beside(SYSTEM, BOX, 41)


def test_every_start_has_the_color_of_its_end_and_grey_means_collapse(pair: tuple[Basins, Basins]) -> None:
    for axes, shown in zip(basin_map(pair).axes, pair, strict=True):
        mesh = axes.collections[0]
        colors = [to_hex(color) for color in mesh.to_rgba(np.arange(len(shown.sinks)))]
        assert [color == COLLAPSED for color in colors] == [sink.collapsed for sink in shown.sinks]
        assert len(set(colors)) == len(colors)
        np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(41, 41), shown.labels)


def test_the_panels_share_a_box_and_tell_the_share_that_does_not_collapse(pair: tuple[Basins, Basins]) -> None:
    figure = basin_map(pair)
    for axes, shown, name in zip(figure.axes, pair, ("PhiNet, published", "SimSiam"), strict=True):
        assert (*axes.get_xlim(), *axes.get_ylim()) == (-0.3, 0.5, -1, 5)
        first, second = axes.get_title().split("\n")
        assert first == f"{name}, ρ = 0.0005, σ² = 1.5"
        assert second == f"{100 * shown.kept:.1f} % of the starts do not collapse"
        marked = {float(np.asarray(each.get_xdata())[0]) for each in axes.lines if each.get_color() == SINK}
        assert marked == {sink.psi for sink in shown.sinks if (sink.gamma or 0.0) < 5}


def test_a_start_without_an_end_stays_white(pair: tuple[Basins, Basins]) -> None:
    shown = pair[0]
    labels = shown.labels.copy()
    labels[3, 4] = -1
    undecided = Basins(system=SYSTEM, psi=shown.psi, gamma=shown.gamma, sinks=shown.sinks, labels=labels)
    drawn: Any = basin_map([undecided]).axes[0].collections[0].get_array()
    assert np.argwhere(np.ma.getmaskarray(drawn).reshape(41, 41)).tolist() == [[3, 4]]
