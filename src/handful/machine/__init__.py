"""The machine underneath: whole files, locks, safetensors, optional packages, threads, a Ray cluster."""
