// Draws the small opaque meshes of all links in one call and their shadows in another call: with many links, separate
// draw calls would need most of the time.
import { Group, Matrix4, Mesh, type BufferGeometry } from "three";
import type { DrawnLink } from "./bodies";
import { InstanceTexture, mergeInstances } from "./instance_texture";
import type { Materials } from "./materials";

/** Layer of meshes that are not drawn separately but can be picked. */
export const PICK_ONLY_LAYER = 1;
const MAX_TRIANGLES = 6000; // larger meshes are drawn separately, since separate meshes can be culled

const HIDDEN_POSE = new Matrix4().makeScale(0, 0, 0);

export class MergedMeshes {
  readonly group = new Group();
  private instances = new InstanceTexture(0);
  private mergedLinks = new Set<number>();
  private body: Mesh<BufferGeometry> | null = null;
  private shadow: Mesh<BufferGeometry> | null = null;

  constructor(private readonly materials: Materials) {}

  has(link: number): boolean {
    return this.mergedLinks.has(link);
  }

  /** Merges the opaque meshes of these links, except large meshes. */
  merge(links: DrawnLink[]): void {
    this.body?.geometry.dispose();
    this.instances.texture.dispose();
    this.group.clear();
    this.body = this.shadow = null;
    const smallMeshes = links.flatMap(({ opaque }, k) =>
      opaque && triangleCount(opaque) <= MAX_TRIANGLES ? [{ k, opaque }] : [],
    );
    this.mergedLinks = new Set(smallMeshes.map(({ k }) => k));
    this.instances = new InstanceTexture(links.length);
    if (smallMeshes.length === 0) return;
    const { merged, mergedShadow } = this.materials;
    for (const material of [merged, mergedShadow]) material.uniforms.items!.value = this.instances.texture;
    const geometry = mergeInstances(
      smallMeshes.map(({ opaque }) => opaque.geometry),
      smallMeshes.map(({ k }) => k),
    );
    this.body = new Mesh(geometry, merged);
    this.shadow = new Mesh(geometry, mergedShadow);
    this.shadow.renderOrder = -3;
    for (const mesh of [this.body, this.shadow]) {
      mesh.frustumCulled = false; // the shader moves the vertices
      mesh.matrixAutoUpdate = false;
      this.group.add(mesh);
    }
  }

  setVisibility(bodies: boolean, shadows: boolean): void {
    if (this.body) this.body.visible = bodies;
    if (this.shadow) this.shadow.visible = shadows;
  }

  /** isSeparate: the link is drawn separately; only its shadow is drawn in the merged mesh. */
  setPose(link: number, pose: Matrix4, isVisible: boolean, isSeparate: boolean): void {
    this.instances.setPose(link, isVisible ? pose : HIDDEN_POSE);
    this.instances.setTint(link, isSeparate ? 0 : 1, 0, 0, 0);
  }

  /** Uploads the poses. */
  update(): void {
    this.instances.update();
  }
}

function triangleCount({ geometry }: Mesh): number {
  return (geometry.index?.count ?? 0) / 3;
}
