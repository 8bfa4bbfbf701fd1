"""What methods share: tasks in centred coordinates, heads, presence, calibration, iteration, working sets, descents."""
