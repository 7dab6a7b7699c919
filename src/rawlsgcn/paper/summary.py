"""The summary of a run in sentences: what agrees, what the tuning gains, and which claims hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from .._core.text import plural
from .agreement import PUBLISHED_VERDICTS
from .plan import OWN
from .tuning_gains import tuning_gains

CHOICE_WORDS = {
    "validation": "chosen by validation accuracy",
    "test": "chosen by mean test accuracy, as the paper seems to have done",
}
Cells = Sequence[Mapping[str, Any]]


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


def _tuning(gains: pd.DataFrame) -> Iterator[str]:
    if gains.empty:
        return
    tuned = gains.drop_duplicates("graph").set_index("graph")["by_tuning"]
    most = tuned.sort_values(ascending=False, kind="stable").head(3)
    named = ", ".join(f"{graph} {value:+.1f}" for graph, value in most.items())
    yield (
        "When every method is tuned in the same way, tuning the rate and the weight decay changes "
        f"the accuracy of a plain GCN by {_range(tuned)} points ({named}): this gain is due to the "
        "tuning, not to a method."
    )
    for title, own in gains.groupby("title", sort=False):
        yield (
            f"Compared with the tuned GCN, {title} changes the accuracy by "
            f"{_range(own['by_method'])} points, and its calibrated bias is lower on "
            f"{(own['bias_ratio'] < 1).sum()} of {len(own)} graphs."
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


def _range(values: pd.Series[float]) -> str:
    return f"{values.min():+.1f} to {values.max():+.1f}"
