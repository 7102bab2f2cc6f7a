"""The bifurcation diagram's lines are equilibria, and its marks are where the library finds bifurcations."""

from functools import cache

import numpy as np
import pytest

from phinets.dynamics.bifurcations import bifurcations
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.systems import PhiNet, SimSiam, Version
from phinets.reports.dynamics_figures import bifurcation_diagram, sink_diagram
from phinets.reports.palette import SYSTEM

VERSIONS: tuple[Version, ...] = ("published", "corrected")
diagram = cache(bifurcation_diagram)


@pytest.mark.parametrize("system", [PhiNet(version="published"), PhiNet(), SimSiam(sigma2=0.5)], ids=repr)
def test_every_line_is_an_equilibrium_solid_where_it_is_a_sink(system: PhiNet | SimSiam) -> None:
    figure = diagram(system)
    own = SYSTEM["simsiam" if isinstance(system, SimSiam) else "phinet"]
    for axes, variable in zip(figure.axes, system.variables, strict=True):
        lines = [each for each in axes.lines if each.get_color() == own and len(np.asarray(each.get_xdata())) > 2]
        assert lines
        for each in lines:
            rho, value = (np.asarray(values)[25] for values in each.get_data())
            points = equilibria(system.with_rho(float(rho)))
            nearest = min(points, key=lambda point: abs(point[variable] - value))
            assert nearest[variable] == pytest.approx(float(value), abs=1e-9)
            if variable == "psi":
                assert (each.get_linestyle() == "-") == (nearest.kind == "sink")


@pytest.mark.parametrize("version", VERSIONS)
def test_bifurcations_and_the_sinks_between_them_are_named(version: Version) -> None:
    system = PhiNet(version=version)
    whole = bifurcations(system, 1e-5, 0.5)
    above = diagram(system).axes[0]
    words = " ".join(text.get_text() for text in above.texts)
    crosses = {float(np.asarray(each.get_xdata())[0]) for each in above.lines if each.get_marker() == "X"}
    assert crosses == {each.rho for each in whole.points} | {0.1}
    for each, n in zip(whole.points, whole.sinks, strict=False):
        assert f"{each.rho:.4g}" in words
        assert f"{n} sink" in words


def test_the_map_has_the_number_of_sinks_in_every_cell_and_their_names_stand_inside() -> None:
    system = PhiNet(version="published")
    (axes,) = sink_diagram(system, 1e-4, 0.5, 3.0).axes
    counts = np.asarray(axes.collections[0].get_array())
    rhos, sigma2s = np.geomspace(1e-4, 0.5, 400), np.linspace(0, 3, 101)
    random = np.random.default_rng(0)
    for row, column in zip(random.integers(0, 101, 40), random.integers(0, 400, 40), strict=True):
        there = PhiNet(sigma2=float(sigma2s[row]), rho=float(rhos[column]), version="published")
        assert counts[row, column] == sum(point.kind == "sink" for point in equilibria(there))
    for text in axes.texts:
        rho, sigma2 = text.get_position()
        there = PhiNet(sigma2=sigma2, rho=rho, version="published")
        assert text.get_text().split()[0] == str(sum(point.kind == "sink" for point in equilibria(there)))
