"""The training loop's own parts."""

from phinets.training.loop import Pace, SlowdownWatch


def messages(speeds: list[float], seconds: float = 61.0, before: Pace | None = None) -> list[bool]:
    """Whether the watch speaks after each stretch of training at a constant speed."""
    pace, watch = before or Pace(), SlowdownWatch()
    watch(pace)
    heard = []
    for speed in speeds:
        pace.seconds += seconds
        pace.images += round(speed * seconds)
        heard.append(watch(pace) is not None)
    return heard


def test_training_that_falls_below_half_of_its_first_minute_says_so_once() -> None:
    assert messages([1000, 900, 510, 490, 100, 1000, 100]) == [False, False, False, True, False, False, False]


def test_the_first_minute_is_the_measure_and_what_came_before_a_resume_is_not() -> None:
    assert messages([100, 1000, 60, 49]) == [False, False, False, True]
    assert messages([100, 90], before=Pace(images=10**6, seconds=100.0)) == [False, False]


def test_a_short_pause_within_a_minute_is_no_slowdown() -> None:
    assert not any(messages([1000, 1000, 1000, 1000, 400, 1000, 1000, 1000], seconds=20.0))
