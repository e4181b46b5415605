// Goals: recognised by shape, their state by colour, a dashed line where the link has not got there.
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
import type { GoalInfo } from "../messages";
import type { Frame } from "../wire/frame";
import { axes, goalShape, pin } from "./goal_shapes";
import { poseInto } from "./pose";
import type { Theme } from "./theme";

const REACHED = { distance: 1e-4, angle: 1e-3 }; // m, rad: what an eye cannot tell apart
const DASHES = 12; // of the line from a link to its goal
const AXES = [0xe5484d, 0x3fb950, 0x3f87f5];
const THROUGH = 8; // drawn after all else

interface Drawn {
  info: GoalInfo;
  /** Its matrix is the goal's pose. */
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

export class Goals {
  readonly group = new Group();
  private drawn: Drawn[] = [];
  private order = -1;
  private size = 0.05;
  private radius = 1;
  private marked = { selected: 0, hovered: 0 };
  private through = true;
  private readonly lines = new LineSegments(
    new BufferGeometry(),
    new LineBasicMaterial({ vertexColors: true, transparent: true }),
  );
  private readonly axisPaints = AXES.map((hex) => new MeshBasicMaterial({ color: hex }));

  constructor() {
    this.lines.frustumCulled = false;
    this.group.add(this.lines);
  }

  /** radius: of the model. */
  take(goals: GoalInfo[], order: number, radius: number, scale: number): void {
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
    this.drawn = goals.map((info) => this.make(info));
    const corners = Math.max(1, goals.length) * 2 * DASHES;
    this.lines.geometry.dispose();
    this.lines.geometry = new BufferGeometry()
      .setAttribute("position", new BufferAttribute(new Float32Array(3 * corners), 3).setUsage(DynamicDrawUsage))
      .setAttribute("color", new BufferAttribute(new Float32Array(3 * corners), 3).setUsage(DynamicDrawUsage));
    this.drawThrough(this.through);
  }

  object(number: number): Group | null {
    return this.drawn.find((goal) => goal.info.number === number)?.object ?? null;
  }

  drawThrough(on: boolean): void {
    this.through = on;
    const materials = this.drawn.flatMap(({ paint, sheet, edge }) => [paint, sheet, edge]);
    for (const material of [...materials, ...this.axisPaints, this.lines.material as LineBasicMaterial])
      material.depthTest = !on;
  }

  /** 0: none. */
  mark(selected: number, hovered: number): void {
    this.marked = { selected, hovered };
  }

  /** frame: its goals are taken if they are in the order of these; until then each stands where it was asked for. */
  update(frame: Frame | null, theme: Theme): void {
    const isFresh = frame !== null && frame.order === this.order;
    const places = this.lines.geometry.getAttribute("position") as BufferAttribute;
    const colours = this.lines.geometry.getAttribute("color") as BufferAttribute;
    let corner = 0;
    this.drawn.forEach((goal, k) => {
      const { info, object } = goal;
      if (isFresh) poseInto(object.matrix, frame.goals, 9 * k);
      else poseInto(object.matrix, info.pose);
      const distance = isFresh ? frame.goals[9 * k + 7]! : 0;
      const angle = isFresh ? frame.goals[9 * k + 8]! : 0;
      const isReached = distance <= REACHED.distance && angle <= REACHED.angle;
      object.matrix.decompose(object.position, object.quaternion, object.scale);
      object.matrixWorldNeedsUpdate = true;
      this.paint(goal, isReached, theme);
      if (frame === null || !info.enabled) return;
      poseInto(pose, frame.links, 7 * info.link);
      from.set(...info.at).applyMatrix4(pose);
      to.setFromMatrixPosition(object.matrix);
      const always = info.kind === "look_at" || info.kind === "centre_of_mass";
      if (!always && (isReached || from.distanceTo(to) < 0.01 * this.radius)) return;
      if (info.kind === "orientation" || info.kind === "axis") return; // where it is does not matter to them
      if (info.kind === "centre_of_mass") from.copy(to).setZ(0); // its plumb line
      corner = dashes(places, colours, corner, state);
    });
    this.lines.geometry.setDrawRange(0, corner);
    places.needsUpdate = colours.needsUpdate = true;
  }

  /** Where they are, one after the other; told in a vector that is used again. */
  places(tell: (place: Vector3) => void): void {
    for (const { info, object } of this.drawn) if (!info.is_link_drag) tell(to.setFromMatrixPosition(object.matrix));
  }

  /** Places that a pointer may take, in the world. */
  grips(tell: (goal: number, place: Vector3) => void): void {
    for (const { info, object, grips } of this.drawn) {
      if (info.is_link_drag) continue;
      for (const grip of grips) tell(info.number, to.copy(grip).applyMatrix4(object.matrix));
    }
  }

  private make(info: GoalInfo): Drawn {
    const shape = goalShape(info, this.size);
    const object = new Group();
    object.matrixAutoUpdate = false;
    object.userData.goal = info.number;
    const paint = new MeshBasicMaterial({ transparent: true });
    const sheet = new MeshBasicMaterial({ transparent: true, opacity: 0.13, side: DoubleSide, depthWrite: false });
    const edge = new LineBasicMaterial({ transparent: true, opacity: 0.75 });
    const add = (part: Mesh | LineSegments, order = THROUGH) => {
      part.renderOrder = order;
      part.matrixAutoUpdate = false;
      object.add(part);
    };
    if (shape.sheet) add(new Mesh(shape.sheet, sheet), THROUGH - 1);
    if (shape.edges) add(new LineSegments(shape.edges, edge));
    add(new Mesh(shape.solid, paint));
    if (shape.hasAxes) axes(this.size).forEach((arrow, k) => add(new Mesh(arrow, this.axisPaints[k])));
    if (info.pinned) add(new Mesh(pin(1.3 * this.size), paint), THROUGH + 1);
    this.group.add(object);
    return { info, object, paint, sheet, edge, grips: shape.grips };
  }

  private paint({ info, paint, sheet, edge }: Drawn, isReached: boolean, theme: Theme): void {
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

/** A dashed line from `from` to `to` into the buffers, from this corner on; the next free corner comes back. */
function dashes(places: BufferAttribute, colours: BufferAttribute, corner: number, colour: Color): number {
  for (let k = 0; k < DASHES; k++) {
    for (const share of [k / (DASHES - 0.45), (k + 0.55) / (DASHES - 0.45)]) {
      places.setXYZ(
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
