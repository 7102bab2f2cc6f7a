"""The metrics of an accuracy matrix, by hand and by their laws."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.continual.metrics import average, backward_transfer, forgetting, forward_transfer, stages

NAN = float("nan")
A = np.array(
    [
        [90.0, 60.0, 52.0],
        [70.0, 88.0, 58.0],
        [75.0, 80.0, 94.0],
    ]
)
B = np.array([55.0, 51.0, 50.0])


def matrices(n: int = 20, tasks: int = 5) -> list[NDArray[np.float64]]:
    return list(np.random.default_rng(0).uniform(0, 100, (n, tasks, tasks)))


def test_the_average_is_the_mean_of_the_last_row() -> None:
    assert average(A) == pytest.approx((75 + 80 + 94) / 3)


def test_the_stages_are_means_over_the_tasks_that_have_come() -> None:
    assert stages(A) == pytest.approx([90, (70 + 88) / 2, (75 + 80 + 94) / 3])


def test_forgetting_by_the_paper_s_formula_is_from_the_best_before_the_last_task() -> None:
    assert forgetting(A, "max") == pytest.approx(((90 - 75) + (88 - 80)) / 2)


def test_the_paper_s_maximum_also_looks_at_what_was_known_before_a_task_came() -> None:
    early = np.array([[90.0, 85.0, 0.0], [70.0, 82.0, 0.0], [75.0, 80.0, 94.0]])
    assert forgetting(early, "max") == pytest.approx(((90 - 75) + (85 - 80)) / 2)
    assert forgetting(early, "diag") == pytest.approx(((90 - 75) + (82 - 80)) / 2)


def test_forgetting_by_ucl_s_code_is_from_right_after_the_task() -> None:
    rising = np.array([[60.0, 0.0, 0.0], [80.0, 70.0, 0.0], [75.0, 65.0, 90.0]])
    assert forgetting(rising, "diag") == pytest.approx(((60 - 75) + (70 - 65)) / 2)
    assert forgetting(rising, "max") == pytest.approx(((80 - 75) + (70 - 65)) / 2)


def test_what_grew_until_the_end_has_negative_forgetting_by_both_rules() -> None:
    growing = np.array([[50.0, 40.0], [70.0, 80.0]])
    assert forgetting(growing, "max") == forgetting(growing, "diag") == -20.0


def test_backward_transfer_is_what_later_tasks_added() -> None:
    assert backward_transfer(A) == pytest.approx(((75 - 90) + (80 - 88)) / 2)


def test_forward_transfer_is_what_was_known_of_a_task_before_it_came() -> None:
    assert forward_transfer(A, B) == pytest.approx(((60 - 51) + (58 - 50)) / 2)


@pytest.mark.parametrize("a", matrices(5))
def test_the_rules_agree_with_loops_over_the_printed_sums(a: NDArray[np.float64]) -> None:
    T = len(a)
    by_max = sum(max(a[t, i] - a[T - 1, i] for t in range(T - 1)) for i in range(T - 1)) / (T - 1)
    by_diag = sum(a[i, i] - a[T - 1, i] for i in range(T - 1)) / (T - 1)
    ahead = sum(a[i - 1, i] - 3.0 * i for i in range(1, T)) / (T - 1)
    assert forgetting(a, "max") == pytest.approx(by_max)
    assert forgetting(a, "diag") == pytest.approx(by_diag)
    assert forward_transfer(a, 3.0 * np.arange(T)) == pytest.approx(ahead)


@pytest.mark.parametrize("a", matrices(5))
def test_the_maximum_is_never_below_the_diagonal_and_transfer_is_its_negative(a: NDArray[np.float64]) -> None:
    assert forgetting(a, "max") >= forgetting(a, "diag") == -backward_transfer(a)


@pytest.mark.parametrize("a", matrices(5))
def test_what_every_row_gains_on_a_task_changes_nothing_but_the_average(a: NDArray[np.float64]) -> None:
    shift = np.array([3.0, -1.0, 4.0, 1.0, -5.0])
    for rule in ("max", "diag"):
        assert forgetting(a + shift, rule) == pytest.approx(forgetting(a, rule))
    assert forward_transfer(a + shift, B5 + shift) == pytest.approx(forward_transfer(a, B5))
    assert average(a + shift) == pytest.approx(average(a) + shift.mean())


B5 = np.linspace(40, 60, 5)


@pytest.mark.parametrize("a", matrices(5))
def test_the_order_of_the_rows_between_changes_the_paper_s_rule_in_nothing(a: NDArray[np.float64]) -> None:
    mixed = np.concatenate([a[:-1][[2, 0, 3, 1]], a[-1:]])
    assert forgetting(mixed, "max") == pytest.approx(forgetting(a, "max"))
    assert average(mixed) == average(a)
    assert forgetting(mixed, "diag") != pytest.approx(forgetting(a, "diag"))


@pytest.mark.parametrize("a", matrices(5))
def test_the_last_task_itself_is_never_forgotten(a: NDArray[np.float64]) -> None:
    other = a.copy()
    other[:, -1] = 7.0
    assert forgetting(other, "max") == forgetting(a, "max")
    assert forgetting(other, "diag") == forgetting(a, "diag")


def test_of_one_task_nothing_is_forgotten_or_transferred() -> None:
    one = [[80.0]]
    assert average(one) == 80.0
    assert stages(one).tolist() == [80.0]
    for metric in (
        forgetting,
        backward_transfer,
        lambda a: forward_transfer(a, [50.0]),
        lambda a: forgetting(a, "diag"),
    ):
        assert math.isnan(metric(one))


def test_a_task_without_labels_takes_no_part() -> None:
    blind = np.insert(np.insert(A, 1, [1.0, 2.0, 3.0], axis=0), 1, NAN, axis=1)
    b = np.insert(B, 1, NAN)
    assert average(blind) == average(A)
    assert forgetting(blind, "diag") == forgetting(A, "diag")
    assert stages(blind)[[0, 2, 3]] == pytest.approx(stages(A))
    assert forgetting(blind, "max") == forgetting(A, "max")
    assert forward_transfer(blind, b) == pytest.approx(((2 - 51) + (58 - 50)) / 2)


def test_a_task_that_was_appended_later_is_not_asked_about_in_earlier_rows() -> None:
    grown = np.full((4, 4), NAN)
    grown[:3, :3] = A
    grown[3] = [70.0, 78.0, 90.0, 85.0]
    assert average(grown) == pytest.approx((70 + 78 + 90 + 85) / 4)
    assert stages(grown)[:3] == pytest.approx(stages(A))
    assert forgetting(grown, "max") == pytest.approx(((90 - 70) + (88 - 78) + (94 - 90)) / 3)
    assert forward_transfer(grown, [*B, NAN]) == pytest.approx(forward_transfer(A, B))


def test_where_nothing_has_labels_nothing_is_known() -> None:
    nothing = np.full((3, 3), NAN)
    found = [
        average(nothing),
        forgetting(nothing),
        backward_transfer(nothing),
        forward_transfer(nothing, B),
        *stages(nothing),
    ]
    assert all(math.isnan(value) for value in found)


@pytest.mark.parametrize("metric", [average, stages, forgetting, backward_transfer])
@pytest.mark.parametrize("shape", [(2, 3), (4,), (0, 0)])
def test_what_is_no_square_is_refused(metric: Callable[[object], object], shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="a row and a column for each task"):
        metric(np.zeros(shape))


def test_the_untrained_accuracies_must_be_as_many_as_the_tasks() -> None:
    with pytest.raises(UserError, match="3 tasks"):
        forward_transfer(A, [50.0, 50.0])
