// Alternative solutions: translucent instances of the opaque link meshes.
import { Group, InstancedMesh, Matrix4 } from "three";
import type { DrawnLink } from "./bodies";
import type { Materials } from "./materials";
import { setFromPose } from "./pose_matrix";

const pose = new Matrix4();

export class AlternativeMeshes {
  readonly group = new Group();

  constructor(private readonly materials: Materials) {}

  /** poses: for each alternative, seven numbers per link, x y z qw qx qy qz. */
  load(links: DrawnLink[], poses: number[][]): void {
    for (const mesh of this.group.children) (mesh as InstancedMesh).dispose();
    this.group.clear();
    if (poses.length === 0) return;
    links.forEach((body, k) => {
      if (body.opaque === null || !body.object.visible) return;
      const mesh = new InstancedMesh(body.opaque.geometry, this.materials.alternative, poses.length);
      poses.forEach((numbers, index) => mesh.setMatrixAt(index, setFromPose(pose, numbers, 7 * k)));
      mesh.frustumCulled = false;
      mesh.renderOrder = 1;
      this.group.add(mesh);
    });
  }
}
