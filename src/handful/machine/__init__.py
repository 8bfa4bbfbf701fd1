"""System services: complete files, folders at URLs, safetensors, optional packages, threads."""
