"""The study of names: what it asks for, and the page."""

import names as study


def rows(gain):
    alone = [{"k_eff": k_eff, "alone": 70.0, "names": [70 + gain, gain, 0.5]} for k_eff in study.K_EFFS]
    other = {method: [65.0, -5.0, 1.0, gain + 5, 1.0] for method in study.RIVALS}
    beside = [
        {"shots": shots, "worth": 1.0, "k_effs": [cell(k_eff, gained) for k_eff in study.K_EFFS]}
        for shots, gained in ((1, 5.0), (5, 1.0))
    ]
    return {"clinc150-minilm": {"alone": alone, "rivals": [{"k_eff": 2, **other}], "beside": beside}}


def cell(k_eff, gained):
    right = {"names": 70.0, "examples": 72.0, "both": 72 + gained, "shuffled": 72.0}
    return {
        "k_eff": k_eff,
        **right,
        "ahead_of_names": [2 + gained, 1.0],
        "ahead_of_examples": [gained, 1.0],
        "shuffled_ahead": [0.0, 0.0],
    }


def test_the_page_has_means_and_the_file_every_cell(monkeypatch):
    monkeypatch.setattr(study, "kept", lambda folder, names: rows(8.0) if folder.name == "confirmation" else {})
    page = study.page()
    assert "| 2 | 70.0 | 78.0 | 65.0 | 65.0 | 65.0 | 72.0 | 77.0 | 72.0 | 73.0 |" in page.table
    assert "| all | 70.0 | 78.0 | – | – | – | 72.0 | 77.0 | 72.0 | 73.0 |" in page.table
    assert "gains 5.0 points on average; added to five, 1.0" in page.shows
    assert len([row for row in page.rows if row["labels"] == "jointly"]) == len(study.K_EFFS)
    assert "confirmation,clinc150-minilm,names alone,2,jointly,78.0,8.0,0.5," in page.tables()["names.csv"]
