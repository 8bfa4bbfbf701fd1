"""What the choices between a method's own paper and PADDLE's public code change: accuracies on the reference tasks.

    python -m tests.fewshot.oracles.public_code_differences

Needs the folder of reference outputs, shared/oracle beside the repository. The features are synthetic and say nothing
about which method is better; they say by how much two versions of one method differ.
"""

import torch

import handful_fewshot as fewshot
from tests.conftest import SHARED
from tests.fewshot.oracles.test_authors_competitors import base_mean, query_labels
from tests.fewshot.oracles.test_authors_predictions import load_tasks

SETS = {"k20_d64_bal5w": 100, "k20_d64_s5": 100, "k20_d512_s5": 50, "k160_d512_s5": 10}
COLUMNS = [
    ("baseline: linear layer, raw (published)", "baseline", "raw", {}),
    ("baseline: linear layer, L2", "baseline", "l2", {}),
    ("baseline: prototypes, L2 (public code)", "baseline", "l2", {"head": "prototypes"}),
    ("baseline: prototypes, raw (submission time)", "baseline", "raw", {"head": "prototypes"}),
    ("baseline_pp: cosine (published)", "baseline_pp", "raw", {}),
    ("bd_cspn: CL2N (published)", "bd_cspn", "cl2n", {}),
    ("bd_cspn: public weights, CL2N", "bd_cspn", "cl2n", {"sharpness": 50.0, "public_code": True}),
    ("bd_cspn: public weights, raw (public code)", "bd_cspn", "raw", {"sharpness": 50.0, "public_code": True}),
    ("pt_map: balanced, α = 0.2 (published)", "pt_map", "pt_map_preprocess", {}),
    ("pt_map: balanced, α = 0.02", "pt_map", "pt_map_preprocess", {"step_size": 0.02}),
    (
        "pt_map: column sums 15, α = 0.02 (public code)",
        "pt_map",
        "pt_map_preprocess",
        {"step_size": 0.02, "column_mass": 15.0},
    ),
    ("laplacian_shot (public code)", "laplacian_shot", "cl2n", {}),
    ("nearest_prototype, CL2N", "nearest_prototype", "cl2n", {}),
    ("prior_em, range scaling", "prior_em", "range_scale_public_code", {}),
]


def main() -> None:
    torch.set_num_threads(1)
    oracle = SHARED / "oracle"
    print(f"| accuracy, % | {' | '.join(f'{name} ({n})' for name, n in SETS.items())} |\n|---|{'---|' * len(SETS)}")
    for title, method, transform, options in COLUMNS:
        cells = []
        for name, n_tasks in SETS.items():
            parameters = {"base_mean": base_mean(oracle, name)} if transform == "cl2n" else {}
            task = fewshot.transform(transform, load_tasks(oracle, name, n_tasks), **parameters)
            predictions = fewshot.solve(method, task, **options).predictions
            cells.append(f"{100 * (predictions == query_labels(oracle, name, n_tasks)).double().mean().item():.1f}")
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
