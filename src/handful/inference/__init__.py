"""What methods share: tasks in centred coordinates, calibration, proportions, iterations, working sets, descents."""
