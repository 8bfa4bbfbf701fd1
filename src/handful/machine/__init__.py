"""The machine underneath: files, locks, optional packages, threads. Nothing here knows what a class is."""
