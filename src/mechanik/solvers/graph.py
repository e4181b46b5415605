"""What the graph itself asks for: goals closed onto links, targets of joints, rest poses."""

from __future__ import annotations

from dataclasses import dataclass

from mechanik.mechanism import Closure, Mechanism
from mechanik.objectives import JointValues, Objective, RestPose
from mechanik.objectives.closures import closure_relations
from mechanik.objectives.objective import Wish
from mechanik.objectives.relation import Relation


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphGoal(Objective):
    """A `Goal` of the graph, wherever it stands now."""

    closure: Closure

    def __init__(self, name: str, closure: Closure, tolerance: float, angle_tolerance: float) -> None:
        Objective.__init__(self, name=name, tolerance=tolerance, angle_tolerance=angle_tolerance)
        object.__setattr__(self, "closure", closure)

    def __repr__(self) -> str:
        return f"<goal {self.name!r} of {self.closure.link}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        return closure_relations(mechanism, self.closure, self.weight)


def graph_objectives(mechanism: Mechanism, tolerance: float, angle_tolerance: float) -> tuple[Objective, ...]:
    """Goals, one wish for each joint with targets, and one rest pose for all joints that have one."""
    found: list[Objective] = []
    for name, goal in mechanism.goals.items():
        if goal.closure is not None and goal.goal_dof:
            found.append(GraphGoal(name, goal.closure, tolerance, angle_tolerance))
    for name, joint in mechanism.joints.items():
        wanted = {dof: target for dof, target in zip(joint.dof, joint.targets, strict=True) if target is not None}
        if not wanted or not (joint.children or joint.is_closure):  # a joint that holds nothing moves nothing
            continue
        turns = "exact" if joint.track_turns else "nearest"
        if len(wanted) == len(joint.dof):
            values = {name: [wanted[dof] for dof in joint.dof]}
        else:
            values = {f"{name}.{dof.name}": target for dof, target in wanted.items()}
        wish = Wish(name=f"target of {name}", tolerance=tolerance, angle_tolerance=angle_tolerance)
        found.append(JointValues(values, turns=turns, **wish))
    if any(value is not None for joint in mechanism.joints.values() for value in joint.rest_pose):
        found.append(RestPose(name="rest pose"))
    return tuple(found)
