"""Sampled against whole-graph training on Amazon-Photo, fan-out 10 and 10, by seed.

python results/sampled/many_seeds.py FILE [SEEDS] [PROCESSES]
"""

import json
import multiprocessing
import sys
from pathlib import Path

import torch

import rawlsgcn as rg
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.methods import find_method, with_changes
from rawlsgcn.training.sampled.sources import Source
from rawlsgcn.training.sampled.trainer import SampledTraining

METHODS = ("rawlsgcn-graph", "rawlsgcn-grad")
# What is kept: the weights of the last step, the mean of the last tenth, or the whole graph's.
KINDS = {"last step": 0.0, "mean of the last tenth": 0.1, "whole graph": None}


def run(job: tuple[str, int, str, int]) -> dict[str, object]:
    method, epochs, kind, seed = job
    torch.set_num_threads(1)
    graph, share = rg.load("amazon-photo"), KINDS[kind]
    if share is None:
        result = rg.fit(graph, method, epochs=epochs, seeds=[seed], device="cpu")
        accuracy, bias = result.accuracy.mean, result.bias.mean
    else:
        source, chosen = Source.of(graph), find_method(method)
        settings = with_changes(chosen.defaults, {"epochs": epochs})
        training = SampledTraining(
            chosen,
            source,
            settings,
            num_neighbors=[10, 10],
            batch_size=1024,
            seed=seed,
            average=share,
        )
        for epoch in range(epochs):
            for step, batch in enumerate(training.batches(epoch)):
                training.step(batch, epoch, step)
        degree = torch.from_numpy(source.adjacency.degree)
        found = evaluate_run(training.logits(), graph.y, degree, graph.test_mask, graph.val_mask)
        accuracy, bias = found.accuracy, found.bias
    figures = {"accuracy": accuracy, "bias": bias}
    return {"method": method, "epochs": epochs, "kind": kind, "seed": seed, **figures}


if __name__ == "__main__":
    seeds, processes = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (30, 1)
    jobs = [
        (method, epochs, kind, seed)
        for method in METHODS
        for epochs in (100, 200)
        for kind in KINDS
        for seed in range(seeds)
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        runs = pool.map(run, jobs, chunksize=1)
    lines = ",\n".join(json.dumps(each) for each in runs)
    Path(sys.argv[1]).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
