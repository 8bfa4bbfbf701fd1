"""Runs that survive: numbered parts with checksums, and the file that says what a run was started with."""
