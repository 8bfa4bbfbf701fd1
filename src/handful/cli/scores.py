"""`handful classify --scores`: the scores of another tool to joint labels, in the tool's own format."""

from __future__ import annotations

from pathlib import Path

from handful.classification.groups import ClassifiedGroups, group_table_path
from handful.classification.groups_page import write_groups_page
from handful.classification.page import write_batch_page
from handful.classification.predictions import check_ending
from handful.classification.scores import classify_scores, write_annotations, write_scores, writes_back
from handful.cli.printed import print_batch, print_groups
from handful.cli.terminal import waiting
from handful.errors import OptionError


def label_scores(
    scores: Path,
    out: Path,
    report: Path | None,
    group_by: list[str] | None,
    sites: Path | None,
    sequence: str | None,
    candidates: Path | None,
    prior: Path | None,
    annotate: Path | None,
) -> None:
    """Label, write and print; the arguments are the options of the command."""
    if annotate is not None and sites is None:
        raise OptionError("--annotate writes into a copy of the file of sites; name that file with --sites")
    same = writes_back(scores, out)
    if not same:
        check_ending(out)
    with waiting(f"labelling {scores}"):
        found = classify_scores(
            scores, group_by=group_by or None, sites=sites, sequence=sequence, candidates=candidates, prior=prior
        )
        write_scores(found, scores, out)
        if annotate is not None and sites is not None:
            write_annotations(found, scores, sites, annotate)
        if isinstance(found, ClassifiedGroups):
            if report is not None:
                write_groups_page(found, report, title=scores.stem)
        elif report is not None:
            write_batch_page(found, report, title=scores.stem)
    written = [(out, f"{scores.name} with joint labels" if same else "predictions, one row per item")]
    if annotate is not None:
        written.append((annotate, "labels as annotations of the sites' files"))
    if report is not None:
        written.append((report, "a page about them"))
    if not isinstance(found, ClassifiedGroups):
        print_batch(found, written)
        return
    written.insert(1, (group_table_path(out), "groups and their classes"))
    print_groups(found, written)
