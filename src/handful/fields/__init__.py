"""Fields of work: for each a folder with the formats of its files and its rules; other packages add theirs alike."""
