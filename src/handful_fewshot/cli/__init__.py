"""The commands bench, report, tasks and train of `handful`, which finds them by their entry points."""
