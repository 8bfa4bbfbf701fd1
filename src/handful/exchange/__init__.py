"""Files of other tools, from their format to their format: what is not ours comes back untouched and in order."""
