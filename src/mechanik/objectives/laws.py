"""Laws as rows: joints keep to a law where its row is zero."""

from __future__ import annotations

import numpy as np

from mechanik.errors import StructureError
from mechanik.mechanism import Law, Mechanism
from mechanik.mechanism.door import read_only
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial.array import Array


def law_relation(mechanism: Mechanism, law: Law, weight: float = 1.0) -> Relation:
    """The row of a law, by freedoms that follow no other."""
    factors, constant = law.resolved()
    space, slots = mechanism.space, mechanism.kinematics.slots
    polynomials: list[tuple[str, Array]] = []
    for (joint, dof), one in factors.items():
        slot = slots.get(joint)
        if slot is None or dof not in slot.q:
            raise StructureError(
                f"{law} binds {joint}, which holds no link and so has no value: hang a link on it, or undo the law"
            )
        polynomials.append((space.q_names[slot.q[dof]], read_only(one.copy())))
    target = read_only(np.array([constant]))
    return Relation(Kind.LAW, (0,), polynomials=tuple(polynomials), target=target, weight=weight)


def law_relations(mechanism: Mechanism) -> dict[str, Relation]:
    """The rows of all laws of a mechanism, by name."""
    return {name: law_relation(mechanism, law) for name, law in mechanism.laws.items()}


def law_sums(mechanism: Mechanism, relation: Relation, q: Array) -> Array:
    """The row of a relation of kind LAW at many configurations: (...) for q (..., nq)."""
    total = np.full(q.shape[:-1], -float(relation.target[0]))
    for freedom, factors in relation.polynomials:
        values = q[..., mechanism.space.q_names.index(freedom)]
        for power, factor in enumerate(factors.tolist(), start=1):
            total = total + factor * values**power
    return total
