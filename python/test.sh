#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh environment and runs its tests there.
#
# Tools (hatchling, pytest, numpy, and torch if GODWIT_TORCH=1) are installed once, into
# GODWIT_PYTHON (default: a folder of the user's cache), and seen from the fresh environment.
set -euo pipefail
cd "$(dirname "$0")"
PYTHON=${PYTHON:-python3}
tools=${GODWIT_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/godwit/python}

skip() {
	echo "SKIPPED: tests of the Python package, as $1"
	exit 0
}

[ "$(uname -s)" = Linux ] || skip "the library is built for Linux only"
"$PYTHON" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
	skip "there is no Python of version 3.9 or later with venv (PYTHON=$PYTHON)"
command -v "$(${GO:-go} env CC)" >/dev/null || skip "there is no C compiler"
if [ ! -x "$tools/bin/python" ]; then
	"$PYTHON" -m venv "$tools"
fi
if ! "$tools/bin/python" -c 'import hatchling, numpy, pytest' 2>/dev/null; then
	"$tools/bin/python" -m pip install -q hatchling numpy pytest >/dev/null 2>&1 ||
		skip "hatchling, numpy and pytest cannot be installed into $tools"
fi
if [ "${GODWIT_TORCH:-}" = 1 ] && ! "$tools/bin/python" -c 'import torch' 2>/dev/null; then
	"$tools/bin/python" -m pip install -q 'torch>=2.4' >/dev/null 2>&1 || echo "torch could not be installed into $tools"
fi
"$tools/bin/python" -c 'import torch' 2>/dev/null ||
	echo "SKIPPED: tests of godwit.nn and godwit.optim, as torch is not in $tools (GODWIT_TORCH=1 installs it, 3 GB)"

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$tools/bin/python" -m hatchling build -t wheel -d "$fresh" >/dev/null
"$tools/bin/python" -m venv "$fresh/env"
"$fresh/env/bin/python" -m pip install -q --no-index --no-deps "$fresh"/*.whl
"$tools/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' \
	>"$("$fresh/env/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/tools.pth"
here=$PWD
cd "$fresh"
"$fresh/env/bin/python" -m pytest -q -p no:cacheprovider --rootdir "$here/tests" "$here/tests" "$@"
