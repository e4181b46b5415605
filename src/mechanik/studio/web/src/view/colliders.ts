// Collision shapes: translucent, with edges except for large meshes.
import { EdgesGeometry, LineSegments, Matrix4, Mesh, type BufferGeometry } from "three";
import type { Model, ShapeInfo } from "../messages";
import type { Materials } from "./materials";
import { fetchShape } from "./meshes";
import { setFromPose } from "./pose_matrix";
import { stripAttributes, mergeAll, primitiveGeometry } from "./shapes";

const MAX_TRIANGLES_WITH_EDGES = 20_000; // edge detection is slow for larger meshes

/** Loaded geometries of collision meshes. */
type Meshes = Map<ShapeInfo, BufferGeometry[]>;

/** All collision shapes of a link, in the frame of the link; null if there are none. */
export function colliderMesh(link: number, model: Model, materials: Materials, meshes: Meshes): Mesh | null {
  const parts: BufferGeometry[] = [];
  const matrix = new Matrix4();
  for (const shape of model.links[link]!.collisions) {
    const primitive = primitiveGeometry(shape, model);
    for (const part of primitive ? [primitive] : (meshes.get(shape) ?? [])) {
      parts.push(stripAttributes(part.applyMatrix4(setFromPose(matrix, shape.pose))));
    }
  }
  if (parts.length === 0) return null;
  const mesh = new Mesh(mergeAll(parts), materials.collider);
  if (mesh.geometry.index!.count <= 3 * MAX_TRIANGLES_WITH_EDGES)
    mesh.add(new LineSegments(new EdgesGeometry(mesh.geometry, 25), materials.colliderEdges));
  mesh.renderOrder = 2;
  return mesh;
}

/** Sets the material of collision shapes: red for a link in contact. */
export function setColliderContact(mesh: Mesh, isInContact: boolean, materials: Materials): void {
  mesh.material = isInContact ? materials.colliderContact : materials.collider;
  for (const edges of mesh.children)
    (edges as LineSegments).material = isInContact ? materials.colliderContactEdges : materials.colliderEdges;
}

/** Fetches the collision meshes of a link. onError: called with a message for each mesh that cannot be drawn. */
export async function fetchColliders(link: number, model: Model, onError: (text: string) => void): Promise<Meshes> {
  const { name, collisions } = model.links[link]!;
  const geometries: Meshes = new Map();
  await Promise.all(
    collisions.map(async (shape) => {
      if (shape.kind !== "mesh") return;
      try {
        const pieces = await fetchShape(shape);
        geometries.set(
          shape,
          pieces.map(({ geometry }) => geometry.deleteAttribute("color")),
        );
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        onError(`The collision mesh of link '${name}' cannot be drawn: ${reason}.`);
      }
    }),
  );
  return geometries;
}
