// Other solutions, translucent: the shapes of the links once, placed as often as there are ghosts.
import { Group, InstancedMesh, Matrix4 } from "three";
import type { Body } from "./bodies";
import type { Materials } from "./materials";
import { poseInto } from "./pose";

const pose = new Matrix4();

export class Ghosts {
  readonly group = new Group();

  constructor(private readonly materials: Materials) {}

  /** poses: seven numbers a link, for each ghost. */
  take(links: Body[], poses: number[][]): void {
    for (const mesh of this.group.children) (mesh as InstancedMesh).dispose();
    this.group.clear();
    if (poses.length === 0) return;
    links.forEach((body, k) => {
      if (body.solid === null || !body.object.visible) return;
      const mesh = new InstancedMesh(body.solid.geometry, this.materials.ghost, poses.length);
      poses.forEach((numbers, ghost) => mesh.setMatrixAt(ghost, poseInto(pose, numbers, 7 * k)));
      mesh.frustumCulled = false;
      mesh.renderOrder = 1;
      this.group.add(mesh);
    });
  }
}
