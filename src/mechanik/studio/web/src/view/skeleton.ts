// Skeleton: lines between the joint frames of each link.
import { Color, Group, Matrix4, Vector3 } from "three";
import type { Model } from "../messages";
import { setFromPose } from "./pose_matrix";
import { ThickLines } from "./thick_lines";
import type { Theme } from "./theme";

const pose = new Matrix4();
const a = new Vector3();
const b = new Vector3();
const colour = new Color();

export class Skeleton {
  readonly group = new Group();
  private thickLines: ThickLines | null = null;
  private lines: { link: number; to: Vector3 }[] = [];
  private thickness = 0.01;

  loadModel(model: Model): void {
    this.thickLines?.overlay.dispose();
    const to = (pose: readonly number[]) => new Vector3(pose[0], pose[1], pose[2]);
    this.lines = [
      ...model.joints.map((joint) => ({ link: joint.parent, to: to(joint.pose) })),
      ...model.closures.map((closure) => ({ link: closure.link_b, to: to(closure.pose_b) })),
    ].filter((line) => line.link >= 0 && line.to.length() > 1e-4 * model.radius);
    this.thickness = 0.005 * model.radius;
    this.thickLines = new ThickLines(this.lines.length);
    this.group.add(this.thickLines.overlay.group);
  }

  drawThrough(on: boolean): void {
    this.thickLines?.overlay.drawThrough(on);
  }

  update(links: Float64Array, theme: Theme): void {
    if (!this.group.visible || this.thickLines === null) return;
    colour.setHex(theme.line);
    this.lines.forEach(({ link, to }, k) => {
      setFromPose(pose, links, 7 * link);
      a.setFromMatrixPosition(pose);
      b.copy(to).applyMatrix4(pose);
      this.thickLines!.set(k, a, b, this.thickness, colour, 0.95);
    });
    this.thickLines.overlay.instances.update();
  }
}
