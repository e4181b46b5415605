// What links bump with: translucent, with edges where they are not too many.
import { EdgesGeometry, LineSegments, Matrix4, Mesh, type BufferGeometry } from "three";
import type { Model, ShapeInfo } from "../messages";
import type { Materials } from "./materials";
import { fetchShape } from "./meshes";
import { poseInto } from "./pose";
import { bare, merged, solid } from "./shapes";

const MOST_EDGED = 20_000; // triangles; to find the edges of more takes a time that is felt

type Meshes = Map<ShapeInfo, BufferGeometry[]>;

/** All that a link bumps with, in its frame; null for nothing. meshes: those that have come. */
export function collider(link: number, model: Model, materials: Materials, meshes: Meshes): Mesh | null {
  const parts: BufferGeometry[] = [];
  const place = new Matrix4();
  for (const shape of model.links[link]!.collisions) {
    const own = solid(shape, model);
    for (const part of own ? [own] : (meshes.get(shape) ?? [])) {
      parts.push(bare(part.applyMatrix4(poseInto(place, shape.pose))));
    }
  }
  if (parts.length === 0) return null;
  const mesh = new Mesh(merged(parts), materials.collider);
  if (mesh.geometry.index!.count <= 3 * MOST_EDGED)
    mesh.add(new LineSegments(new EdgesGeometry(mesh.geometry, 25), materials.colliderEdges));
  mesh.renderOrder = 2;
  return mesh;
}

/** Red while it bumps into something. */
export function paintCollider(mesh: Mesh, bumps: boolean, materials: Materials): void {
  mesh.material = bumps ? materials.colliderClash : materials.collider;
  for (const edges of mesh.children)
    (edges as LineSegments).material = bumps ? materials.colliderClashEdges : materials.colliderEdges;
}

/** The meshes among what a link bumps with. failed: called with a sentence for each that cannot be drawn. */
export async function fetchColliders(link: number, model: Model, failed: (text: string) => void): Promise<Meshes> {
  const { name, collisions } = model.links[link]!;
  const found: Meshes = new Map();
  await Promise.all(
    collisions.map(async (shape) => {
      if (shape.kind !== "mesh") return;
      try {
        const pieces = await fetchShape(shape);
        const plain = pieces.map(({ geometry }) => geometry.deleteAttribute("color"));
        found.set(shape, plain);
      } catch (why) {
        const reason = why instanceof Error ? why.message : String(why);
        failed(`What '${name}' bumps with cannot be drawn: ${reason}.`);
      }
    }),
  );
  return found;
}
