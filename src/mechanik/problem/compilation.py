"""Compilation of a mechanism and its objectives into independent subproblems, and update of targets.

Closures, joint constraints and cone limits are hard constraints in the first stage; objectives follow, one stage for
each priority level, or two if a level has both required and optional objectives. Residual blocks that share dofs,
directly or through other blocks, form a subproblem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanik.model import Closure, Joint, JointConstraint, Mechanism
from mechanik.model.dof import ROTATIONS
from mechanik.objectives import Objective
from mechanik.objectives.constraint_relations import (
    closure_cone_relations,
    closure_limit_relations,
    closure_relations,
    cone_relations,
    joint_constraint_relations,
)
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem.kinematic_tree import (
    KinematicTree,
    PassiveSpherical,
    add_spherical_frames,
    build_kinematic_tree,
    find_passive_sphericals,
)
from mechanik.problem.packed_problem import CLOSURE_TOLERANCE, PackedProblem, RowScaling, pack_problem
from mechanik.problem.residual_block import ResidualBlock, WeightedRelation
from mechanik.spatial.array import Array

CLOSURE_ROUNDING_RATIO = 1e-13
"""Lower bound of the closure tolerance, as a ratio to the length unit; smaller gaps are rounding errors."""
LENGTH_UNIT_SHARE = 1 / 3
"""Length unit as a ratio to the reach; larger values give more weight to angles and less to lengths. Tuned on random
targets of a Panda and a UR5."""
BALANCED_LENGTH_UNITS = (0.2, 5.0)
"""m; with a length unit in this range, rows in m and rad are balanced well enough. Of 800 descents of arms with a
length unit of 0.2 to 4 m, 556 to 565 reach their target, as in length units (559). With 0.1 m they take twice as many
iterations, and with 2 mm only a sixth of them reach it."""


@dataclass(frozen=True, slots=True, eq=False)
class Subproblem:
    """Independent part of a problem: objectives and constraints that are connected by common dofs.

    Attributes:
        packed: the flat arrays for the kernel.
        rows: scaling of the residual rows.
        owners: for each block the index of its objective in the problem. For a constraint it is -1 - index, where
            closures are counted first, then joint constraints, then cones.
        relation_indices: for each block the index among its owner's relations.
        levels: for each stage the level of its objectives; -1 for constraints.
        is_optional: for each stage whether it is optional: success does not depend on it.
        moving_dofs: (nv,), mask of the dofs that the subproblem may change.
        required_row_count: number of residual rows of required objectives, without rows with bands.
        passive_spherical_v: first index in v of each passive spherical joint, whose rotation is computed from a
            closure after the solve.
        balanced_stages: stages of required objectives that add lengths to angles and have rows in units of the
            mechanism in `rows`. Such rows are better for reaching all targets, but their sum of squares is not the cost
            of the user.
        si_rows: scaling of the residual rows with the rows of these stages in m and rad; None if there are none.

    Example:
        >>> from mechanik.problem import ProblemSettings, compile_problem
        >>> arm, goal = mk.arm_2d([0.5, 0.3]), mk.PositionGoal("tool", (0.5, 0.3, 0.0))
        >>> problem = compile_problem(arm, [goal], [goal.relations(arm)], ProblemSettings([True] * 2, {}, [1.0] * 2))
        >>> problem.subproblems[0].owners, problem.subproblems[0].levels
        ((0,), (-1, 1))
    """

    packed: PackedProblem
    rows: RowScaling
    owners: tuple[int, ...]
    relation_indices: tuple[int, ...]
    levels: tuple[int, ...]
    is_optional: tuple[bool, ...]
    moving_dofs: np.ndarray[tuple[int], np.dtype[np.bool_]]
    required_row_count: int = 0
    passive_spherical_v: tuple[int, ...] = ()
    balanced_stages: tuple[int, ...] = ()
    si_rows: RowScaling | None = None

    @property
    def required_stages(self) -> tuple[int, ...]:
        """Indices of the stages that success depends on."""
        return tuple(k for k, is_optional in enumerate(self.is_optional) if not is_optional)

    @property
    def is_overdetermined(self) -> bool:
        """Whether the required goals have more rows than there are dofs, so that they can hardly all be met."""
        return self.required_row_count > int((self.packed.columns >= 0).sum())

    def columns_of_dofs(
        self, dofs: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return the mask of the Jacobian columns that belong to the dofs of the mask `dofs` (nv,)."""
        columns = self.packed.columns
        is_dof_column = (columns >= 0) & (columns < len(dofs))
        return is_dof_column & np.append(dofs, False)[np.where(is_dof_column, columns, -1)]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Compiled problem: objectives and constraints of a mechanism, split into independent subproblems.

    Attributes:
        objectives, closures: the compiled objectives and closures, in order.
        subproblems: independent parts, each with its packed tables.
        tree: kinematic tree of the mechanism, with nodes of the closing joints that need them.
        length_unit: characteristic length of the mechanism, m; residuals of lengths are divided by it in stages where
            this does not change the minimum (`Subproblem.rows`).
        closures_with_nodes: closures whose joint has nodes in the tree. The values of these joints follow q in x, the
            configuration vector of the tree (`closing_values`).
        joint_constraints: the joint constraints by name, in order.
        cone_joints: names of the joints in the tree with a cone limit.

    Example:
        >>> from mechanik.problem import ProblemSettings, compile_problem
        >>> arm, goal = mk.arm_2d([0.5, 0.3]), mk.PositionGoal("tool", (0.5, 0.3, 0.0))
        >>> problem = compile_problem(arm, [goal], [goal.relations(arm)], ProblemSettings([True] * 2, {}, [1.0] * 2))
        >>> len(problem.subproblems), round(problem.length_unit, 3)
        (1, 0.267)
    """

    objectives: tuple[Objective, ...]
    closures: tuple[Closure, ...]
    subproblems: tuple[Subproblem, ...]
    tree: KinematicTree
    length_unit: float
    closures_with_nodes: tuple[Closure, ...]
    joint_constraints: Mapping[str, JointConstraint]
    cone_joints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProblemSettings:
    """Weights of residuals and dofs, and the dofs that may move.

    Attributes:
        active: (nv,), mask of the dofs that may move.
        objective_weights: weight of the residual by index of the objective; default 1.
        dof_weights: (nv,), mobility weight of each dof: a dof with weight 0.1 moves less than a dof with weight 1, the
            default.
        position_weight, rotation_weight: weights of all lengths and of all angles of the objectives.
        eliminate_passive_sphericals: whether spherical joints whose rotation follows from a closure are eliminated; for
            the default solver only.
        tolerates_si_rows: whether the method reaches as many targets with residuals in m and rad as in units of the
            mechanism, if that has a usual size.

    Example:
        >>> from mechanik.problem import ProblemSettings
        >>> ProblemSettings(active=[True, False], objective_weights={0: 2.0}, dof_weights=[1.0, 1.0]).position_weight
        1.0
    """

    active: Sequence[bool]
    objective_weights: Mapping[int, float]
    dof_weights: Sequence[float]
    position_weight: float = 1.0
    rotation_weight: float = 1.0
    eliminate_passive_sphericals: bool = False
    tolerates_si_rows: bool = False


def compile_problem(
    mechanism: Mechanism,
    objectives: Sequence[Objective],
    relations: Sequence[Sequence[Relation]],
    settings: ProblemSettings,
) -> Problem:
    """Compile a mechanism and its objectives into independent subproblems for the general kernel.

    Args:
        mechanism: the mechanism; its closures, joint constraints and cones become hard constraints.
        objectives: the objectives; `write_targets` and `Subproblem.owners` refer to them by index.
        relations: relations of each objective. The caller evaluates them, because angle targets may depend on the
            present configuration (nearest equivalent angle).
        settings: weights, and the dofs that may move.

    Returns:
        The compiled problem.

    Example:
        >>> from mechanik.problem import ProblemSettings, compile_problem
        >>> arm, goal = mk.arm_2d([0.5, 0.3]), mk.PositionGoal("tool", (0.5, 0.3, 0.0))
        >>> problem = compile_problem(arm, [goal], [goal.relations(arm)], ProblemSettings([True] * 2, {}, [1.0] * 2))
        >>> problem.subproblems[0].packed.row_count
        3
    """
    closures = tuple(mechanism.closures.values())
    closures_with_nodes = [closure for closure in closures if _needs_nodes(closure)]
    tree = build_kinematic_tree(mechanism, closures_with_nodes)
    reach = tree.reach
    length_unit = reach * LENGTH_UNIT_SHARE if reach > 1e-9 else 1.0
    entries: list[tuple[int, bool, int, int, WeightedRelation]] = []  # level, optional, owner, index of the relation
    for owner, closure in enumerate(closures):
        for i, relation in enumerate(_make_closure_relations(mechanism, closure, closure in closures_with_nodes)):
            entries.append(
                (
                    -1,
                    False,
                    -1 - owner,
                    i,
                    WeightedRelation(
                        relation, max(CLOSURE_TOLERANCE, CLOSURE_ROUNDING_RATIO * length_unit), CLOSURE_TOLERANCE
                    ),
                )
            )
    joint_relations = joint_constraint_relations(mechanism) if mechanism.joint_constraints else {}
    for owner, relation in enumerate(joint_relations.values(), start=len(closures)):
        entries.append((-1, False, -1 - owner, 0, WeightedRelation(relation, CLOSURE_TOLERANCE, CLOSURE_TOLERANCE)))
    cones = cone_relations(mechanism) if mechanism.kinematics.cone_joints else {}
    for owner, cone in enumerate(cones.values(), start=len(closures) + len(mechanism.joint_constraints)):
        for i, relation in enumerate(cone):
            entries.append((-1, False, -1 - owner, i, WeightedRelation(relation, CLOSURE_TOLERANCE, CLOSURE_TOLERANCE)))
    for owner, (objective, objective_relations) in enumerate(zip(objectives, relations, strict=True)):
        weight = settings.objective_weights.get(owner, 1.0)
        for i, relation in enumerate(objective_relations):
            weighted_relation = WeightedRelation(relation, objective.tolerance, objective.angle_tolerance, weight)
            entries.append((objective.level, not objective.required, owner, i, weighted_relation))
    active_dofs = [*settings.active, *[True] * (len(tree.rotates) - tree.nv)]
    dof_weights = [*settings.dof_weights, *[1.0] * (len(tree.rotates) - tree.nv)]
    weights = settings.position_weight, settings.rotation_weight
    passive_sphericals: dict[int, PassiveSpherical] = {}
    if settings.eliminate_passive_sphericals:
        all_relations = [entry[4].relation for entry in entries]
        constraint_relations = {k: all_relations[k] for k, entry in enumerate(entries) if entry[2] < 0}
        passive_sphericals = find_passive_sphericals(
            tree,
            constraint_relations,
            all_relations,
            [is_active and weight == 1.0 for is_active, weight in zip(active_dofs, dof_weights, strict=True)],
        )
        tree = add_spherical_frames(tree, passive_sphericals)
        for k, joint in passive_sphericals.items():
            entries[k] = (*entries[k][:4], replace(entries[k][4], relation=joint.relation))
    # position_weight and rotation_weight do not apply to constraints, whose tolerances are in m and rad
    blocks = [
        ResidualBlock(tree, entry[4], active_dofs, length_unit, weights if entry[2] >= 0 else (1.0, 1.0))
        for entry in entries
    ]
    subproblems: list[Subproblem] = []
    for group in _group_blocks(blocks):
        stages = sorted({entries[k][:2] for k in group} | {(-1, False)})
        sorted_group = sorted(group, key=lambda k: (*entries[k][:2], k))
        for k in sorted_group:
            blocks[k].stage = stages.index(entries[k][:2])
        group_blocks = [blocks[k] for k in sorted_group]
        balanced_stages = _mixed_stages(group_blocks)
        is_usual_size = BALANCED_LENGTH_UNITS[0] <= length_unit <= BALANCED_LENGTH_UNITS[1]
        si_stages = [
            stage
            for stage in balanced_stages
            if stages[stage][1]
            or (is_usual_size and (settings.tolerates_si_rows or _is_overdetermined(group_blocks, stage)))
        ]
        _use_si_rows(group_blocks, si_stages)
        balanced_stages = tuple(stage for stage in balanced_stages if stage not in si_stages)
        rows = RowScaling.of_blocks(group_blocks)
        group_sphericals = [passive_sphericals[k] for k in sorted_group if k in passive_sphericals]
        packed = pack_problem(
            tree,
            group_blocks,
            [is_optional for _, is_optional in stages],
            length_unit,
            dof_weights,
            group_sphericals,
        )
        _use_si_rows(group_blocks, balanced_stages)
        moving_dofs = np.zeros(tree.nv, dtype=np.bool_)
        moving_dofs[[v for v in packed.columns if 0 <= v < tree.nv]] = True
        for joint in group_sphericals:
            moving_dofs[joint.v : joint.v + 3] = True
        subproblems.append(
            Subproblem(
                packed=packed,
                rows=rows,
                owners=tuple(entries[k][2] for k in sorted_group),
                relation_indices=tuple(entries[k][3] for k in sorted_group),
                levels=tuple(level for level, _ in stages),
                is_optional=tuple(is_optional for _, is_optional in stages),
                moving_dofs=moving_dofs,
                required_row_count=sum(
                    blocks[k].row_count
                    for k in sorted_group
                    if entries[k][2] >= 0 and not entries[k][1] and not blocks[k].has_bands
                ),
                passive_spherical_v=tuple(joint.v for joint in group_sphericals),
                balanced_stages=balanced_stages,
                si_rows=RowScaling.of_blocks(group_blocks) if balanced_stages else None,
            )
        )
    joint_constraints = mechanism.joint_constraints
    return Problem(
        tuple(objectives),
        closures,
        tuple(subproblems),
        tree,
        length_unit,
        tuple(closures_with_nodes),
        joint_constraints,
        tuple(cones),
    )


def _use_si_rows(blocks: Sequence[ResidualBlock], stages: Iterable[int]) -> None:
    """Give the rows of some stages the units m and rad."""
    for block in blocks:
        if block.stage in stages:
            block.use_si_rows()


def _is_overdetermined(blocks: Sequence[ResidualBlock], stage: int) -> bool:
    """Return whether a stage has more rows without bands than there are dofs, so that it can hardly be met."""
    dof_count = len({v for block in blocks for v in block.v_indices})
    return sum(block.row_count for block in blocks if block.stage == stage and not block.has_bands) > dof_count


def _mixed_stages(blocks: Sequence[ResidualBlock]) -> tuple[int, ...]:
    """Return the stages of objectives that add lengths to angles: only there the unit of lengths changes the minimum.

    The first stage has the closures, which are solved exactly.
    """
    return tuple(
        stage
        for stage in sorted({block.stage for block in blocks} - {0})
        if len({is_length for block in blocks if block.stage == stage for is_length in block.is_length}) > 1
    )


def _needs_nodes(closure: Closure) -> bool:
    """Return whether a closing joint needs nodes in the tree.

    This is so if the joint has several rotations and a limit on one of them, since no relation can express such a
    limit.
    """
    joint = closure.joint
    if not isinstance(joint, Joint):
        return False
    rotations = [dof for dof in joint.dof if dof in ROTATIONS]
    return len(rotations) > 1 and bool(np.isfinite([joint.limits(dof) for dof in rotations]).any())


def _make_closure_relations(mechanism: Mechanism, closure: Closure, has_nodes: bool) -> tuple[Relation, ...]:
    if not has_nodes:
        return (*closure_relations(mechanism, closure), *closure_limit_relations(mechanism, closure))
    closing_frame = f"closing {mechanism.name_of(closure.joint)}"
    weld = Relation(
        RelationKind.POSE, tuple(range(6)), closing_frame, mechanism.name_of(closure.link), X_b=closure.at.matrix
    )
    return (weld, *closure_cone_relations(mechanism, closure))


def closing_values(mechanism: Mechanism, problem: Problem, q: Array) -> Array:
    """Return the values of the closing joints with nodes at q (nq,), in the order of their nodes; m and rad.

    The values follow from the poses of the links at q, not from the present pose of the mechanism. Of a joint, the
    translations come first, then the rotations in reverse order.
    """
    values: list[float] = []
    for closure in problem.closures_with_nodes:
        poses = mechanism._closure_poses(closure, q)
        value_of = dict(zip(closure.free_dof, closure.joint_values_at(*poses, np.zeros(6)).tolist(), strict=True))
        translations = [dof for dof in value_of if not dof.is_rotation]
        rotations = [dof for dof in value_of if dof.is_rotation]
        values += [value_of[dof] for dof in (*translations, *reversed(rotations))]
    return np.array(values, dtype=np.float64)


def _group_blocks(blocks: Sequence[ResidualBlock]) -> list[list[int]]:
    """Return groups of block indices; blocks that share dofs, directly or through others, are in one group."""
    groups: list[tuple[set[int], set[int]]] = []
    for k, block in enumerate(blocks):
        block_indices, v_indices = {k}, set(block.v_indices)
        disjoint_groups: list[tuple[set[int], set[int]]] = []
        for group in groups:
            if group[1] & v_indices:
                block_indices, v_indices = block_indices | group[0], v_indices | group[1]
            else:
                disjoint_groups.append(group)
        groups = [*disjoint_groups, (block_indices, v_indices)]
    return sorted((sorted(block_indices) for block_indices, _ in groups), key=lambda block_indices: block_indices[0])


def same_structure(relation: Relation, other_relation: Relation) -> bool:
    """Return whether a problem that was compiled with one relation can be updated in place to the other.

    The relations may differ in the values of poses, world axes, targets and bands (`lower` and `upper`), and in their
    Python functions. All else must be the same.

    Example:
        >>> from mechanik.problem import same_structure
        >>> arm, goal = mk.arm_2d([0.5, 0.3]), mk.PositionGoal("tool", (0.5, 0.3, 0.0))
        >>> moved = goal.with_target((0.4, 0.3, 0.0))
        >>> same_structure(goal.relations(arm)[0], moved.relations(arm)[0])
        True
    """
    return (
        relation.kind is other_relation.kind
        and relation.rows == other_relation.rows
        and (relation.a, relation.b, relation.dof_name) == (other_relation.a, other_relation.b, other_relation.dof_name)
        and (relation.world_axes is None) == (other_relation.world_axes is None)
        and (relation.lower is None) == (other_relation.lower is None)
        and (relation.upper is None) == (other_relation.upper is None)
        and (relation.weight, relation.position_weight, relation.rotation_weight)
        == (other_relation.weight, other_relation.position_weight, other_relation.rotation_weight)
        and relation.terrain is other_relation.terrain
        and len(relation.polynomials) == len(other_relation.polynomials)
        and all(
            a[0] == b[0] and np.array_equal(a[1], b[1])
            for a, b in zip(relation.polynomials, other_relation.polynomials, strict=True)
        )
        and len(relation.masses) == len(other_relation.masses)
        and all(
            a[:2] == b[:2] and np.array_equal(a[2], b[2])
            for a, b in zip(relation.masses, other_relation.masses, strict=True)
        )
    )


def write_targets(
    problem: Problem, owner: int, relations: Sequence[Relation], copies: Sequence[PackedProblem] | None = None
) -> None:
    """Write new targets of an objective into packed problems, without compiling the problem again.

    Args:
        problem: the compiled problem.
        owner: index of the objective, as in `Subproblem.owners`.
        relations: all relations of the objective, with the same structure as the compiled relations
            (`same_structure`).
        copies: copies of the packed problem of each subproblem, which are changed. None: those of `problem` itself.

    Example:
        >>> from mechanik.problem import ProblemSettings, compile_problem, write_targets
        >>> arm, goal = mk.arm_2d([0.5, 0.3]), mk.PositionGoal("tool", (0.5, 0.3, 0.0))
        >>> problem = compile_problem(arm, [goal], [goal.relations(arm)], ProblemSettings([True] * 2, {}, [1.0] * 2))
        >>> write_targets(problem, 0, goal.with_target((0.4, 0.3, 0.0)).relations(arm))
        >>> problem.subproblems[0].packed.frames(0)[0][9:12].tolist()
        [0.4, 0.3, 0.0]
    """
    frames = problem.tree.frames
    all_packed = [subproblem.packed for subproblem in problem.subproblems] if copies is None else copies
    for subproblem, packed in zip(problem.subproblems, all_packed, strict=True):
        for block_index, (block_owner, relation_index) in enumerate(
            zip(subproblem.owners, subproblem.relation_indices, strict=True)
        ):
            if block_owner == owner:
                relation = relations[relation_index]
                X_node_a, X_node_b = (frames[link][1] for link in (relation.a, relation.b))
                packed.write_relation(block_index, relation, X_node_a, X_node_b)
