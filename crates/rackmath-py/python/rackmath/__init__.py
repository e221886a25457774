"""The maths of how large language models are trained and served: every question a function, the same bytes as the terminal."""

from pathlib import Path as _Path

from . import _rackmath
from ._rackmath import *  # noqa: F403

__doc__ = _rackmath.__doc__
__version__ = _rackmath.__version__
__all__ = _rackmath.__all__

_wasm = _Path(__file__).with_name("rackmath.wasm")
#: The engine for browsers, for `rackmath web --static DIR --wasm FILE`; None where the package was built without it.
WASM = str(_wasm) if _wasm.is_file() else None
