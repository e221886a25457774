"""Notebooks from their scripts: `# %%` begins a cell, `# %% [markdown]` one of words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))


def notebook(script: Path) -> dict[str, Any]:
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(script.read_text().split("# %%")[1:]):
        words = part.startswith(" [markdown]")
        text = part.removeprefix(" [markdown]").strip("\n")
        if words:
            text = "\n".join(line[2:] if line.startswith("# ") else line.removeprefix("#") for line in text.splitlines())
        cell: dict[str, Any] = {"cell_type": "markdown" if words else "code", "id": f"cell-{number}", "metadata": {}}
        cell["source"] = text.splitlines(keepends=True)
        if not words:
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def text(script: Path) -> str:
    return json.dumps(notebook(script), indent=1) + "\n"


if __name__ == "__main__":
    for script in SCRIPTS:
        script.with_suffix(".ipynb").write_text(text(script))
