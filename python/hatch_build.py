"""Builds the library with Go and marks the wheel: it is for every Python 3 of one platform."""

import os
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        library = os.path.join(self.root, "godwit", "libgodwit.so")
        subprocess.run(
            [os.environ.get("GO", "go"), "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", library, "./cmd/libgodwit"],
            cwd=os.path.dirname(self.root),
            env={**os.environ, "CGO_ENABLED": "1"},
            check=True,
        )
        header = library[: -len(".so")] + ".h"  # which Go writes; godwit.h is the one to read
        if os.path.exists(header):
            os.remove(header)
        platform = os.environ.get("GODWIT_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        build_data["artifacts"].append("godwit/libgodwit.so")
