// Goals: kind by shape, state by colour, and a dashed line from the link to a goal that is not reached.
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DoubleSide,
  DynamicDrawUsage,
  Group,
  LineBasicMaterial,
  LineSegments,
  Matrix4,
  Mesh,
  MeshBasicMaterial,
  Vector3,
} from "three";
import type { GoalInfo, GoalKindInfo } from "../messages";
import type { StateFrame } from "../connection/state_frame";
import { axes, goalShape, pin } from "./goal_shapes";
import { setFromPose } from "./pose_matrix";
import type { Theme } from "./theme";

const REACHED_BELOW = { distance: 1e-4, angle: 1e-3 }; // m, rad: not visible
const DASHES = 12; // of the line from the link to its goal
const AXES = [0xe5484d, 0x3fb950, 0x3f87f5];
const RENDER_ORDER = 8; // after everything else

interface DrawnGoal {
  info: GoalInfo;
  kind: GoalKindInfo;
  /** Its matrix is the pose of the goal. */
  object: Group;
  paint: MeshBasicMaterial;
  sheet: MeshBasicMaterial;
  edge: LineBasicMaterial;
  grips: Vector3[];
}

const pose = new Matrix4();
const from = new Vector3();
const to = new Vector3();
const state = new Color();

export class GoalMarkers {
  readonly group = new Group();
  private drawn: DrawnGoal[] = [];
  private order = -1;
  private size = 0.05;
  private radius = 1;
  private marked = { selected: 0, hovered: 0 };
  private isDrawnThrough = true;
  private readonly lines = new LineSegments(
    new BufferGeometry(),
    new LineBasicMaterial({ vertexColors: true, transparent: true }),
  );
  private readonly axisPaints = AXES.map((hex) => new MeshBasicMaterial({ color: hex }));

  constructor(private readonly kindOf: (kind: GoalInfo["kind"]) => GoalKindInfo) {
    this.lines.frustumCulled = false;
    this.group.add(this.lines);
  }

  /** radius: of the model, m. */
  load(goals: GoalInfo[], order: number, radius: number, scale: number): void {
    for (const { object, paint, sheet, edge } of this.drawn) {
      object.traverse((part) => {
        if (part instanceof Mesh || part instanceof LineSegments) (part.geometry as BufferGeometry).dispose();
      });
      object.removeFromParent();
      for (const material of [paint, sheet, edge]) material.dispose();
    }
    this.radius = radius;
    this.size = 0.1 * radius * scale;
    this.order = order;
    this.drawn = goals.map((info) => this.create(info));
    const corners = Math.max(1, goals.length) * 2 * DASHES;
    this.lines.geometry.dispose();
    this.lines.geometry = new BufferGeometry()
      .setAttribute("position", new BufferAttribute(new Float32Array(3 * corners), 3).setUsage(DynamicDrawUsage))
      .setAttribute("color", new BufferAttribute(new Float32Array(3 * corners), 3).setUsage(DynamicDrawUsage));
    this.drawThrough(this.isDrawnThrough);
  }

  object(number: number): Group | null {
    return this.drawn.find((goal) => goal.info.number === number)?.object ?? null;
  }

  drawThrough(on: boolean): void {
    this.isDrawnThrough = on;
    const materials = this.drawn.flatMap(({ paint, sheet, edge }) => [paint, sheet, edge]);
    for (const material of [...materials, ...this.axisPaints, this.lines.material as LineBasicMaterial])
      material.depthTest = !on;
  }

  /** Numbers of goals; 0: none. */
  updateHighlight(selected: number, hovered: number): void {
    this.marked = { selected, hovered };
  }

  /** Moves the goals to the poses of the frame if it lists the same goals, else to their targets. */
  update(frame: StateFrame | null, theme: Theme): void {
    const isFresh = frame !== null && frame.order === this.order;
    const forEachPosition = this.lines.geometry.getAttribute("position") as BufferAttribute;
    const colours = this.lines.geometry.getAttribute("color") as BufferAttribute;
    let corner = 0;
    this.drawn.forEach((goal, k) => {
      const { info, object } = goal;
      if (isFresh) setFromPose(object.matrix, frame.goals, 9 * k);
      else setFromPose(object.matrix, info.pose);
      const distance = isFresh ? frame.goals[9 * k + 7]! : 0;
      const angle = isFresh ? frame.goals[9 * k + 8]! : 0;
      const isReached = distance <= REACHED_BELOW.distance && angle <= REACHED_BELOW.angle;
      object.matrix.decompose(object.position, object.quaternion, object.scale);
      object.matrixWorldNeedsUpdate = true;
      this.updateColours(goal, isReached, theme);
      if (frame === null || !info.enabled) return;
      setFromPose(pose, frame.links, 7 * info.link);
      from.set(...info.at).applyMatrix4(pose);
      to.setFromMatrixPosition(object.matrix);
      const line = goal.kind.link_line;
      if (line === "none") return;
      if (line === "unreached" && (isReached || from.distanceTo(to) < 0.01 * this.radius)) return;
      if (line === "plumb") from.copy(to).setZ(0);
      corner = writeDashes(forEachPosition, colours, corner, state);
    });
    this.lines.geometry.setDrawRange(0, corner);
    forEachPosition.needsUpdate = colours.needsUpdate = true;
  }

  /** Visits the position of each goal; the vector is reused. */
  places(tell: (place: Vector3) => void): void {
    for (const { info, object } of this.drawn) if (!info.is_link_drag) tell(to.setFromMatrixPosition(object.matrix));
  }

  /** Visits the points where a pointer can grab a goal, in the world; the vector is reused. */
  forEachGrip(visit: (goal: number, place: Vector3) => void): void {
    for (const { info, object, grips } of this.drawn) {
      if (info.is_link_drag) continue;
      for (const grip of grips) visit(info.number, to.copy(grip).applyMatrix4(object.matrix));
    }
  }

  private create(info: GoalInfo): DrawnGoal {
    const kind = this.kindOf(info.kind);
    const shape = goalShape(info, kind.symbol, this.size);
    const object = new Group();
    object.matrixAutoUpdate = false;
    object.userData.goal = info.number;
    const paint = new MeshBasicMaterial({ transparent: true });
    const sheet = new MeshBasicMaterial({ transparent: true, opacity: 0.13, side: DoubleSide, depthWrite: false });
    const edge = new LineBasicMaterial({ transparent: true, opacity: 0.75 });
    const add = (part: Mesh | LineSegments, order = RENDER_ORDER) => {
      part.renderOrder = order;
      part.matrixAutoUpdate = false;
      object.add(part);
    };
    if (shape.sheet) add(new Mesh(shape.sheet, sheet), RENDER_ORDER - 1);
    if (shape.edges) add(new LineSegments(shape.edges, edge));
    add(new Mesh(shape.solid, paint));
    if (shape.hasAxes) axes(this.size).forEach((arrow, k) => add(new Mesh(arrow, this.axisPaints[k])));
    if (info.pinned) add(new Mesh(pin(1.3 * this.size), paint), RENDER_ORDER + 1);
    this.group.add(object);
    return { info, kind, object, paint, sheet, edge, grips: shape.grips };
  }

  private updateColours({ info, paint, sheet, edge }: DrawnGoal, isReached: boolean, theme: Theme): void {
    const { selected, hovered } = this.marked;
    if (!info.enabled) state.setHex(theme.disabled);
    else if (!isReached) state.setHex(theme.missed);
    else state.setHex(info.pinned ? theme.pinned : theme.reached);
    sheet.color.copy(state);
    edge.color.copy(state);
    if (info.number === selected) paint.color.setHex(theme.selected);
    else if (info.number === hovered) paint.color.setHex(theme.hovered);
    else paint.color.copy(state);
    paint.opacity = info.enabled ? 1 : 0.5;
  }
}

/** Writes a dashed line from `from` to `to` into the buffers; returns the next free vertex. */
function writeDashes(positions: BufferAttribute, colours: BufferAttribute, corner: number, colour: Color): number {
  for (let k = 0; k < DASHES; k++) {
    for (const share of [k / (DASHES - 0.45), (k + 0.55) / (DASHES - 0.45)]) {
      positions.setXYZ(
        corner,
        from.x + (to.x - from.x) * share,
        from.y + (to.y - from.y) * share,
        from.z + (to.z - from.z) * share,
      );
      colours.setXYZ(corner++, colour.r, colour.g, colour.b);
    }
  }
  return corner;
}
