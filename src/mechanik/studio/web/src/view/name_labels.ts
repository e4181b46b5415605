// Shows the names of all links, joints and obstacles, or only the name of the object under the pointer.
import { Vector3, type Camera } from "three";
import type { Store } from "../store";
import type { Hit } from "./hit";
import type { LabelLayer } from "./labels";
import type { SceneGraph } from "./scene_graph";

const position = new Vector3();

/** area: area of the image, px. */
export function updateLabels(
  labels: LabelLayer,
  store: Store,
  graph: SceneGraph,
  hovered: Hit | null,
  camera: Camera,
  area: DOMRect,
): void {
  const { model, display } = store;
  labels.begin();
  if (model !== null && store.frame !== null) {
    const link = hovered?.kind === "link" ? hovered.link : -1;
    const dof = hovered?.kind === "dof" ? hovered.dof : -1;
    for (const [k, body] of graph.links.links.entries()) {
      if (!(display.labels || k === link) || !body.object.visible) continue;
      labels.show(
        `link ${k}`,
        "link",
        model.links[k]!.name,
        position.setFromMatrixPosition(body.object.matrix),
        camera,
        area,
      );
    }
    for (const [k, joint] of model.joints.entries()) {
      const frame = graph.dofFrames?.frames[joint.dofs[0] ?? -1];
      const isHovered = joint.dofs.includes(dof);
      if (frame === undefined || !(display.labels || isHovered)) continue;
      const text = isHovered ? model.dofs[dof]!.name : joint.name;
      labels.show(`joint ${k}`, "joint", text, position.setFromMatrixPosition(frame), camera, area);
    }
  }
  for (const { name, pose } of store.obstacles) {
    const isHovered = hovered?.kind === "obstacle" && hovered.obstacle === name;
    if (display.labels || isHovered)
      labels.show(`obstacle ${name}`, "link", name, position.fromArray(pose), camera, area);
  }
  labels.end();
}
