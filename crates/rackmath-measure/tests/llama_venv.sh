#!/usr/bin/env bash
# Makes a Python environment with a llama.cpp server and a client of the Model Context Protocol for the tests: llama_venv.sh FOLDER. Then RACKMATH_LLAMA_PYTHON=FOLDER/bin/python.
set -euo pipefail
folder=${1:?a folder for the environment}
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/python" -c 'import xllamacpp, gguf, numpy, mcp' 2>/dev/null || "$folder/bin/pip" install --quiet xllamacpp gguf numpy mcp
