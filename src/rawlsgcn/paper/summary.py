"""The summary of a run in sentences: what agrees, what the tuning gains, and which claims hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.text import plural
from .agreement import PUBLISHED_VERDICTS
from .plan import OWN

CHOICE_WORDS = {
    "validation": "chosen by validation accuracy",
    "test": "chosen by mean test accuracy, as the paper seems to have done",
}
Cells = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Gain:
    """A method on a graph of the fair comparison: accuracies, and its calibrated bias as a
    multiple of the tuned GCN's.

    ``gcn`` is the accuracy of a GCN with the paper's settings, ``tuned_gcn`` with its own.
    """

    graph: str
    title: str
    gcn: float
    tuned_gcn: float
    method: float
    bias_ratio: float

    @property
    def by_tuning(self) -> float:
        """Points that tuning adds to the paper's GCN."""
        return self.tuned_gcn - self.gcn

    @property
    def by_method(self) -> float:
        """Points that the method adds to the tuned GCN."""
        return self.method - self.tuned_gcn


def tuning_gains(results: Mapping[str, Any]) -> list[Gain]:
    """Split the gain in accuracy over the paper's GCN into tuning and method."""
    cells = {
        (cell["dataset"], cell["method"]): cell
        for cell in results["cells"]
        if cell["protocol"] == "fair" and cell["chosen"]["validation"] is not None
    }
    gains = []
    for (dataset, method), cell in cells.items():
        gcn = cells.get((dataset, "gcn"))
        before = None if gcn is None else _with_the_papers_settings(gcn)
        if method not in OWN or gcn is None or before is None:
            continue
        both = [each["chosen"]["validation"] for each in (gcn, cell)]
        tuned, own = (each["accuracy"]["mean"] for each in both)
        base, bias = (each["calibrated_bias"]["mean"] for each in both)
        if None not in (tuned, own, base, bias):
            gains.append(Gain(cell["graph"], cell["title"], before, tuned, own, bias / base))
    return gains


def _with_the_papers_settings(gcn: Mapping[str, Any]) -> float | None:
    """The accuracy at the paper's rate and weight decay, which are a point of the fair grid."""
    for trial in gcn["trials"]:
        if trial["values"] == {"lr": 0.01, "weight_decay": 5e-4}:
            mean: float | None = trial["accuracy"]["mean"]
            return mean
    return None


def sentences(results: Mapping[str, Any]) -> list[str]:
    """Return all findings, in the order of a reader's questions."""
    cells = results["cells"]
    unfinished = sum(cell["status"] not in ("finished", "diverged") for cell in cells)
    return [
        *_agreement([cell for cell in cells if cell["protocol"] == "paper"]),
        *_tuning(tuning_gains(results)),
        *(_claim(claim) for claim in results["claims"]),
        *_few_seeds(results),
        *_diverged(cells),
        *([f"{unfinished} of {len(cells)} cells are not finished."] if unfinished else []),
    ]


def _agreement(cells: Cells) -> Iterator[str]:
    """Count how many of the paper's figures of accuracy and bias have each verdict."""
    own = [cell for cell in cells if cell["method"] in OWN and not cell["variant"]]
    for which, among in (("the two RawlsGCN methods", own), ("all methods", cells)):
        for choice, words in CHOICE_WORDS.items():
            chosen = [cell["chosen"][choice] for cell in among]
            verdicts = [v for each in chosen if each is not None for v in each["verdict"].values()]
            counts = {name: verdicts.count(name) for name in PUBLISHED_VERDICTS}
            if total := sum(counts.values()):
                yield (
                    f"Of {total} printed figures of {which}, {counts['reproduced']} are "
                    f"reproduced, {counts['better']} are better, {counts['differs']} differ and "
                    f"{counts['inconclusive']} are inconclusive (the spread is too wide to tell), "
                    f"settings {words}."
                )


def _tuning(gains: Sequence[Gain]) -> Iterator[str]:
    if not gains:
        return
    tuned = {gain.graph: gain.by_tuning for gain in gains}
    most = sorted(tuned.items(), key=lambda pair: -pair[1])[:3]
    named = ", ".join(f"{graph} {value:+.1f}" for graph, value in most)
    yield (
        "When every method is tuned in the same way, tuning the rate and the weight decay changes "
        f"the accuracy of a plain GCN by {_range(list(tuned.values()))} points ({named}): this "
        "gain is due to the tuning, not to a method."
    )
    for title in dict.fromkeys(gain.title for gain in gains):
        own = [gain for gain in gains if gain.title == title]
        lower = sum(gain.bias_ratio < 1 for gain in own)
        yield (
            f"Compared with the tuned GCN, {title} changes the accuracy by "
            f"{_range([gain.by_method for gain in own])} points, and its calibrated bias is lower "
            f"on {lower} of {len(own)} graphs."
        )


def claim_text(claim: Mapping[str, Any]) -> str:
    """Return a claim in American spelling, which results of earlier versions do not have."""
    return str(claim["claim"]).replace("isation", "ization")


def _claim(claim: Mapping[str, Any]) -> str:
    """State how many tests of a claim hold, and name those that show the opposite."""
    tests = claim["tests"]
    held = sum(test["outcome"] == "holds" for test in tests)
    against = [test for test in tests if test["outcome"] == "fails"]
    under = {"paper": f"paper's protocol, by {claim['choice']} accuracy", "fair": "fair protocol"}
    text = f"Claim ({under.get(claim['protocol'], claim['protocol'])}): {claim_text(claim)}. "
    if len(tests) == 1:
        outcomes = {"holds": "Holds in the only test", "fails": "The only test shows the opposite"}
        return f"{text}{outcomes.get(tests[0]['outcome'], 'The only test cannot decide it')}."
    if held == len(tests):
        return f"{text}Holds in {'both' if held == 2 else f'all {held}'} tests."
    said = f"{text}Holds in {held} of {len(tests)} tests"
    if against:
        graphs = ["the worst of all graphs" if t["graph"] == "all" else t["graph"] for t in against]
        names = [f"{t['method']} on {graph}" for t, graph in zip(against, graphs, strict=True)]
        said += f"; the opposite holds in {len(against)} ({', '.join(names)})"
    unclear = len(tests) - held - len(against)
    return f"{said}; {unclear} cannot be decided." if unclear else f"{said}."


def _few_seeds(results: Mapping[str, Any]) -> Iterator[str]:
    """Say so where too few seeds were run for a permutation test to show anything."""
    seeds = len(results.get("seeds", ()))
    undecided = any(
        test.get("p_seeds") is not None and test["outcome"] == "unclear"
        for claim in results["claims"]
        for test in claim["tests"]
    )
    if undecided and 2**-seeds > 0.05:
        yield (
            f"With {plural(seeds, 'seed')} no permutation test over the seeds can give a p under "
            f"1/{2**seeds}, so no claim about the bias can be shown to hold or fail: run five "
            "seeds or more."
        )


def _diverged(cells: Cells) -> list[str]:
    trials = [trial for cell in cells for trial in cell["trials"]]
    lost = sum(trial["bias"]["mean"] is None for trial in trials)
    if not lost:
        return []
    names = [c["name"].removeprefix("rawlsgcn/") for c in cells if c["status"] == "diverged"]
    said = f"In {lost} of {len(trials)} trials a run diverged (NaN or infinity): none was chosen"
    return [f"{said}, and there are no results for {', '.join(names)}." if names else f"{said}."]


def _range(values: Sequence[float]) -> str:
    return f"{min(values):+.1f} to {max(values):+.1f}"
