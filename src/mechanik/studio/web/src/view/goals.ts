// Markers of goals: shape by kind, colour by state, and for some kinds a dashed line (`GoalKindInfo.link_line`).
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

const MAX_REACHED_ERROR = { distance: 1e-4, angle: 1e-3 }; // m, rad; smaller errors are not visible
const DASHES = 12; // number of dashes of a line
const AXIS_COLOURS = [0xe5484d, 0x3fb950, 0x3f87f5];
const RENDER_ORDER = 8; // after other objects

interface DrawnGoal {
  info: GoalInfo;
  kind: GoalKindInfo;
  /** Object whose matrix is the pose of the goal. */
  object: Group;
  paint: MeshBasicMaterial;
  sheet: MeshBasicMaterial;
  edge: LineBasicMaterial;
  grips: Vector3[];
}

const pose = new Matrix4();
const lineStart = new Vector3();
const lineEnd = new Vector3();
const point = new Vector3();
const stateColour = new Color();

export class GoalMarkers {
  readonly group = new Group();
  private drawnGoals: DrawnGoal[] = [];
  private order = -1;
  private size = 0.05; // of a marker, m
  private radius = 1; // of the model, m
  private highlight = { selected: 0, hovered: 0 }; // numbers of goals; 0: none
  private isDrawnThrough = true;
  private readonly lines = new LineSegments(
    new BufferGeometry(),
    new LineBasicMaterial({ vertexColors: true, transparent: true }),
  );
  private readonly axisMaterials = AXIS_COLOURS.map((hex) => new MeshBasicMaterial({ color: hex }));

  constructor(private readonly kindOf: (kind: GoalInfo["kind"]) => GoalKindInfo) {
    this.lines.frustumCulled = false;
    this.group.add(this.lines);
  }

  /** order: `Goals.order`; radius: of the model, m; scale: size of markers as a multiple of the default size. */
  load(goals: GoalInfo[], order: number, radius: number, scale: number): void {
    for (const { object, paint, sheet, edge } of this.drawnGoals) {
      object.traverse((part) => {
        if (part instanceof Mesh || part instanceof LineSegments) (part.geometry as BufferGeometry).dispose();
      });
      object.removeFromParent();
      for (const material of [paint, sheet, edge]) material.dispose();
    }
    this.radius = radius;
    this.size = 0.1 * radius * scale;
    this.order = order;
    this.drawnGoals = goals.map((info) => this.create(info));
    const vertexCount = Math.max(1, goals.length) * 2 * DASHES;
    this.lines.geometry.dispose();
    this.lines.geometry = new BufferGeometry()
      .setAttribute("position", new BufferAttribute(new Float32Array(3 * vertexCount), 3).setUsage(DynamicDrawUsage))
      .setAttribute("color", new BufferAttribute(new Float32Array(3 * vertexCount), 3).setUsage(DynamicDrawUsage));
    this.drawThrough(this.isDrawnThrough);
  }

  /** The object of the goal with this number. */
  object(number: number): Group | null {
    return this.drawnGoals.find((goal) => goal.info.number === number)?.object ?? null;
  }

  drawThrough(isOn: boolean): void {
    this.isDrawnThrough = isOn;
    const materials = this.drawnGoals.flatMap(({ paint, sheet, edge }) => [paint, sheet, edge]);
    for (const material of [...materials, ...this.axisMaterials, this.lines.material as LineBasicMaterial])
      material.depthTest = !isOn;
  }

  /** selected, hovered: numbers of goals; 0: none. */
  updateHighlight(selected: number, hovered: number): void {
    this.highlight = { selected, hovered };
  }

  /** Moves the markers to the goal poses in the frame if it lists the same goals, else to `GoalInfo.pose`. */
  update(frame: StateFrame | null, theme: Theme): void {
    const hasSameGoals = frame !== null && frame.order === this.order;
    const positions = this.lines.geometry.getAttribute("position") as BufferAttribute;
    const colours = this.lines.geometry.getAttribute("color") as BufferAttribute;
    let vertex = 0;
    this.drawnGoals.forEach((goal, k) => {
      const { info, object } = goal;
      if (hasSameGoals) setFromPose(object.matrix, frame.goals, 9 * k);
      else setFromPose(object.matrix, info.pose);
      const distance = hasSameGoals ? frame.goals[9 * k + 7]! : 0;
      const angle = hasSameGoals ? frame.goals[9 * k + 8]! : 0;
      const isReached = distance <= MAX_REACHED_ERROR.distance && angle <= MAX_REACHED_ERROR.angle;
      object.matrix.decompose(object.position, object.quaternion, object.scale);
      object.matrixWorldNeedsUpdate = true;
      this.updateColours(goal, isReached, theme);
      if (frame === null || !info.enabled) return;
      setFromPose(pose, frame.links, 7 * info.link);
      lineStart.set(...info.at).applyMatrix4(pose);
      lineEnd.setFromMatrixPosition(object.matrix);
      const lineKind = goal.kind.link_line;
      if (lineKind === "none") return;
      if (lineKind === "unreached" && (isReached || lineStart.distanceTo(lineEnd) < 0.01 * this.radius)) return;
      if (lineKind === "plumb") lineStart.copy(lineEnd).setZ(0); // on the ground below the goal
      vertex = writeDashes(positions, colours, vertex, stateColour);
    });
    this.lines.geometry.setDrawRange(0, vertex);
    positions.needsUpdate = colours.needsUpdate = true;
  }

  /** Calls `visit` with the position of each goal except the goal of a link drag; the vector is reused. */
  forEachPosition(visit: (point: Vector3) => void): void {
    for (const { info, object } of this.drawnGoals)
      if (!info.is_link_drag) visit(point.setFromMatrixPosition(object.matrix));
  }

  /** Calls `visit` with each point in the world where a pointer can grab a goal; the vector is reused. */
  forEachGrip(visit: (goal: number, point: Vector3) => void): void {
    for (const { info, object, grips } of this.drawnGoals) {
      if (info.is_link_drag) continue;
      for (const grip of grips) visit(info.number, point.copy(grip).applyMatrix4(object.matrix));
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
    if (shape.hasAxes) axes(this.size).forEach((arrow, k) => add(new Mesh(arrow, this.axisMaterials[k])));
    if (info.pinned) add(new Mesh(pin(1.3 * this.size), paint), RENDER_ORDER + 1);
    this.group.add(object);
    return { info, kind, object, paint, sheet, edge, grips: shape.grips };
  }

  private updateColours({ info, paint, sheet, edge }: DrawnGoal, isReached: boolean, theme: Theme): void {
    const { selected, hovered } = this.highlight;
    if (!info.enabled) stateColour.setHex(theme.disabled);
    else if (!isReached) stateColour.setHex(theme.missed);
    else stateColour.setHex(info.pinned ? theme.pinned : theme.reached);
    sheet.color.copy(stateColour);
    edge.color.copy(stateColour);
    if (info.number === selected) paint.color.setHex(theme.selected);
    else if (info.number === hovered) paint.color.setHex(theme.hovered);
    else paint.color.copy(stateColour);
    paint.opacity = info.enabled ? 1 : 0.5;
  }
}

/** Writes a dashed line from `lineStart` to `lineEnd` into the buffers; returns the next free vertex. */
function writeDashes(positions: BufferAttribute, colours: BufferAttribute, vertex: number, colour: Color): number {
  for (let k = 0; k < DASHES; k++) {
    for (const share of [k / (DASHES - 0.45), (k + 0.55) / (DASHES - 0.45)]) {
      positions.setXYZ(
        vertex,
        lineStart.x + (lineEnd.x - lineStart.x) * share,
        lineStart.y + (lineEnd.y - lineStart.y) * share,
        lineStart.z + (lineEnd.z - lineStart.z) * share,
      );
      colours.setXYZ(vertex++, colour.r, colour.g, colour.b);
    }
  }
  return vertex;
}
