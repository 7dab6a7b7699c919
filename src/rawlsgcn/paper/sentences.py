"""What came out, in sentences: how many figures agree, what holds, what is method and tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import verdict
from .gains import tuning_gains
from .plan import OWN
from .tables import CHOICE_WORDS


def sentences(results: Mapping[str, Any]) -> list[str]:
    """The whole in the order of a reader's questions."""
    cells = [cell for cell in results["cells"] if cell["protocol"] == "paper"]
    undone = sum(cell["status"] not in ("finished", "diverged") for cell in cells)
    return [
        *_agreement(cells),
        *_tuning(results),
        *(_claim(claim) for claim in results["claims"]),
        *_diverged(results["cells"]),
        *([f"{undone} of {len(cells)} cells are not finished."] if undone else []),
    ]


def _agreement(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    own = [cell for cell in cells if cell["method"] in OWN and not cell["variant"]]
    said = []
    for which, among in (("the two RawlsGCN methods", own), ("all methods", cells)):
        for choice, words in CHOICE_WORDS.items():
            counts = count_verdicts(among, choice)
            if total := sum(counts.values()):
                said.append(
                    f"Of {total} printed figures of {which}, {counts['reproduced']} are "
                    f"reproduced, {counts['better']} are better, {counts['differs']} differ and "
                    f"{counts['inconclusive']} are inconclusive (the spread is too wide to tell), "
                    f"settings {words}."
                )
    return said


def _diverged(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """What ended in NaN or infinity."""
    trials = [trial for cell in cells for trial in cell["trials"]]
    lost = sum(trial["bias"]["mean"] is None for trial in trials)
    if not lost:
        return []
    whole = [cell["name"].removeprefix("rawlsgcn/") for cell in cells]
    whole = [name for name, cell in zip(whole, cells, strict=True) if cell["status"] == "diverged"]
    said = f"In {lost} of {len(trials)} trials a run diverged (NaN or infinity): none was chosen"
    return [f"{said}, and nothing is left of {', '.join(whole)}." if whole else f"{said}."]


def count_verdicts(cells: Sequence[Mapping[str, Any]], choice: str) -> dict[str, int]:
    """How many figures of accuracy and bias that the paper prints have each verdict."""
    verdicts = [
        each
        for cell in cells
        if cell["chosen"][choice] is not None
        for each in cell["chosen"][choice]["verdict"].values()
    ]
    return {name: verdicts.count(name) for name in verdict.PRINTED_VERDICTS}


def _tuning(results: Mapping[str, Any]) -> list[str]:
    """What a GCN gains by tuning, what a method gains beyond it, and whose bias is lowest."""
    gains = tuning_gains(results)
    if not gains:
        return []
    graphs = list(dict.fromkeys(gain.graph for gain in gains))
    by_tuning = {gain.graph: gain.by_tuning for gain in gains}
    said = [
        "With the same freedom for every method, tuning rate and weight decay changes the "
        f"accuracy of a plain GCN by {_range(list(by_tuning.values()))} points "
        f"({_named(graphs, list(by_tuning.values()))}): that is the tuning, and no method's merit."
    ]
    for title in dict.fromkeys(gain.title for gain in gains):
        own = [gain for gain in gains if gain.title == title]
        lower = sum(gain.bias_ratio < 1 for gain in own)
        said.append(
            f"Beyond the tuned GCN, {title} changes the accuracy by "
            f"{_range([gain.by_method for gain in own])} points, and its calibrated bias is lower "
            f"on {lower} of {len(own)} graphs: that is the method."
        )
    return said


def _claim(claim: Mapping[str, Any]) -> str:
    """A claim with the number of its tests that hold, and by name where the opposite was found."""
    tests = claim["tests"]
    held = sum(test["outcome"] == "holds" for test in tests)
    against = [test for test in tests if test["outcome"] == "fails"]
    under = {"paper": f"paper's protocol, by {claim['choice']} accuracy", "fair": "fair protocol"}
    text = f"Claim ({under.get(claim['protocol'], claim['protocol'])}): {claim['claim']}. "
    if held == len(tests):
        return f"{text}Holds in all {held} tests."
    said = f"{text}Holds in {held} of {len(tests)} tests"
    if against:
        names = ", ".join(f"{test['method']} on {_place(test['graph'])}" for test in against)
        said += f"; the opposite holds in {len(against)} ({names})"
    unclear = len(tests) - held - len(against)
    return f"{said}; {unclear} cannot be decided." if unclear else f"{said}."


def _place(graph: str) -> str:
    return "the worst of all graphs" if graph == "all" else graph


def _range(values: Sequence[float]) -> str:
    return f"{min(values):+.1f} to {max(values):+.1f}"


def _named(graphs: Sequence[str], values: Sequence[float]) -> str:
    """The graphs with the most, in order."""
    most = sorted(zip(graphs, values, strict=True), key=lambda pair: -pair[1])[:3]
    return ", ".join(f"{graph} {value:+.1f}" for graph, value in most)
