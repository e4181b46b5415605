// What stands in the world and may be bumped into: drawn in one colour, red while something bumps into it.
import { Box3, Color, Group, Mesh, Sphere, Vector3, type BufferGeometry, type Raycaster } from "three";
import type { Model, ObstacleInfo } from "../messages";
import type { Materials } from "./materials";
import { fetchShape } from "./meshes";
import { paint } from "./paint";
import { poseInto } from "./pose";
import { merged, solid } from "./shapes";
import type { Theme } from "./theme";

const LARGE = 8; // radii of the model: what is wider, such as a floor, is not looked at as a whole

interface Drawn {
  info: ObstacleInfo;
  mesh: Mesh;
  shadow: Mesh;
  rim: Mesh | null;
}

export class Obstacles {
  readonly group = new Group();
  private infos: ObstacleInfo[] = [];
  private drawn: Drawn[] = [];
  private model: Model | null = null;
  private theme: Theme;
  private clashing: ReadonlySet<string> = new Set();
  private marked: { selected: string | null; hovered: string | null } = { selected: null, hovered: null };
  private hasShadows = true;

  /** changed: called when a mesh has come; failed: with a sentence for the person. */
  constructor(
    private readonly materials: Materials,
    theme: Theme,
    private readonly changed: () => void,
    private readonly failed: (text: string) => void,
  ) {
    this.theme = theme;
  }

  /** Others, or the same elsewhere. */
  take(infos: ObstacleInfo[], model: Model | null): void {
    const isMoved = model === this.model && sameShapes(infos, this.infos);
    this.infos = infos;
    this.model = model;
    if (isMoved) {
      for (const one of this.drawn) {
        one.info = infos.find(({ name }) => name === one.info.name)!;
        place(one);
      }
      return;
    }
    for (const { mesh } of this.drawn) mesh.geometry.dispose();
    this.group.clear();
    this.drawn = [];
    if (model === null) return;
    for (const info of infos) {
      const own = solid(info.shape, model);
      if (own) this.put(info, [own]);
      else void this.fetch(info);
    }
  }

  paint(theme: Theme): void {
    if (theme === this.theme) return;
    this.theme = theme;
    const { infos, model } = this;
    this.infos = [];
    this.take(infos, model);
  }

  castShadows(on: boolean): void {
    this.hasShadows = on;
    for (const { shadow } of this.drawn) shadow.visible = on;
  }

  /** Names of those that something bumps into now. */
  clash(names: ReadonlySet<string>): void {
    this.clashing = names;
    for (const one of this.drawn) this.dress(one);
  }

  mark(selected: string | null, hovered: string | null): void {
    if (selected === this.marked.selected && hovered === this.marked.hovered) return;
    this.marked = { selected, hovered };
    for (const one of this.drawn) this.dress(one);
  }

  /** The nearest that the ray meets; not one that is too wide: who points there mostly points beside everything. */
  pick(raycaster: Raycaster): { obstacle: string; point: Vector3 } | null {
    const meshes = this.drawn.filter((one) => !this.isLarge(boxAround(one))).map(({ mesh }) => mesh);
    const hit = raycaster.intersectObjects(meshes, false)[0];
    return hit === undefined ? null : { obstacle: hit.object.name, point: hit.point };
  }

  /** Around one of them; null if it is not drawn. */
  ball(name: string): Sphere | null {
    const one = this.drawn.find(({ info }) => info.name === name);
    return one ? boxAround(one).getBoundingSphere(new Sphere()) : null;
  }

  /** Corners of the boxes around them, but for those that are too wide to be seen as a whole. */
  places(): Vector3[] {
    const found: Vector3[] = [];
    for (const one of this.drawn) {
      const box = boxAround(one);
      if (this.isLarge(box)) continue;
      const ends = [box.min, box.max] as const;
      for (const x of ends) for (const y of ends) for (const z of ends) found.push(new Vector3(x.x, y.y, z.z));
    }
    return found;
  }

  private isLarge(box: Box3): boolean {
    return this.model === null || box.getSize(new Vector3()).length() > LARGE * this.model.radius;
  }

  private async fetch(info: ObstacleInfo): Promise<void> {
    try {
      const pieces = await fetchShape(info.shape);
      const now = this.infos.find(({ name, shape }) => name === info.name && shape.mesh === info.shape.mesh);
      if (!now || this.drawn.some((one) => one.info.name === now.name)) return; // it has gone, or come twice
      this.put(
        now,
        pieces.map(({ geometry }) => geometry.deleteAttribute("color")),
      );
      this.changed();
    } catch (why) {
      this.failed(`The obstacle '${info.name}' cannot be drawn: ${why instanceof Error ? why.message : String(why)}.`);
    }
  }

  private put(info: ObstacleInfo, parts: BufferGeometry[]): void {
    const rgba = info.shape.rgba;
    const colour = rgba ? new Color(rgba[0], rgba[1], rgba[2]) : new Color(this.theme.obstacle);
    const mesh = new Mesh(merged(parts.map((part) => paint(part, colour, 1))), this.materials.obstacle);
    mesh.matrixAutoUpdate = false;
    mesh.name = info.name;
    const shadow = new Mesh(mesh.geometry, this.materials.shadow);
    shadow.matrixAutoUpdate = false;
    shadow.frustumCulled = false; // it does not lie where the body is
    shadow.renderOrder = -3;
    shadow.visible = this.hasShadows;
    mesh.add(shadow);
    this.group.add(mesh);
    const one: Drawn = { info, mesh, shadow, rim: null };
    this.drawn.push(one);
    place(one);
    this.dress(one);
  }

  private dress(one: Drawn): void {
    const { obstacle, obstacleHovered, obstacleSelected, obstacleClash, rim } = this.materials;
    const isSelected = one.info.name === this.marked.selected;
    const marked = isSelected ? obstacleSelected : one.info.name === this.marked.hovered ? obstacleHovered : obstacle;
    one.mesh.material = this.clashing.has(one.info.name) ? obstacleClash : marked; // a rim still says what is selected
    one.rim?.removeFromParent();
    one.rim = null;
    if (isSelected) one.mesh.add((one.rim = new Mesh(one.mesh.geometry, rim)));
  }
}

function place({ info, mesh }: Drawn): void {
  poseInto(mesh.matrix, info.shape.pose);
  mesh.matrix.decompose(mesh.position, mesh.quaternion, mesh.scale);
  mesh.matrixWorldNeedsUpdate = true;
}

function boxAround({ mesh }: Drawn): Box3 {
  mesh.updateWorldMatrix(true, false);
  mesh.geometry.boundingBox ?? mesh.geometry.computeBoundingBox();
  return new Box3().copy(mesh.geometry.boundingBox!).applyMatrix4(mesh.matrixWorld);
}

/** Whether nothing but places may differ. */
function sameShapes(one: ObstacleInfo[], other: ObstacleInfo[]): boolean {
  const bare = ({ name, shape }: ObstacleInfo) => JSON.stringify([name, { ...shape, pose: 0 }]);
  return one.length === other.length && one.every((info, k) => info === other[k] || bare(info) === bare(other[k]!));
}
