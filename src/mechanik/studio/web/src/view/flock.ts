// The bodies of many links in one draw and their shadows in another: where there are many links, most of the time would
// go into starting draws.
import { Group, Matrix4, Mesh, type BufferGeometry } from "three";
import type { Body } from "./bodies";
import { Items, together } from "./items";
import type { Materials } from "./materials";

/** Layer of bodies that are not drawn by themselves, but can be picked. */
export const PICKED = 1;
const LARGE = 6000; // triangles: a body with more is drawn by itself, and not at all where it is out of the picture

const NOWHERE = new Matrix4().makeScale(0, 0, 0);

export class Flock {
  readonly group = new Group();
  private items = new Items(0);
  private members = new Set<number>();
  private body: Mesh<BufferGeometry> | null = null;
  private shadow: Mesh<BufferGeometry> | null = null;

  constructor(private readonly materials: Materials) {}

  has(link: number): boolean {
    return this.members.has(link);
  }

  /** Draw these links' solid bodies together, but for the large ones. */
  gather(links: Body[]): void {
    this.body?.geometry.dispose();
    this.items.texture.dispose();
    this.group.clear();
    this.body = this.shadow = null;
    const small = links.flatMap(({ solid }, k) => (solid && trianglesOf(solid) <= LARGE ? [{ k, solid }] : []));
    this.members = new Set(small.map(({ k }) => k));
    this.items = new Items(links.length);
    if (small.length === 0) return;
    const { flock, flockShadow } = this.materials;
    for (const material of [flock, flockShadow]) material.uniforms.items!.value = this.items.texture;
    const geometry = together(
      small.map(({ solid }) => solid.geometry),
      small.map(({ k }) => k),
    );
    this.body = new Mesh(geometry, flock);
    this.shadow = new Mesh(geometry, flockShadow);
    this.shadow.renderOrder = -3;
    for (const mesh of [this.body, this.shadow]) {
      mesh.frustumCulled = false; // the shader moves it
      mesh.matrixAutoUpdate = false;
      this.group.add(mesh);
    }
  }

  show(bodies: boolean, shadows: boolean): void {
    if (this.body) this.body.visible = bodies;
    if (this.shadow) this.shadow.visible = shadows;
  }

  /** isAlone: drawn by itself at this moment, so that only its shadow is drawn here. */
  pose(link: number, pose: Matrix4, isSeen: boolean, isAlone: boolean): void {
    this.items.setPose(link, isSeen ? pose : NOWHERE);
    this.items.setTint(link, isAlone ? 0 : 1, 0, 0, 0);
  }

  /** After all were posed. */
  update(): void {
    this.items.update();
  }
}

function trianglesOf({ geometry }: Mesh): number {
  return (geometry.index?.count ?? 0) / 3;
}
