// Which names stand in the picture: all if that is wanted, else that of what the pointer is over.
import { Vector3, type Camera } from "three";
import type { Store } from "../store";
import type { Hit } from "./hit";
import type { Words } from "./labels";
import type { Stage } from "./stage";

const place = new Vector3();

/** area: of the picture within the window, pixels. */
export function nameThings(
  words: Words,
  store: Store,
  stage: Stage,
  hovered: Hit | null,
  camera: Camera,
  area: DOMRect,
): void {
  const { model, display } = store;
  words.begin();
  if (model !== null && store.frame !== null) {
    const link = hovered?.kind === "link" ? hovered.link : -1;
    const freedom = hovered?.kind === "freedom" ? hovered.freedom : -1;
    for (const [k, body] of stage.bodies.links.entries()) {
      if (!(display.labels || k === link) || !body.object.visible) continue;
      words.put(
        `link ${k}`,
        "link",
        model.links[k]!.name,
        place.setFromMatrixPosition(body.object.matrix),
        camera,
        area,
      );
    }
    for (const [k, joint] of model.joints.entries()) {
      const first = stage.joints?.frames[joint.dofs[0] ?? -1];
      const isHovered = joint.dofs.includes(freedom);
      if (first === undefined || !(display.labels || isHovered)) continue;
      const text = isHovered ? model.dofs[freedom]!.name : joint.name;
      words.put(`joint ${k}`, "joint", text, place.setFromMatrixPosition(first), camera, area);
    }
  }
  for (const { name, pose } of store.obstacles) {
    const isHovered = hovered?.kind === "obstacle" && hovered.obstacle === name;
    if (display.labels || isHovered) words.put(`obstacle ${name}`, "link", name, place.fromArray(pose), camera, area);
  }
  words.end();
}
