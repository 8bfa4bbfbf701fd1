"""Values of odd types through the public names, in a process of its own.

With HANDFUL_CHECK_SHAPES annotations are checked at run time here, so that such values would never arrive.
"""

import subprocess
import sys

PROGRAM = """
import numpy as np, handful
from handful import fewshot
from handful.errors import HandfulError

rng = np.random.default_rng(0)
X, y = rng.normal(size=(20, 16)).repeat(5, 0) + 0.3 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
task = fewshot.TaskBatch.single(X, y, X[:3], np.int64(20))

def attempt(what, action):
    try:
        print(f"{what}: {action()}")
    except HandfulError as error:
        print(f"{what}: {type(error).__name__}: {error}")

attempt("n_classes", lambda: (task.n_classes, type(task.n_classes).__name__))
for n_classes in (2.5, "20", True, None):
    attempt("n_classes", lambda: fewshot.TaskBatch.single(X, y, X[:3], n_classes))
for name, value in (("max_iter", "3"), ("max_iter", 2.5), ("max_iter", True), ("tol", float("nan")), ("tol", "0.1")):
    for method in ("paddle", "soft_kmeans"):
        attempt(method, lambda: fewshot.solve(method, task, **{name: value}))
attempt("numpy", lambda: fewshot.solve("paddle", task, max_iter=np.int32(7), tol=np.float32(0)).n_iter.tolist())
spec = fewshot.TaskSpec(fewshot.ShotsPerClass(np.int64(2)), fewshot.UniformOverPool(np.uint8(1)), n_query=np.int16(3))
attempt("spec", lambda: spec)
for shots in (2.5, "2"):
    attempt("shots", lambda: fewshot.ShotsPerClass(shots))
attempt("method", lambda: fewshot.solve(3, task))
attempt("no tasks", lambda: fewshot.gather(handful.FeatureBank.from_arrays(X, y, [str(k) for k in range(20)]),
                                           fewshot.draw(y, spec, 0, range(0))))
"""

EXPECTED = """
n_classes: (20, 'int')
n_classes: TaskError: n_classes must be a whole number of at least 1, got 2.5
n_classes: TaskError: n_classes must be a whole number of at least 1, got '20'
n_classes: TaskError: n_classes must be a whole number of at least 1, got True
n_classes: TaskError: n_classes must be a whole number of at least 1, got None
paddle: OptionError: max_iter must be a whole number, got '3'
soft_kmeans: OptionError: max_iter must be a whole number, got '3'
paddle: OptionError: max_iter must be a whole number, got 2.5
soft_kmeans: OptionError: max_iter must be a whole number, got 2.5
paddle: OptionError: max_iter must be a whole number, got True
soft_kmeans: OptionError: max_iter must be a whole number, got True
paddle: OptionError: tol must be a finite number, got nan
soft_kmeans: OptionError: tol must be a finite number, got nan
paddle: OptionError: tol must be a finite number, got '0.1'
soft_kmeans: OptionError: tol must be a finite number, got '0.1'
numpy: [7]
spec: TaskSpec(support=ShotsPerClass(shots=2), query=UniformOverPool(k_eff=1), n_query=3, n_classes=None, unknown=None)
shots: TaskError: shots must be a whole number of at least 1, got 2.5
shots: TaskError: shots must be a whole number of at least 1, got '2'
method: UnknownNameError: no method is called 3; choose from """


def test_odd_values_are_taken_for_what_they_are_or_refused_with_a_sentence():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(EXPECTED.lstrip())
    assert ended.stdout.splitlines()[-1].startswith("no tasks: TaskError: ")
