"""Runs every notebook from top to bottom, and checks the types of their code, of the package and of its stubs."""

from __future__ import annotations

import subprocess
import sys

import nbclient
import nbformat
from make import FOLDER, SCRIPTS, text

for script in SCRIPTS:
    made = script.with_suffix(".ipynb")
    if made.read_text() != text(script):
        sys.exit(f"{made.name} is not made of {script.name}: python {FOLDER / 'make.py'}")
    notebook = nbformat.read(made, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    print(f"{made.name}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells run")
for what in ([str(script) for script in SCRIPTS], ["-p", "rackmath"]):
    subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--scripts-are-modules", *what], check=True)
