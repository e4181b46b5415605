// Lines between frames: from where a link is held to where it holds others.
import { Color, Group, Matrix4, Vector3 } from "three";
import type { Model } from "../messages";
import { poseInto } from "./pose";
import { Rods } from "./rods";
import type { Theme } from "./theme";

const pose = new Matrix4();
const a = new Vector3();
const b = new Vector3();
const colour = new Color();

export class Skeleton {
  readonly group = new Group();
  private rods: Rods | null = null;
  private lines: { link: number; to: Vector3 }[] = [];
  private thickness = 0.01;

  take(model: Model): void {
    this.rods?.overlay.dispose();
    const to = (pose: readonly number[]) => new Vector3(pose[0], pose[1], pose[2]);
    this.lines = [
      ...model.joints.map((joint) => ({ link: joint.parent, to: to(joint.pose) })),
      ...model.closures.map((closure) => ({ link: closure.link_b, to: to(closure.pose_b) })),
    ].filter((line) => line.link >= 0 && line.to.length() > 1e-4 * model.radius);
    this.thickness = 0.005 * model.radius;
    this.rods = new Rods(this.lines.length);
    this.group.add(this.rods.overlay.group);
  }

  drawThrough(on: boolean): void {
    this.rods?.overlay.drawThrough(on);
  }

  update(links: Float64Array, theme: Theme): void {
    if (!this.group.visible || this.rods === null) return;
    colour.setHex(theme.line);
    this.lines.forEach(({ link, to }, k) => {
      poseInto(pose, links, 7 * link);
      a.setFromMatrixPosition(pose);
      b.copy(to).applyMatrix4(pose);
      this.rods!.set(k, a, b, this.thickness, colour, 0.95);
    });
    this.rods.overlay.items.update();
  }
}
