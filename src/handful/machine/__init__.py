"""System services: complete files, locks, safetensors, optional packages, threads, a Ray cluster."""
