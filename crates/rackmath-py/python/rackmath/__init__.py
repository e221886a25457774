"""The maths of how large language models are trained and served: every question a function, the same bytes as the terminal."""

from . import _rackmath
from ._rackmath import *  # noqa: F403

__doc__ = _rackmath.__doc__
__version__ = _rackmath.__version__
__all__ = _rackmath.__all__
