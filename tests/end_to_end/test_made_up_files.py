"""Made-up files of every format that tools write: joint labels are not worse than those of the model, and all listed.

Sites have two to eight of 120 species, in even or uneven shares. Species come in pairs that look alike, the light of a
site moves all its items, and what a species looks like there moves all items of the species: errors of the model are
shared. The model prefers some species.
"""

import json

import numpy as np
import pytest

from handful.classification.labelled import predictions
from handful.classification.scores import rescore

FILES, SPECIES, DIM, SITES = 20, 120, 16, 3
NAMES = [f"species {number:03}" for number in range(SPECIES)]


def seen(seed, sharpness):
    """Logits, species and site of every item."""
    rng = np.random.default_rng(seed)
    means, liked = rng.normal(size=(SPECIES, DIM)), 0.5 * rng.normal(size=SPECIES)
    means[1::2] = means[::2] + 0.55 * rng.normal(size=(SPECIES // 2, DIM))
    logits, truth, site = [], [], []
    for number in range(SITES):
        here = rng.choice(SPECIES, rng.integers(2, 9), replace=False)
        shares = rng.dirichlet(np.full(len(here), rng.choice([0.5, 1, 5])))
        light, look = 0.35 * rng.normal(size=DIM), 0.45 * rng.normal(size=means.shape)
        y = rng.choice(here, rng.integers(5, 80), p=shares)
        noise = rng.normal(size=(len(y), DIM)) * rng.lognormal(0, 0.4, size=(len(y), 1))
        logits.append(sharpness * (means[y] + light + look[y] + noise) @ means.T)
        logits[-1] += liked - sharpness * (means**2).sum(1) / 2
        truth.append(y)
        site += [f"site {number}"] * len(y)
    return np.concatenate(logits), np.concatenate(truth), site


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def speciesnet(folder, logits, site):
    images = []
    for item, p in enumerate(softmax(logits)):
        best = np.argsort(-p)[:5]
        found = {"classes": [NAMES[k] for k in best], "scores": p[best].round(4).tolist()}
        images.append({"filepath": f"{site[item]}/{item}.jpg", "classifications": found})
    (folder / "predictions.json").write_text(json.dumps({"predictions": images}))
    return folder / "predictions.json"


def megadetector(folder, logits, site):
    images = []
    for item, p in enumerate(softmax(logits)):
        best = [k for k in np.argsort(-p)[:3] if p[k] >= 0.05] or [p.argmax()]
        found = {"category": "1", "conf": 0.9, "bbox": [0, 0, 1, 1]}
        found["classifications"] = [[str(k), round(float(p[k]), 3)] for k in best]
        images.append({"file": f"{site[item]}/{item}.jpg", "detections": [found]})
    categories = {str(k): name for k, name in enumerate(NAMES)}
    (folder / "results.json").write_text(json.dumps({"images": images, "classification_categories": categories}))
    return folder / "results.json"


def sounds(logits, least):
    """Item, species and confidence of every row, as BirdNET gives them above a threshold; the best row always."""
    confidence = 1 / (1 + np.exp(np.quantile(logits.max(1), 0.4) - logits))
    for item, p in enumerate(confidence):
        for k in [k for k in np.argsort(-p)[:10] if p[k] >= least] or [p.argmax()]:
            yield item, NAMES[k], f"{p[k]:.4f}"


def birdnet(folder, logits, site):
    rows = [f"{3 * item},{3 * item + 3},S,{name},{p},{site[item]}/a.wav" for item, name, p in sounds(logits, 0.1)]
    header = "Start (s),End (s),Scientific name,Common name,Confidence,File"
    (folder / "birds.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder / "birds.csv"


def raven(folder, logits, site):
    rows = [f"{3 * item}\t{3 * item + 3}\t{name}\tx\t{p}\t{site[item]}/a.wav" for item, name, p in sounds(logits, 0.25)]
    header = "Begin Time (s)\tEnd Time (s)\tCommon Name\tSpecies Code\tConfidence\tBegin Path"
    (folder / "birds.txt").write_text("\n".join([header, *rows]) + "\n")
    return folder / "birds.txt"


@pytest.mark.beyond
@pytest.mark.parametrize("by_site", [False, True])
@pytest.mark.parametrize("sharpness", [0.3, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("write", [speciesnet, megadetector, birdnet, raven])
def test_joint_labels_are_not_worse_than_those_of_the_model(write, sharpness, by_site, tmp_path):
    ahead = []
    for seed in range(FILES):
        logits, truth, site = seen(seed, sharpness)
        column = "file" if write in (birdnet, raven) else "folder"
        found = rescore(write(tmp_path, logits, site), group_by=column if by_site else None)
        labels = [NAMES.index(name.removeprefix("S_")) for name in predictions(found)["label"]]
        ahead.append((labels == truth).mean() - (logits.argmax(1) == truth).mean())
    assert np.mean(ahead) + 1.96 * np.std(ahead, ddof=1) / FILES**0.5 > 0
