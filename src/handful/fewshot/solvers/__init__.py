"""What methods share: tasks in centred coordinates, alternation, descents, outliers, and features beyond reach."""
