"""What can bump: shapes of links and obstacles, which pairs of them count, and how far they are apart.

In: a mechanism with shapes on its links, obstacles, and which pairs may touch. Out: a `Collider`, which tells for any
configuration what is how near to what, and how that changes with each freedom. It knows nothing of goals or solvers.
"""

from mechanik.collision.clash import Clash
from mechanik.collision.collider import Collider
from mechanik.collision.fitting import fit_shapes
from mechanik.collision.obstacle import Obstacle
from mechanik.collision.sampling import find_unchecked

__all__ = ["Clash", "Collider", "Obstacle", "find_unchecked", "fit_shapes"]
