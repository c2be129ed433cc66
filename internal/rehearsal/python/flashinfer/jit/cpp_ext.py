"""Builds a module with ninja."""

import os
import subprocess

from sglang_rehearsal import scaled
from sglang_rehearsal.acts import program


def run_ninja(workdir, ninja_file, verbose):
    """Silent while it builds. The output shows only if the build fails."""
    command = [program("ninja"), "%.2f" % scaled(8)]
    if os.environ.get("SGLAUNCH_REHEARSAL_BUILD"):
        command.append(os.environ["SGLAUNCH_REHEARSAL_BUILD"])
    try:
        subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=workdir, check=True, text=True)
    except subprocess.CalledProcessError as e:
        raise RuntimeError("Ninja build failed. Ninja output:\n" + e.output) from e
