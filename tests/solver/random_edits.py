"""Random edits of a mechanism with loops: goals, closures, links, dofs, limits, couplings, joint constraints."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
from graph_arms import hang

import mechanik as mk
from mechanik.errors import MechanikError


class RandomEdits:
    """A mechanism that is edited at random; an edit without a candidate does nothing."""

    def __init__(self, mechanism: mk.Mechanism, seed: int) -> None:
        self.rng, self.mechanism, self.count = np.random.default_rng(seed), mechanism, 0
        self.born = set(mechanism.links)
        self.undo_actions: list[Callable[[], object]] = []  # how to undo edits that may have failed, the latest last
        self.size = float(np.linalg.norm(np.ptp([link.world_position for link in mechanism.links.values()], axis=0)))

    # ---- picking --------------------------------------------------------------------------------

    def pick(self, choices):
        choices = list(choices)
        return choices[self.rng.integers(len(choices))] if choices else None

    def link(self) -> mk.Link:
        return self.pick(self.mechanism.links.values())

    def joint(self, moving: bool = True) -> mk.Joint | None:
        """One that holds a link."""
        return self.pick(j for j in self.mechanism.joints.values() if j.children and (j.dof or not moving))

    def name(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def undo_last(self) -> None:
        """Undo the latest edit."""
        if self.undo_actions:
            with contextlib.suppress(MechanikError):  # it may have been removed with a part of the tree
                self.undo_actions.pop()()

    # ---- goals ----------------------------------------------------------------------------------

    def add_goal(self) -> None:
        if len(self.mechanism.goals) >= 3:
            self.remove_goal()
            return
        link = self.link()
        goal = mk.Goal(self.name("goal"), dof=self.pick([["X", "Y"], ["X", "Y", "Z"], ["EX", "EY"], ["Z", "EZ"]]))
        goal.world_matrix = link.world_matrix
        goal.position = goal.position + self.rng.uniform(-0.1, 0.1, 3) * self.size
        if self.rng.random() < 0.3 and (carrier := self.link()) is not link:
            carrier.attach_child(goal)
        goal.make_closure(link)
        self.undo_actions.append(lambda: self.remove_goal(goal))

    def remove_goal(self, goal: mk.Goal | None = None) -> None:
        goal = goal or self.pick(self.mechanism.goals.values())
        if goal is not None and goal.closure is not None:
            goal.closure.undo()
            if goal.parent is not None:
                goal.parent.remove_child(goal)

    def move_goal(self) -> None:
        goal = self.pick(self.mechanism.goals.values())
        if goal is not None:
            goal.position = goal.position + self.rng.uniform(-0.1, 0.1, 3) * self.size
            goal.axes = self.pick(["goal", "world"])

    def change_goal(self) -> None:
        goal = self.pick(self.mechanism.goals.values())
        if goal is not None:
            position = goal.position
            goal.set_goal_dof(self.pick(["X", ["X", "Y"], ["X", "Y", "Z"], ["X", "Y", "Z", "EX", "EY", "EZ"]]))
            goal.position = position

    # ---- loops ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Join two links where they are, with a gap of zero or a little."""
        if len(self.mechanism.closures) >= 8:
            self.open()
            return
        link, other_link = self.link(), self.link()
        if link is other_link:
            return
        joint = mk.Joint(self.name("closing"), dof=self.pick([["EX", "EY", "EZ"], ["Z", "EX", "EY", "EZ"], "EZ"]))
        joint.position = self.rng.uniform(-0.2, 0.2, 3) * self.size
        link.add_child(joint)
        at = np.linalg.inv(other_link.world_matrix) @ joint.world_matrix
        at[:3, 3] += self.rng.uniform(-0.01, 0.01, 3) * self.size * (self.rng.random() < 0.5)
        closure = joint.make_closure(other_link, at)
        self.undo_actions.append(lambda: self.open(closure))

    def open(self, closure: mk.Closure | None = None) -> None:
        closure = closure or self.pick(self.mechanism.closures.values())
        if closure is not None:
            closure.undo()
            closure.joint.parent.remove_child(closure.joint)

    def reclose(self) -> None:
        """The same joint, ending a little elsewhere."""
        closure = self.pick(self.mechanism.closures.values())
        if closure is not None:
            at = closure.at.matrix.copy()
            at[0, 3] += self.rng.uniform(-0.02, 0.02) * self.size
            self.end_at(closure.joint, at)
            self.undo_actions.append(lambda: self.end_at(closure.joint, closure.at))

    def end_at(self, joint: mk.Joint, at) -> None:
        if joint.closure is not None:
            link = joint.closure.link
            joint.closure.undo()
            joint.make_closure(link, at)

    # ---- links and joints -----------------------------------------------------------------------

    def grow(self) -> None:
        dof = self.pick(["EZ", "EX", "X", ["Y", "EZ"], ["EX", "EY", "EZ"], ()])
        hang(self.link(), self.name("part"), dof=dof, at=self.rng.uniform(-0.3, 0.3, 3) * self.size)

    def cut(self) -> None:
        """Remove one of the added links with its subtree."""
        link = self.pick(link for name, link in self.mechanism.links.items() if name not in self.born)
        if link is None:
            self.grow()
            return
        joint = link.parent
        for frame in [*joint.traverse()]:
            for closure in [*getattr(frame, "closures", ())]:
                closure.undo()
                if closure.joint.parent is not None:
                    closure.joint.parent.remove_child(closure.joint)
            if getattr(frame, "closure", None) is not None:
                frame.closure.undo()
            if isinstance(frame, mk.Joint):
                for bond in [*frame.couplings, *frame._mimic_couplings, *frame.joint_constraints]:
                    bond.undo()
        joint.parent.remove_child(joint)

    def refit(self) -> None:
        joint = self.joint(moving=False)
        dof, X = joint.dof, joint.matrix
        wanted = self.pick(["EZ", ["X", "EY"], ["EX", "EY"], ["EX", "EY", "EZ"], ()])
        self.fit(joint, wanted, X @ joint.motion)  # where it held its link before
        self.undo_actions.append(lambda: self.fit(joint, dof, X))

    def fit(self, joint: mk.Joint, dof, X) -> None:
        joint.set_dof(dof)
        joint.matrix = X

    def shift(self) -> None:
        joint = self.joint(moving=False)
        before = joint.position
        joint.position = before + self.rng.uniform(-0.02, 0.02) * self.size * np.array([1.0, 0.0, 0.0])
        self.undo_actions.append(lambda: setattr(joint, "position", before))

    # ---- values ---------------------------------------------------------------------------------

    def lock(self) -> None:
        joint = self.joint()
        if joint is not None and not joint.couplings:
            self.limit(joint, joint.values, joint.values)

    def limit(self, joint: mk.Joint, lower, upper) -> None:
        before, dof = (joint.lower, joint.upper), joint.dof
        joint.set_limits(lower, upper)
        self.undo_actions.append(lambda: joint.set_limits(*before) if joint.dof == dof else None)

    def unlock(self) -> None:
        joint = self.pick(j for j in self.mechanism.joints.values() if j.children and (j.lower == j.upper).any())
        if joint is not None:
            joint.set_limits(np.full(len(joint.dof), -np.inf), np.full(len(joint.dof), np.inf))

    def bound(self) -> None:
        joint = self.joint()
        if joint is not None and not joint.couplings:
            margins = self.rng.uniform(0.05, 1.0, (2, len(joint.dof)))
            self.limit(joint, joint.values - margins[0], joint.values + margins[1])

    def aim(self) -> None:
        joint = self.joint()
        if joint is not None and not joint.couplings:
            joint.set_targets(joint.values + self.rng.uniform(-0.2, 0.2, len(joint.dof)))
            self.undo_actions.append(joint.clear_targets)

    def rest(self) -> None:
        joint = self.joint()
        if joint is not None:
            joint.clear_targets()
            joint.save_rest_pose()

    def forget(self) -> None:
        for joint in self.mechanism.joints.values():
            if self.rng.random() < 0.5:
                joint.clear_targets()
                joint.clear_rest_pose()

    def couple(self) -> None:
        joint, leader = self.joint(), self.joint()
        with contextlib.suppress(MechanikError):  # of several dofs, or coupled already
            ratio = self.rng.uniform(-1, 1)
            coupling = joint.mimic(leader, ratio, joint.values[0] - ratio * leader.values[0])
            self.undo_actions.append(coupling.undo)

    def uncouple(self) -> None:
        coupling = self.pick(c for joint in self.mechanism.joints.values() for c in joint.couplings)
        if coupling is not None:
            coupling.undo()

    def bind(self) -> None:
        """A joint constraint of two or three joints that holds at their current values."""
        joints = {self.joint() for _ in range(3)} - {None}
        if len(joints) < 2 or len(self.mechanism.joint_constraints) >= 2:
            self.unbind()
            return
        ordered = sorted(joints, key=self.mechanism.name_of)
        terms = {(joint, joint.dof[0]): self.rng.uniform(-1, 1, self.rng.integers(1, 4)) for joint in ordered}
        with contextlib.suppress(MechanikError):  # spherical joints cannot be constrained
            probe = mk.JointConstraint(terms)
            probe.undo()
            constraint = mk.JointConstraint(terms, probe.error(), name=self.name("law"))
            self.undo_actions.append(constraint.undo)

    def unbind(self) -> None:
        constraint = self.pick(self.mechanism.joint_constraints.values())
        if constraint is not None:
            constraint.undo()

    def narrow(self) -> None:
        """A swing limit for a joint that rotates about several axes, in the tree or closing a loop."""
        swinging = [j for j in self.mechanism.joints.values() if sum(dof.is_rotation for dof in j.dof) > 1]
        joint = self.pick(swinging)
        if joint is not None:
            dof, before = joint.dof, joint.cone
            joint.set_cone(self.rng.uniform(0.5, 2.0), self.pick(["z", "xyz"]))
            self.undo_actions.append(lambda: self.widen(joint, dof, before))

    def widen(self, joint: mk.Joint, dof, cone) -> None:
        if joint.dof == dof:
            joint.set_cone(None if cone is None else cone.angle, "z" if cone is None else cone.axes)

    def rename(self) -> None:
        joint = self.joint(moving=False)
        joint.name = self.name("joint")


KINDS = [
    *["add_goal", "add_goal", "remove_goal", "move_goal", "move_goal", "change_goal"],
    *["close", "open", "reclose", "grow", "grow", "cut", "cut", "refit", "shift"],
    *["bind", "bind", "unbind", "narrow"],
    *["lock", "unlock", "unlock", "bound", "aim", "rest", "forget", "couple", "uncouple", "rename"],
]
