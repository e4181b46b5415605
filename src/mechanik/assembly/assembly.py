"""How a mechanism is put together: the answer of `assemble`, with its reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from mechanik.errors import NotSolved
from mechanik.mechanism import Mechanism
from mechanik.objectives import Error, JointValues
from mechanik.objectives.closures import closure_relations
from mechanik.objectives.evaluate import evaluate
from mechanik.objectives.laws import law_relations, law_sums
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.solvers.singular import Singular


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """A singular pose on the way.

    Attributes:
        kind: at a change point two branches cross, and the way went straight on; at a dead point the drives cannot go
            on, and the way ended.
        q: (nq,) next to it, to 1e-5 rad and sizes; of a dead point exactly there.
    """

    kind: Literal["change point", "dead point"]
    q: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assembly:
    """
    Attributes:
        mechanism: which does not move.
        drive: by name, the values that were asked for.
        q: (nq,) the loops shut, and the drives where they should be, or as near as they come on this branch.
        success: whether both hold: loops to 1e-9, drives to 2e-8 (at dead points no more digits can be told).
        status: CONVERGED; CLOSEST where the drives cannot be met; OPEN where the loops cannot be shut, with the least
            gap that was found; STALLED where the branch was lost; TIMEOUT where the way was too long, and goes on from
            here.
        message: why, in a sentence.
        drive_errors: by the names of the drives, how far each is from its value; m or rad, full turns included.
        passed: singular poses on the way, in order.
        heading: (nv,) which way it was going when it came here, m and rad for one unit of the drives' way; zero if it
            did not move. A walk that goes on from a change point needs it.
        turned: by the names of drives that close a loop and turn about one axis, how far they have turned, rad. They
            have no number in q, so this is what counts their full turns.
    """

    mechanism: Mechanism
    drive: Mapping[str, Array]
    q: Array
    success: bool
    status: Status
    message: str
    drive_errors: Mapping[str, float]
    passed: tuple[Passed, ...]
    heading: Array
    turned: Mapping[str, float] = field(default_factory=dict[str, float])

    def __repr__(self) -> str:
        verdict = "assembled" if self.success else f"not assembled, {self.status.name}"
        errors = self.closure_errors.values()
        worst = max((error.position for error in errors), default=0.0)
        angle = max((error.rotation for error in errors), default=0.0)
        return f"<{verdict}: loops open by {worst:.2g} m, {angle:.2g} rad; {self.message}>"

    def __getitem__(self, joint: str) -> float | Array:
        """The value of a joint, or its values if it has several freedoms; of a closing joint too."""
        self.mechanism.joint(joint)
        values = self.mechanism.values(self.q)
        if joint in values:
            return values[joint]
        before = self.mechanism.q
        try:
            self.mechanism.q = self.q
            measured = self.mechanism.closure(joint).measure()
        finally:
            self.mechanism.q = before
        if joint in self.turned:
            measured = np.append(measured[:-1], self.turned[joint])
        return float(measured[0]) if len(measured) == 1 else measured

    @property
    def values(self) -> dict[str, float | Array]:
        """Values by joint; those of closing joints are not among them."""
        return self.mechanism.values(self.q)

    @property
    def closure_errors(self) -> Mapping[str, Error]:
        """How far each loop stands open, by the name of the joint that closes it."""
        found: dict[str, Error] = {}
        for name, closure in self.mechanism.closures.items():
            position = rotation = 0.0
            for relation in closure_relations(self.mechanism, closure):
                rows, metres = evaluate(self.mechanism, relation, self.q)[0], np.array(relation.in_metres)
                position = max(position, float(np.linalg.norm(rows[metres])))
                rotation = max(rotation, float(np.linalg.norm(rows[~metres])))
            found[name] = Error(position, rotation)
        return found

    @property
    def law_errors(self) -> Mapping[str, float]:
        """How far each law is off, by name: its terms less its constant, in its own unit."""
        relations = law_relations(self.mechanism)
        return {name: float(law_sums(self.mechanism, relation, self.q)) for name, relation in relations.items()}

    @property
    def singular(self) -> Singular:
        """Whether it stands at a singular pose: which kind, how near, and which joints move there without effect."""
        from mechanik.solvers.singular import SingularPart, singular_at

        asked = (JointValues(self.drive, turns="exact"),) if self.drive else ()
        found = singular_at(self.mechanism, asked, self.q, np.ones(self.mechanism.nv, dtype=np.bool_))
        if not self.is_at_dead_point or "dead point" in found.kinds:
            return found
        # where loops lose rank too, drives determine nothing anyway; but the way here has shown that they are stuck
        motion = dict(zip(self.mechanism.space.v_names, self.heading.tolist(), strict=True))
        others = tuple(part for part in found.parts if part.kind != "dead point")
        return replace(found, parts=(*others, SingularPart("dead point", 0.0, MappingProxyType(motion))))

    @property
    def is_at_dead_point(self) -> bool:
        """Whether it stands where its way ended at a dead point."""
        return bool(self.passed) and self.passed[-1].kind == "dead point" and np.array_equal(self.passed[-1].q, self.q)

    def require(self) -> Assembly:
        """This assembly, or an exception that says why it is none."""
        if not self.success:
            raise NotSolved(f"not assembled ({self.status.name}): {self.message}", self)
        return self
