"""Two processes: a graph in two shards, balanced and trained on by both.

    python examples/torchrun.py [synthetic | amazon-photo | …]

It runs two commands and shows each. On several machines the second is started on each of them,
with torchrun's --nnodes, --node-rank and --rdzv-endpoint, and a folder that all can see.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

name = sys.argv[1] if len(sys.argv) > 1 else "synthetic"
rawlsgcn = ["-m", "rawlsgcn"]
torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]

with tempfile.TemporaryDirectory() as folder:
    shards, model = str(Path(folder) / "shards"), str(Path(folder) / "model")
    training = ["--shards", shards, "--method", "rawlsgcn-grad", "--num-neighbors", "10,10"]
    for command in (
        [sys.executable, *rawlsgcn, "shard", "--dataset", name, "--count", "2", "--out", shards],
        # Shards that are not balanced yet are balanced first, each process with one of them. A
        # worker that dies is started again and goes on from the last checkpoint.
        [*torchrun, "--max-restarts", "3", *rawlsgcn, "train", *training, "--out", model],
    ):
        print("$", shlex.join(["python", *command[1:]]), flush=True)
        subprocess.run(command, check=True)
    print("kept:", ", ".join(sorted(path.name for path in Path(model).iterdir())))
