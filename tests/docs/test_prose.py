"""What users read is plain technical English, in American spelling where it is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "src").rglob("*.j2")),
    *sorted((ROOT / "benchmarks").rglob("*.py")),
    *sorted((ROOT / "tools").rglob("*.py")),
]
PHRASES = (
    r"\b(is|are|was|were|be|been|being) told\b(?! apart)",
    r"\bleft away\b",
    r"\bstands? (there|twice|a second time)\b",
    r"\bthe doors?\b",
    r"\banew\b",
    r"\bby (his|her|one's) own\b",
    r"\bof one's own\b",
    r"\bfor ever\b",
    r"\bgone on with\b",
    r"\bwhat was found\b",
    r"\bin silence\b",
    r"\bheld (against|to account)\b",
    r"\bwhose word\b",
    r"\bthe user's word\b",
)
BRITISH = (
    r"\b\w*normalis\w+",
    r"\b\w*neighbour\w*",
    r"\bcolour\w*",
    r"\bcentred?\b",
    r"\boptimis(er|e|ation)\w*",
    r"\bbehaviour\w*",
    r"\binitialis\w+",
    r"\bfavour\w*",
    r"\blabelled\b",
    r"\bcatalogue\b",
    r"\blicence\b",
)


@pytest.mark.parametrize("path", [p for p in TEXTS if p.exists()], ids=lambda p: p.name)
@pytest.mark.parametrize("words", [PHRASES, BRITISH], ids=["phrases", "spelling"])
def test_words(path: Path, words: tuple[str, ...]) -> None:
    text = " ".join(path.read_text(encoding="utf-8").split())
    found = [m.group() for word in words for m in re.finditer(word, text, re.IGNORECASE)]
    assert not found
