import subprocess
import sys

import handful


def test_the_module_is_the_command():
    ran = subprocess.run([sys.executable, "-m", "handful", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"handful {handful.__version__}\n", "")
