"""Residual blocks of a problem: the nodes and dofs on which each relation depends, before columns are numbered.

The module also computes the parameters of joint constraints and terrains, which the kernels read from the table
`coefficients`, and chooses between the primal step (over columns) and the dual step (over rows) for each stage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mechanik.kernels import problem_layout
from mechanik.model.joint_constraint import term_scales
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.objectives.terrain import Terrain
from mechanik.problem.kinematic_tree import KinematicTree
from mechanik.spatial.array import Array

MIN_GRADIENT = 1e-12
"""Lower bound of the estimated gradient of a joint constraint, to avoid division by zero."""


def count_parameters(relations: Iterable[Relation]) -> int:
    """Return the number of parameters of all joint constraints and terrains; a shared terrain counts once."""
    all_relations = list(relations)
    constraint_parameter_count = sum(
        problem_layout.FIRST_FACTOR + len(coefficients)
        for relation in all_relations
        for _, coefficients in relation.polynomials
    )
    terrains = {id(relation.terrain): relation.terrain for relation in all_relations}.values()
    return constraint_parameter_count + sum(
        problem_layout.HEIGHTS + terrain.heights.size for terrain in terrains if terrain is not None
    )


def joint_constraint_parameters(relation: Relation, x_indices: Sequence[int], columns: Sequence[int]) -> list[float]:
    """Return the parameters of a JOINT_CONSTRAINT relation as the kernel reads them.

    Args:
        x_indices: index in x (`KinematicTree.x_of`) of each dof.
        columns: column of each dof within the block; -1 if the dof may not move.
    """
    parameters: list[float] = []
    for (_, coefficients), k, column in zip(relation.polynomials, x_indices, columns, strict=True):
        parameters += [k, column, len(coefficients), *coefficients.tolist()]
    return parameters


def terrain_parameters(terrain: Terrain) -> list[float]:
    """Return the parameters of a terrain as the kernel reads them: grid size, cell size, origin, then heights (m)."""
    grid_rows, grid_columns = terrain.heights.shape
    return [grid_columns, grid_rows, terrain.cell, *terrain.origin.tolist(), *terrain.heights.ravel().tolist()]


def largest_gradient(
    relation: Relation,
    limits: Callable[[str], tuple[float, float]],
    unit: Callable[[str], float] = lambda dof_name: 1.0,
) -> float:
    """Estimate the change of a joint constraint per unit of its most sensitive dof, as `JointConstraint.scale` does.

    Args:
        limits: limits of a dof by name, m or rad.
        unit: unit of a dof by name.
    """
    polynomials = relation.polynomials
    scales = term_scales(
        [(coefficients, limits(dof_name)) for dof_name, coefficients in polynomials], float(relation.target[0])
    )
    return max(
        [MIN_GRADIENT, *(unit(dof_name) * scale for (dof_name, _), scale in zip(polynomials, scales, strict=True))]
    )


@dataclass(frozen=True, slots=True)
class WeightedRelation:
    """Relation with its tolerances and an additional weight.

    Attributes:
        relation: the relation.
        tolerance, angle_tolerance: tolerances of lengths (m) and of angles (rad).
        weight: multiplies the weight of the relation.
    """

    relation: Relation
    tolerance: float
    angle_tolerance: float
    weight: float = 1.0


class ResidualBlock:
    """Residual rows of one relation, with the nodes and dofs on which they depend.

    Args:
        tree: kinematic tree of the problem.
        weighted_relation: the relation with tolerances.
        active: for each entry of v whether the dof may move.
        length_unit: characteristic length of the mechanism, m.
        weights: weights of lengths and of angles.

    Attributes:
        row_length_unit: m; rows that are lengths are divided by it. With the characteristic length of the mechanism
            they are comparable to angles; with 1 (`use_si_rows`) the cost is that of the user, in m and rad.
        v_indices: entries of v that may move and on which the rows depend, ascending; of a spherical joint, all three.
            They become columns when the problem is packed.
    """

    def __init__(
        self,
        tree: KinematicTree,
        weighted_relation: WeightedRelation,
        active: Sequence[bool],
        length_unit: float,
        weights: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        relation = weighted_relation.relation
        self.weighted_relation, self.relation, self.row_count = weighted_relation, relation, len(relation.rows)
        self.stage = 0
        self.node_a, self.X_a = _frame_in_node(tree, relation.a, relation.X_a)
        self.node_b, self.X_b = _frame_in_node(tree, relation.b, relation.X_b)
        self.masses = [(*_mass_in_node(tree, link, position), mass) for link, mass, position in relation.masses]
        self.x_index = 0
        self.constraint_gradient = 1.0
        direct_v: set[int] = set()  # entries of v on which the rows depend without a node
        nodes_a, nodes_b = set(tree.path(relation.a)), set(tree.path(relation.b))
        match relation.kind:
            case RelationKind.JOINT_VALUE | RelationKind.SPHERICAL_JOINT:
                self.x_index = tree.x_of[relation.dof_name]
                is_spherical = relation.kind is RelationKind.SPHERICAL_JOINT
                first_v = dict(tree.spherical_joints)[self.x_index] if is_spherical else int(tree.v_of_x[self.x_index])
                direct_v = {v for v in range(first_v, first_v + (3 if is_spherical else 1)) if active[v]}
            case RelationKind.JOINT_CONSTRAINT:
                dofs = {int(tree.v_of_x[tree.x_of[dof_name]]) for dof_name, _ in relation.polynomials}
                direct_v = {v for v in dofs if active[v]}
            case RelationKind.FUNCTION:
                direct_v = {v for v in range(tree.nv) if active[v]}
            case RelationKind.CENTRE_OF_MASS:
                nodes_b = {node for link, _, _ in relation.masses for node in tree.path(link)}
            case _:
                pass
        self.nodes = nodes_a | nodes_b
        depends_on_common_nodes = relation.world_axes is not None or relation.kind is RelationKind.CENTRE_OF_MASS
        moving_nodes = nodes_a | nodes_b if depends_on_common_nodes else nodes_a ^ nodes_b
        self.terms: list[tuple[int, int, int, bool, int, float]] = []  # v, node, axis, is rotation, side, ratio
        for node in sorted(moving_nodes):
            side = problem_layout.MOVES_A * (node in nodes_a) + problem_layout.MOVES_B * (node in nodes_b)
            for v, axis, is_rotation in tree.dofs_of(node):
                if active[v]:
                    self.terms.append((v, node, axis, is_rotation, side, float(tree.node(node).ratio)))
        self.v_indices = _complete_sphericals(tree, direct_v | {v for v, *_ in self.terms})
        self.has_spherical_joints = any(v in self.v_indices for _, v in tree.spherical_joints)
        self.is_length = relation.is_length
        if relation.kind is RelationKind.JOINT_VALUE:
            self.is_length = (not tree.rotates[tree.v_of_x[self.x_index]],)
        self.row_length_unit = length_unit
        self.length_weight, self.angle_weight = (
            weight * weighted_relation.weight * relation.weight * part_weight
            for weight, part_weight in zip(weights, (relation.position_weight, relation.rotation_weight), strict=True)
        )
        self._scaled_gradient = 1.0
        if relation.kind is RelationKind.JOINT_CONSTRAINT:
            self.constraint_gradient = largest_gradient(relation, tree.limits)
            self._scaled_gradient = largest_gradient(
                relation, tree.limits, lambda dof_name: 1.0 if tree.is_rotational(dof_name) else length_unit
            )

    def use_si_rows(self) -> None:
        """Give rows that are lengths the unit m."""
        self.row_length_unit = 1.0

    @property
    def weights(self) -> list[float]:
        """Factor of each row."""
        if self.relation.kind is RelationKind.JOINT_CONSTRAINT:
            return [self.angle_weight / self._scaled_gradient]
        length_factor = self.length_weight / self.row_length_unit
        return [length_factor if is_length else self.angle_weight for is_length in self.is_length]

    @property
    def is_chain(self) -> bool:
        """Whether the rows constrain the pose of the tip of a serial chain.

        Each dof then moves frame b, not frame a, and by one node.
        """
        relation = self.relation
        rotation_rows = sum(row >= 3 for row in relation.rows)
        motions = {(v, side) for v, _, _, _, side, _ in self.terms}
        return (
            relation.kind is RelationKind.POSE
            and relation.world_axes is None
            and rotation_rows in (0, 3)
            and not self.has_bands
            and not self.has_spherical_joints
            and motions == {(v, problem_layout.MOVES_B) for v in self.v_indices}
            and len(motions) == len(self.terms)
        )

    @property
    def is_joint_space(self) -> bool:
        """Whether the residual is the value of one joint (JOINT_VALUE or SPHERICAL_JOINT).

        Joint constraints, which can have several dofs, do not count.
        """
        return self.relation.kind in (RelationKind.JOINT_VALUE, RelationKind.SPHERICAL_JOINT)

    @property
    def has_bands(self) -> bool:
        """Whether the rows have a band; this is the same for all rows of a block."""
        return self.relation.lower is not None or self.relation.upper is not None

    def band(self, row: int) -> tuple[float, float]:
        """Return the lower and upper bound of a row; infinite where there is no bound."""
        lower, upper = self.relation.lower, self.relation.upper
        return (-math.inf if lower is None else float(lower[row])), (math.inf if upper is None else float(upper[row]))

    @property
    def row_units(self) -> list[float]:
        """Unit of each row in m, rad or the unit of a function: a row times its unit has only the weights of the user.

        Kernels use other units than m and rad to make rows comparable.
        """
        user_weights = (self.length_weight if is_length else self.angle_weight for is_length in self.is_length)
        return [user_weight / weight for user_weight, weight in zip(user_weights, self.weights, strict=True)]

    @property
    def mask(self) -> int:
        """Bit mask of the rows, as the kernel reads it."""
        if self.relation.kind is RelationKind.FUNCTION:
            return 0
        shift = 3 if self.relation.kind is RelationKind.COSINE else 0
        return sum(1 << (row + shift) for row in self.relation.rows)

    def squared_tolerances(self) -> tuple[float, float]:
        """Return the squared tolerances of rows 0-2 and of rows 3-5 of `mask`, in weighted units."""
        relation = self.relation
        first_rows_tolerance = self.weighted_relation.tolerance * self.length_weight / self.row_length_unit
        last_rows_tolerance = self.weighted_relation.angle_tolerance * self.angle_weight
        if relation.kind is RelationKind.JOINT_CONSTRAINT:
            # scaled such that the error of the most sensitive dof is within the tolerance
            first_rows_tolerance = self.weighted_relation.angle_tolerance * self.constraint_gradient * self.weights[0]
        if relation.kind in (RelationKind.LOOK_AT, RelationKind.SPHERICAL_JOINT) or (
            relation.kind is RelationKind.JOINT_VALUE and not self.is_length[0]
        ):
            first_rows_tolerance = last_rows_tolerance
        if relation.kind is RelationKind.COSINE and relation.lower is not None:
            # the derivative of the cosine by the angle is the negative sine
            sine = math.sqrt(max(1.0 - float(relation.lower[0]) ** 2, 0.0))
            last_rows_tolerance *= max(sine, self.weighted_relation.angle_tolerance)
        return first_rows_tolerance**2, last_rows_tolerance**2


def _frame_in_node(tree: KinematicTree, link: str | None, X: Array) -> tuple[int, Array]:
    node, X_node_link = tree.frames[link]
    return node, X_node_link @ X


def _mass_in_node(tree: KinematicTree, link: str, position: Array) -> tuple[int, Array]:
    node, X_node_link = tree.frames[link]
    return node, X_node_link[:3, :3] @ position + X_node_link[:3, 3]


def _complete_sphericals(tree: KinematicTree, used_v: set[int]) -> list[int]:
    """Return the given entries of v, completed to all three entries of each spherical joint, in ascending order."""
    v_indices = set(used_v)
    for _, v in tree.spherical_joints:
        if used_v & {v, v + 1, v + 2}:
            v_indices |= {v, v + 1, v + 2}
    return sorted(v_indices)


DUAL_MIN_RATIO, DUAL_MIN_COLUMNS = 2, 12
"""Smallest ratio of columns to rows, and smallest number of columns, at which the dual step is cheaper than the primal
step. Measured on arms of 7 to 30 joints."""


@dataclass(frozen=True, slots=True)
class StageLayout:
    """Form of the step of a stage.

    Attributes:
        hard_row_count: number of rows of the earlier stages.
        row_count: number of rows of a dual step: the rows of blocks with several rows or columns, plus
            min(hard_row_count, number of columns).
        uses_dual_form, uses_primal_form: form of the step; both are False if the stage has no rows.
        chain_block: index of the block of a dual stage that is a serial chain with known second derivatives; -1 if
            there is none.
    """

    hard_row_count: int
    row_count: int
    uses_dual_form: bool
    uses_primal_form: bool
    chain_block: int


def stage_layout(
    stage: int,
    blocks: Sequence[ResidualBlock],
    columns_by_block: Sequence[Sequence[int]],
    elimination_rank: Sequence[int],
) -> StageLayout:
    """Choose the form of the step of a stage.

    Args:
        columns_by_block: columns of each block.
        elimination_rank: position of each column in the order of elimination.
    """
    column_count = len(elimination_rank)
    hard_row_count = sum(block.row_count for block in blocks if block.stage < stage)
    stage_blocks = [b for b, block in enumerate(blocks) if block.stage == stage]
    matrix_blocks = [b for b in stage_blocks if (blocks[b].row_count, len(columns_by_block[b])) != (1, 1)]
    row_count = sum(blocks[b].row_count for b in matrix_blocks) + min(hard_row_count, column_count)
    uses_dual_form = bool(stage_blocks) and column_count >= max(DUAL_MIN_RATIO * row_count, DUAL_MIN_COLUMNS)
    if uses_dual_form and hard_row_count == 0:
        # the primal matrix may be sparse, for example if legs share nothing but a body
        uses_dual_form = row_count * row_count * column_count < _primal_work(
            matrix_blocks, blocks, columns_by_block, elimination_rank
        )
    chain_block = (
        matrix_blocks[0]
        if uses_dual_form and hard_row_count == 0 and len(matrix_blocks) == 1 and blocks[matrix_blocks[0]].is_chain
        else -1
    )
    return StageLayout(
        hard_row_count, row_count, uses_dual_form, bool(stage_blocks) and not uses_dual_form, chain_block
    )


def _primal_work(
    block_indices: Sequence[int],
    blocks: Sequence[ResidualBlock],
    columns_by_block: Sequence[Sequence[int]],
    elimination_rank: Sequence[int],
) -> int:
    """Estimate the number of multiplications to assemble the matrix of blocks and solve with it, without symmetry."""
    # column of the first entry of each row of the matrix; rows and columns are in the order of elimination
    first_entries = list(range(len(elimination_rank)))
    for b in block_indices:
        first_column = min((elimination_rank[k] for k in columns_by_block[b]), default=0)
        for k in columns_by_block[b]:
            first_entries[elimination_rank[k]] = min(first_entries[elimination_rank[k]], first_column)
    assembly_products = sum(blocks[b].row_count * len(columns_by_block[b]) ** 2 for b in block_indices)
    return assembly_products + sum((row - start) ** 2 for row, start in enumerate(first_entries))
