import subprocess
import sys

import pytest

from handful.errors import OptionError
from handful.machine.lock import only_writer

HOLD = """
import sys, time
from pathlib import Path
from handful.errors import OptionError
from handful.machine.lock import only_writer
with only_writer(Path(sys.argv[1]), OptionError):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_and_a_killed_one_lets_go(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OptionError, match="another process is writing to"), only_writer(tmp_path, OptionError):
            pass
        holder.kill()
    with only_writer(tmp_path, OptionError):
        pass


def test_the_lock_is_free_again_after_a_failure(tmp_path):
    with pytest.raises(ValueError, match="inside"), only_writer(tmp_path, OptionError):
        raise ValueError("inside")
    with only_writer(tmp_path, OptionError):
        pass
