"""The service of examples/service answers as if every caller were alone, keeps its limits and survives being killed."""

import importlib.util
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import handful
from handful.estimators import BatchClassifier

for needed in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(needed)

pytestmark = pytest.mark.beyond
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "perf")]
load = importlib.import_module("service_load")

# Times and threads of the usual server: nothing times out on a busy machine.
USUAL = {"SECONDS": 60, "THREADS": 2, "MOST_REQUESTS": 16}
# The bodies of 200 callers have 120 MB, and several times as much once they are read. What a bounded queue takes is
# 16 of them, and the arrays of two.
MOST_GROWTH = 80


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return load.intents(tmp_path_factory.mktemp("http"))


@pytest.fixture(scope="module")
def expected(material):
    """Answers without a server, one batch at a time."""
    catalogue, batches = material
    classifier = BatchClassifier.load(catalogue)
    found = [classifier.infer(batch) for batch in batches]
    return [
        {
            "labels": one.labels.tolist(),
            "certainty": one.certainty.tolist(),
            "present_classes": one.present_classes.tolist(),
            "unknown": None if np.isnan(one.unknown).any() else one.unknown.tolist(),
            "diagnostics": [{"name": seen.name, "message": seen.message} for seen in one.diagnostics],
            "model": classifier.model_.content_hash,
        }
        for one in found
    ]


@pytest.fixture(scope="module")
def server(material):
    """Shared, because a start takes seconds; the last test kills it."""
    with load.serving(load.uvicorn, material[0], **USUAL) as running:
        yield running


def test_the_examples_are_short():
    for path in (ROOT / "examples" / "service").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 220


def test_answers_are_those_of_the_classifier_bit_for_bit(server, material, expected):
    for batch, answer in zip(material[1][:2], expected, strict=False):
        assert server.ask("/label", load.as_json(batch)).content == answer
        assert server.ask("/label", load.as_npy(batch), load.NPY).content == answer


def test_two_callers_at_once_get_what_each_gets_alone(server, material, expected):
    bodies = [load.as_npy(batch) for batch in material[1][:2]]
    assert expected[0] != expected[1]
    for _ in range(3):
        answers, _ = load.at_once(server, bodies, load.NPY)
        assert [answer.content for answer in answers] == expected[:2]


def test_overload_is_refused_and_takes_no_memory(server, material, expected):
    bodies = [load.as_json(batch) for batch in material[1]]
    load.at_once(server, bodies)
    before = server.megabytes()
    with load.watched(server) as health:
        answers, _ = load.at_once(server, bodies * 25)
    assert len(answers) == 200
    assert {answer.status for answer in answers} == {200, 503}
    for answer, alone in zip(answers, expected * 25, strict=True):
        if answer.status == 200:
            assert answer.content == alone
        else:
            assert int(answer.retry_after) > 0
            assert answer.content == {"detail": "16 requests are in progress; try again soon."}
    assert sum(answer.status == 200 for answer in answers) >= USUAL["MOST_REQUESTS"]
    assert server.megabytes("VmHWM") - before < MOST_GROWTH
    # The event loop is free: no answer about health waits for the batches before it.
    served = max(answer.seconds for answer in answers if answer.status == 200)
    assert len(health) >= 2
    assert sorted(health)[len(health) // 2] < served / 2


def rows_of(value, n_rows=1, dim=384):
    return json.dumps([[value] * dim] * n_rows).encode()


REFUSED = [
    (rows_of(0, 1001), load.JSON, 413, "A request may have 1000 rows, got 1001"),
    (b" " * (8 * 2**20 + 1), load.JSON, 413, "A request may have 8388608 bytes"),
    (b"", load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"[[1, 2", load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"[" * 100_000, load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"[[1, 2], [3]]", load.JSON, 422, "The body must be a JSON list of vectors"),
    (b'{"rows": 1}', load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"7", load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"[]", load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"[1, 2]", load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"[[1, 2]] 3", load.JSON, 422, "The body must be a JSON list of vectors"),
    (b"[[1, 2],]", load.JSON, 422, "The body must be a JSON list of vectors"),
    (rows_of(1, dim=100_000), load.JSON, 422, "The body must be a JSON list of vectors"),
    (rows_of(1, dim=383), load.JSON, 422, "X has 383 features, but BatchClassifier is expecting 384"),
    (rows_of(float("nan")), load.JSON, 422, "contains NaN"),
    (rows_of(float("inf")), load.JSON, 422, "contains infinity"),
    (rows_of(None), load.JSON, 422, "contains NaN"),
    (rows_of(1e300), load.JSON, 422, "not finite"),
    (load.as_npy(np.zeros((1001, 384))), load.NPY, 413, "A request may have 1000 rows, got 1001"),
    (load.as_npy(np.zeros((2, 384)))[:-1], load.NPY, 422, "or a .npy file"),
    (load.as_npy(np.array([["1"] * 384])), load.NPY, 422, "or a .npy file"),
    (load.as_npy(np.zeros((1, 384), complex)), load.NPY, 422, "or a .npy file"),
    (load.as_npy(np.array([[None] * 384])), load.NPY, 422, "allow_pickle=False"),
]


def test_what_cannot_be_labelled_is_refused_with_a_sentence(server):
    for body, kind, status, sentence in REFUSED:
        answer = server.ask("/label", body, kind)
        assert (answer.status, answer.retry_after) == (status, None), body[:80]
        assert sentence in answer.content["detail"], body[:80]


def test_a_header_that_asks_for_much_takes_no_memory(server):
    before = server.megabytes("VmHWM")
    promised = load.as_npy(np.zeros((2, 384))).replace(b"(2, 384), }        ", b"(9999999, 384), }  ")
    assert b"9999999" in promised
    answer = server.ask("/label", promised, load.NPY)
    assert answer.status == 422
    assert server.megabytes("VmHWM") - before < MOST_GROWTH


def test_no_call_reads_more_json_than_one_vector(material, expected, monkeypatch):
    monkeypatch.setenv("HANDFUL_MODEL", str(material[0]))
    found = importlib.util.spec_from_file_location("service", ROOT / "examples" / "service" / "service.py")
    module = importlib.util.module_from_spec(found)
    with warnings.catch_warnings():
        found.loader.exec_module(module)
    read = []

    def loads(text):
        read.append(len(text))
        return json.loads(text)

    monkeypatch.setattr(module, "json", SimpleNamespace(loads=loads, dumps=json.dumps))
    body = json.dumps(material[1][0].tolist(), indent=1).encode()
    assert json.loads(module.labelled(bytearray(body), False, float("inf"))) == expected[0]
    assert len(read) == len(material[1][0])
    assert max(read) < 2 * len(body) / len(read)


def half_a_request(server):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=load.PATIENCE)
    connection.sendall(b"POST /label HTTP/1.1\r\nHost: here\r\nContent-Length: 9999\r\n\r\n[[")
    return connection


def is_closed(connection):
    connection.settimeout(load.PATIENCE)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_that_do_not_finish_the_head_of_a_request_are_closed(material, capfd):
    small = {"SECONDS": 0.7, "THREADS": 1, "MOST_REQUESTS": 4, "MOST_ROWS": 10**6, "MOST_BYTES": 10**9}
    with load.serving(load.uvicorn, material[0], **small) as server, ExitStack() as stack:
        there = ("127.0.0.1", server.port)
        slow = [stack.enter_context(socket.create_connection(there, timeout=load.PATIENCE)) for _ in range(50)]
        for connection in slow[:25]:
            connection.sendall(b"POST /label HTTP/1.1\r\nX-a: ")
        for connection in slow[25:]:  # after a request that was answered
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n")
        for connection in slow[25:]:
            connection.sendall(b"POST /la" if b"200 OK" in connection.recv(4096) else b"")
        assert all(map(is_closed, slow[:25]))
        for connection in slow[25:]:
            while not is_closed(connection):  # the rest of the answer about health comes first
                pass
        # Requests that take longer than the limit are answered, and nothing is said about them afterwards.
        many = load.as_npy(np.tile(material[1][0], (400, 1)).astype(np.float16))
        assert 504 in {answer.status for answer in load.at_once(server, [many] * 3, load.NPY)[0]}
        labelled_at_last(server, load.as_npy(material[1][0]))
    assert "never retrieved" not in capfd.readouterr().err


def labelled_at_last(server, body):
    """Ask until there is an answer: on a busy machine even a small batch may take longer than a short limit."""
    give_up = time.monotonic() + load.PATIENCE
    while (answer := server.ask("/label", body, load.NPY)).status != 200:
        assert answer.status in (503, 504)
        assert time.monotonic() < give_up
        time.sleep(0.1)
    return answer.content


def test_a_killed_server_answers_the_same_after_a_restart_and_keeps_time(server, material, expected):
    catalogue, batches = material
    body, kept = load.as_npy(batches[0]), catalogue.read_bytes()
    assert server.ask("/label", body, load.NPY).content == expected[0]
    with half_a_request(server):
        server.process.send_signal(signal.SIGKILL)
        assert server.process.wait() == -signal.SIGKILL
    assert catalogue.read_bytes() == kept

    small = {"SECONDS": 0.7, "THREADS": 1, "MOST_REQUESTS": 1, "MOST_ROWS": 10**6, "MOST_BYTES": 10**9}
    with load.serving(load.uvicorn, catalogue, **small) as again:
        assert labelled_at_last(again, body) == expected[0]

        # A caller that does not send its rows holds the only place until its time is over.
        for _ in range(5):  # on a busy machine its time may be over before the other caller is heard
            with half_a_request(again) as slow:
                refused = again.ask("/label", body, load.NPY)
                assert slow.recv(12) == b"HTTP/1.1 504"
            if refused.status == 503:
                break
        assert (refused.status, refused.retry_after) == (503, "1")
        assert labelled_at_last(again, body) == expected[0]

        # A batch that takes too long holds it until the work is over, not just until its caller is told.
        many = load.as_npy(np.tile(batches[0], (800, 1)).astype(np.float16))
        for _ in range(5):  # on a busy machine its time may be over before all of it has come
            long = again.ask("/label", many, load.NPY)
            assert long.status == 504
            assert long.content["detail"].startswith("No answer within 0.7 seconds")
            if (after := again.ask("/label", body, load.NPY).status) == 503:
                break
        assert after == 503
        assert labelled_at_last(again, body) == expected[0]


def counts(server):
    """Metrics by their names and labels."""
    lines = server.ask("/metrics").content.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_it_says_what_it_did_and_by_which_model(material):
    model, batches = material
    with load.serving(load.uvicorn, model, **USUAL) as server:
        for batch in batches[:2]:
            assert server.ask("/label", load.as_npy(batch), load.NPY).status == 200
        assert server.ask("/label", b"7").status == 422
        noise = np.random.default_rng(0).normal(size=(40, 384))
        assert server.ask("/label", load.as_npy(noise), load.NPY).status == 200
        assert server.ask("/ready").content == {"ready": True}
        told = server.ask("/version").content
        assert told == {"version": handful.__version__, "model": BatchClassifier.load(model).model_.content_hash}
        found = counts(server)
        assert found['handful_requests_total{status="200"}'] == 3
        assert found['handful_requests_total{status="422"}'] == 1
        assert found["handful_items_total"] == 190
        assert found["handful_unknown_items_total"] >= 0
        assert found['handful_diagnostics_total{name="unlike_catalogue"}'] == 1
        assert found["handful_seconds_count"] == 4
        assert found[f'handful_model{{model="{told["model"]}",version="{told["version"]}"}}'] == 1


def until(true):
    give_up = time.monotonic() + load.PATIENCE
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.1)


def test_a_model_that_is_replaced_is_taken_and_one_that_is_broken_is_not(material, tmp_path):
    model, batches = material
    place = tmp_path / "current.model"
    shutil.copy(model, place)
    with load.serving(load.uvicorn, place, **USUAL, LOOK_SECONDS=0.2) as server:
        first = server.ask("/version").content["model"]
        (tmp_path / "broken").write_bytes(model.read_bytes()[:1000])
        (tmp_path / "broken").replace(place)
        until(lambda: counts(server)["handful_refused_models_total"] == 1)
        assert server.ask("/label", load.as_npy(batches[0]), load.NPY).content["model"] == first
        vectors = np.eye(8).repeat(3, 0) + 0.05 * np.random.default_rng(0).normal(size=(24, 8))
        other = BatchClassifier().fit(vectors, np.repeat(list("abcdefgh"), 3))
        other.save(tmp_path / "other.model")
        (tmp_path / "other.model").replace(place)
        until(lambda: server.ask("/version").content["model"] == other.model_.content_hash != first)
        answer = server.ask("/label", load.as_npy(np.eye(8)[[1, 1, 2]]), load.NPY)
        assert answer.content["labels"] == ["b", "b", "c"]
        assert len([name for name in counts(server) if name.startswith("handful_model{")]) == 1


def test_what_puts_it_into_a_container_passes_linters():
    folder = ROOT / "examples" / "service"
    for command in (["hadolint", folder / "Dockerfile"], ["yamllint", "--strict", folder / "compose.yaml"]):
        subprocess.run(command, check=True)
