"""Files of other tools, read and written in their own formats; everything else in them stays as it was."""
