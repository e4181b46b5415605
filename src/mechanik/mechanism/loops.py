"""What a mechanism can do because of its loops: forward kinematics that solves, and velocities that know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.upstairs import upstairs
from mechanik.spatial.array import ArrayLike

if TYPE_CHECKING:
    from mechanik.assembly import Assembly, AssemblyModes, AssemblyPath
    from mechanik.mechanism.mechanism import Mechanism
    from mechanik.mechanism.velocities import ClosedJacobian


class Loops:
    """A part of `Mechanism`. The work is done upstairs, in `assembly`."""

    def assemble(
        self,
        drive: Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike] | None = None,
        q0: ArrayLike | Assembly | None = None,
        *,
        steps: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Assembly:
        """Forward kinematics of loops: some joints at given values, the loops shut, the branch kept.

        The drives are taken from where q0 has them to their values on the straight way, and all else follows, in steps
        as short as it takes to stay on the branch. What they leave free stays as near to q0 as it can. The mechanism
        itself does not move: `mechanism.apply(assembly)` does that.

        Args:
            drive: by joint (`crank_joint`) or freedom (`base.X`); m, and rad that count full turns. A joint with a
                ball drives as a whole (`base`). A joint that closes a loop may drive too; it has no number in q, so its
                turns count from what `Closure.measure` reads at q0, or from where the assembly before has come. None:
                the loops are shut, and that is all.
            q0: (nq,) where it is, even with loops open, or the assembly before this one, which also knows which way it
                was going; where the mechanism stands if not given.
            steps: at least so many.
            weights: by joint or freedom, how reluctantly it moves, where there is a choice; 1 is usual.
        """
        return upstairs("assemble")(self, drive, q0, steps=steps, weights=weights)

    def assembly_path(
        self,
        drive: Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike],
        q0: ArrayLike | Assembly | None = None,
        *,
        weights: Mapping[str, float] | None = None,
    ) -> AssemblyPath:
        """As `assemble`, for one set of values after the other, each from where the one before has led.

        Args:
            drive: (T,) for a joint of one freedom, (T, n) for one of n.
        """
        return upstairs("assembly_path")(self, drive, q0, weights=weights)

    def assembly_modes(
        self,
        drive: Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike] | None = None,
        q0: ArrayLike | None = None,
        *,
        limit: int | None = None,
        tries: int | None = None,
        max_seconds: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> AssemblyModes:
        """All ways to put it together with some joints at given values, nearest to q0 first.

        Args:
            drive: as in `assemble`.
            q0: (nq,) what they are near to; where the mechanism stands if not given.
            limit: how many are given, the nearest; None: all that are found.
            tries: starts, at most; None: until nothing new has been found for long.
            max_seconds: after which no further start is tried.
            rng: for the starts; without it they are the same each time.
        """
        return upstairs("assembly_modes")(self, drive, q0, limit=limit, tries=tries, max_seconds=max_seconds, rng=rng)

    def closed_jacobian(
        self,
        link: str | Link,
        drive: Iterable[str] | str | None = None,
        q: ArrayLike | None = None,
        point: ArrayLike | None = None,
    ) -> ClosedJacobian:
        """How a link moves by the velocities of the drives while all loops stay shut: exact, also with more rows than
        needed; refused while a loop stands open.

        Args:
            drive: joints (`crank_joint`) or freedoms (`base.X`, and of a ball the turns about its own axes, `base.EX`);
                a joint that closes a loop may be among them. None: those that `mk.structure` chooses.
            q: (nq,), with all loops shut; the present configuration if it is not given.
            point: (3,), in the link's frame; its origin if not given.
        """
        from mechanik.mechanism.velocities import closed_jacobian

        mechanism = cast("Mechanism", self)
        return closed_jacobian(mechanism, mechanism._link_name(link), drive, q, point)
