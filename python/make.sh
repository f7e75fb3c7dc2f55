#!/usr/bin/env bash
# usage: python/make.sh wheel   builds the wheel into python/dist and has auditwheel look at it
#        python/make.sh test    builds it, installs it into a fresh environment and runs its tests there
#        python/make.sh tools   only installs the tools
#
# Tools (hatchling, ziglang, auditwheel, pytest, numpy, and torch if GODWIT_TORCH=1) are installed
# once, into GODWIT_PYTHON (default: a folder of the user's cache). The fresh environment sees them.
set -euo pipefail
cd "$(dirname "$0")"
PYTHON=${PYTHON:-python3}
tools=${GODWIT_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/godwit/python}
what=${1:-test}

skip() {
	if [ "$what" = wheel ]; then
		echo "the wheel cannot be built: $1" >&2
		exit 1
	fi
	echo "SKIPPED: tests of the Python package: $1"
	exit 0
}

# need NAMES MODULES installs packages into the tools, unless their modules are there. Python compiles what it loads: of torch, a small part.
need() {
	"$tools/bin/python" -c "import $2" 2>/dev/null || "$tools/bin/python" -m pip install -q --no-compile $1 >/dev/null 2>&1
}

[ "$(uname -s)" = Linux ] || skip "the library is built for Linux only"
"$PYTHON" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
	skip "there is no Python of version 3.9 or later with venv (PYTHON=$PYTHON)"
mkdir -p "$(dirname "$tools")"
exec 9>"$tools.lock" # one at a time installs tools
flock 9
[ -x "$tools/bin/python" ] || "$PYTHON" -m venv "$tools"
need "hatchling numpy pytest" hatchling,numpy,pytest || skip "hatchling, numpy and pytest cannot be installed into $tools"
need "ziglang auditwheel" ziglang,auditwheel || command -v "$(${GO:-go} env CC)" >/dev/null ||
	skip "there is no C compiler, and ziglang cannot be installed into $tools"

if [ "${GODWIT_TORCH:-}" = 1 ]; then
	need "torch>=2.4" torch || echo "torch could not be installed into $tools"
	need "torch_geometric pyarrow" torch_geometric,pyarrow || echo "torch_geometric and pyarrow, for examples/python, could not be installed into $tools"
	need "onnx onnxscript onnxruntime safetensors mypy" onnx,onnxscript,onnxruntime,safetensors,mypy ||
		echo "onnx, onnxscript, onnxruntime, safetensors and mypy, for tests of exports and types, could not be installed into $tools"
fi
exec 9>&-
if [ "$what" = tools ]; then
	exit 0
fi

if [ "$what" = wheel ]; then
	rm -rf dist
	"$tools/bin/python" -m hatchling build -t wheel -d dist
	if "$tools/bin/python" -c 'import auditwheel' 2>/dev/null; then
		"$tools/bin/python" -m auditwheel show dist/*.whl
	fi
	ls -l dist
	exit 0
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
"$fresh/env/bin/python" -m pytest -q -rs -p no:cacheprovider --rootdir "$here/tests" "$here/tests"
