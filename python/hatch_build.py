"""Builds the library with Go and marks the wheel: it is for every Python 3 of one platform.

With ziglang as the C compiler the library needs glibc 2.17 only, whatever this system has, and the
wheel is a manylinux_2_17 one. Without, it is for systems like this one.
"""

import importlib.util
import os
import platform
import subprocess
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GLIBC = (2, 17)


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        library = os.path.join(self.root, "godwit", "libgodwit.so")
        env = {**os.environ, "CGO_ENABLED": "1"}
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if "CC" not in env and importlib.util.find_spec("ziglang") and sys.platform == "linux":
            glibc, machine = GLIBC, platform.machine()
            env["CC"] = f"'{sys.executable}' -m ziglang cc -target {machine}-linux-gnu.{glibc[0]}.{glibc[1]}"
            tag = f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"
        subprocess.run(
            [env.get("GO", "go"), "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", library, "./cmd/libgodwit"],
            cwd=os.path.dirname(self.root),
            env=env,
            check=True,
        )
        header = library[: -len(".so")] + ".h"  # which Go writes; godwit.h is the one to read
        if os.path.exists(header):
            os.remove(header)
        build_data["tag"] = f"py3-none-{tag}"
        build_data["pure_python"] = False
        build_data["artifacts"].append("godwit/libgodwit.so")
