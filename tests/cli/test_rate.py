"""The column says nothing before there is a speed, then how many a second."""

from rich.progress import Progress

from handful.cli.rate import Rate


def test_rate_of_what_is_counted():
    clock = iter(range(100))
    progress = Progress(disable=True, get_time=lambda: float(next(clock)))
    progress.add_task("", total=40)
    (task,) = progress.tasks
    assert Rate("items").render(task).plain == ""
    for _ in range(4):
        progress.advance(task.id, 10)
    assert Rate("items").render(task).plain.endswith(" items/s")
    assert float(Rate("items").render(task).plain.split()[0]) > 0
