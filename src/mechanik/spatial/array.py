"""Array types: `Array`, an array of float64, and `ArrayLike`, anything that NumPy converts to an array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
ArrayLike = npt.ArrayLike
