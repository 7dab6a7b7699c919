"""Run in every kernel of a tutorial: ``%%bash`` as a plain program sees it, without a terminal.

IPython's own ``%%bash`` cuts the output into pieces, ``!`` gives the command a terminal, in which
progress bars are drawn, and neither stops the build when the command fails.
"""

import os
import subprocess

from IPython import get_ipython

for name in ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):  # set by the kernel
    os.environ.pop(name, None)


def bash(line: str, cell: str) -> None:
    """Run a cell as a script, show what it printed, and raise an error if it failed."""
    done = subprocess.run(
        ["bash", "-euc", cell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(done.stdout, end="")
    done.check_returncode()


get_ipython().register_magic_function(bash, "cell")
