import pytest

from handful.extraction.extract import extract, skipped_items
from handful.extraction.items import list_items
from handful.extraction.on_ray import on_ray
from tests.clusters_at_hand import small_cluster
from tests.items_at_hand import image_folder, slowly, small_backbone


@pytest.fixture
def items(tmp_path):
    folder = image_folder(tmp_path / "images", n_classes=4, each=10)
    (folder / "class2" / "05.png").write_bytes(b"")
    return list_items(folder)


@pytest.mark.slow
def test_the_same_bytes_when_a_node_dies(ray, tmp_path, items):
    expected = extract(items, small_backbone(), tmp_path / "here", shard_size=2, batch_size=2)
    book = tmp_path / "book"
    book.mkdir()
    cluster = small_cluster()
    try:
        doomed = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        killed = []

        def kill_once_both_work(done, total):
            if not killed and (book / doomed.node_id).exists():
                cluster.remove_node(doomed, allow_graceful=False)
                killed.append(done)

        backbone = slowly(small_backbone(), book, seconds=0.3)
        bank = extract(
            items,
            backbone,
            tmp_path / "there",
            shard_size=2,
            batch_size=2,
            executor=on_ray(),
            on_progress=kill_once_both_work,
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert killed
    assert killed[0] < len(items)
    started = {file.name: file.read_text().count("started") for file in book.iterdir()}
    assert len(started) == 2
    # Both nodes worked. What the dead one was at is begun again, unless it died between two shards.
    assert sum(started.values()) >= len(items) // 2
    assert bank.content_hash == expected.content_hash
    assert skipped_items(bank) == skipped_items(expected) != []


@pytest.mark.slow
def test_without_a_cluster_one_is_started_here_and_ended(ray, tmp_path, items):
    bank = extract(items, small_backbone(), tmp_path / "there", shard_size=8, executor=on_ray())
    assert bank.content_hash == extract(items, small_backbone(), tmp_path / "here", shard_size=8).content_hash
    assert not ray.is_initialized()
