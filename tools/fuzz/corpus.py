"""Findings as small zip files, which tests/graphs/readers/test_corpus.py replays."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from pathlib import Path

from .reader import Case, Files
from .supervise import Finding
from .verdict import Outcome

_ABOUT = "about.json"
_DATE = (1980, 1, 1, 0, 0, 0)


def keep(finding: Finding, folder: Path) -> Path:
    """Write a finding to ``folder``: its files, and what was wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    case, outcome = finding.case, finding.outcome
    about = {"reader": case.reader, "kind": outcome.kind, "where": outcome.where}
    key = hashlib.blake2b("|".join(about.values()).encode(), digest_size=3).hexdigest()
    kind = re.sub(r"\W+", "-", outcome.kind)
    path = folder / f"{case.reader}-{kind}-{key}.zip"
    message = re.sub(r"(/[^/\s]+)+/", "", outcome.message)  # folders are of no interest
    about |= {"message": message, "how": case.how}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        entries = {_ABOUT: json.dumps(about, indent=1).encode(), **case.files}
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return path


def load(path: Path) -> Finding:
    """A kept finding."""
    files: Files = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            files[name] = archive.read(name)
    about = json.loads(files.pop(_ABOUT))
    outcome = Outcome(about["kind"], about["where"], about["message"])
    return Finding(Case(about["reader"], 0, files, about["how"]), outcome)


def may_crash(finding: Finding) -> bool:
    """Whether a reader must not be asked about it in a process that is needed afterwards."""
    return finding.outcome.kind.startswith(("hang", "memory", "SIG", "exit"))
