#!/usr/bin/env bash
# The product on another Python, in a Debian of its own: bash tools/on_python.sh SUITE FOLDER, as root, with debootstrap.
#
# trixie has Python 3.13, sid has 3.14. FOLDER keeps the Debian for the next time. The newest packages that pip finds are
# installed, without the lock file, and the tests of the product without PyTorch run, those of the model, of sessions, plots and the
# review, a catalogue made on Python 3.11, and the examples in docstrings; with the encoding of a terminal that knows ASCII alone.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=$1 root=$2

if [ ! -x "$root/usr/bin/python3" ]; then
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$root"
fi
# What pip needs to reach its index as it does here: certificates, settings, and folders that they name; tests open terminals.
cp -r /etc/ssl/certs "$root/etc/ssl/"
settings=$(pip config list | sed -n "s/.*\.\(cert\|index-url\|extra-index-url\|find-links\)='\(.*\)'/\1 = \2/p" | sort -u -t= -k1,1)
printf '[global]\n%s\n' "$settings" > "$root/etc/pip.conf"
for folder in $(pip config list | sed -n "s/.*\(index-url\|find-links\)='\(.*\)'/\2/p" | tr ' ' '\n' | sed 's#^file://##; s#/simple/*$##' |
  grep '^/' | sort -u) /dev/pts; do
  mkdir -p "$root$folder"
  mountpoint -q "$root$folder" || mount --bind "$folder" "$root$folder"
done
rm -rf "$root/handful"
mkdir "$root/handful"
git archive HEAD | tar -x -C "$root/handful"
chroot "$root" bash -euc '
  cd /handful
  [ -x /venv/bin/python ] || python3 -m venv /venv
  /venv/bin/python -m pip install --quiet ".[images,plots,review]" pandas pytest pyarrow hypothesis httpx2
  /venv/bin/python -m pip list 2>/dev/null | grep -iE "^(numpy|scipy|scikit-learn|onnxruntime|pyarrow|matplotlib|starlette|uvicorn) "
  export PYTHONUTF8=0 LC_ALL=C OMP_NUM_THREADS=1
  run="/venv/bin/python -m pytest --quiet -p no:cacheprovider -c /dev/null --rootdir $PWD"
  $run --noconftest tests/light.py
  tests="tests/model tests/estimators tests/session tests/plots tests/review tests/workers tests/old_files/test_version_0_6_0.py"
  HANDFUL_CORE=1 PYTHONPATH=. $run -W ignore::pytest.PytestUnknownMarkWarning -m "not slow and not beyond" $tests
  $run --noconftest --doctest-modules -k "not hugging_face" \
    --pyargs handful.model handful.estimators handful.fitted handful.reading handful.workers handful.progress handful.machine
  /venv/bin/python --version
'
