"""The same server as a Ray Serve deployment: HANDFUL_CATALOGUE=intents.safetensors python serve_on_ray.py."""

import os
from typing import Any

import ray
from ray import serve


def server() -> Any:
    """Import the server where a replica runs: the catalogue is loaded there, and nothing is pickled."""
    from server import app

    return app


deployment = serve.deployment(
    num_replicas=2,  # processes, each with a core and a catalogue of its own
    ray_actor_options={"num_cpus": 1},
    max_ongoing_requests=16,  # per replica
    max_queued_requests=16,  # beyond these, Serve answers 503
)(serve.ingress(server)())

if __name__ == "__main__":
    os.environ.setdefault("HANDFUL_THREADS", "1")
    os.environ.setdefault("RAY_worker_niceness", "0")  # otherwise replicas give way to all other programs
    ray.init(address="local", include_dashboard=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ.get("PORT", 8000))})
    serve.run(deployment.bind(), blocking=True)
