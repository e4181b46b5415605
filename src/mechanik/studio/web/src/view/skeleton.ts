// Skeleton: lines from the origin of each link to its joints and closure points.
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
  private lines: { link: number; end: Vector3 }[] = []; // end: in the frame of the link, m
  private radius = 0.01; // of a line, m

  loadModel(model: Model): void {
    this.thickLines?.overlay.dispose();
    const position = (pose: readonly number[]) => new Vector3(pose[0], pose[1], pose[2]);
    this.lines = [
      ...model.joints.map((joint) => ({ link: joint.parent, end: position(joint.pose) })),
      ...model.closures.map((closure) => ({ link: closure.link_b, end: position(closure.pose_b) })),
    ].filter((line) => line.link >= 0 && line.end.length() > 1e-4 * model.radius);
    this.radius = 0.005 * model.radius;
    this.thickLines = new ThickLines(this.lines.length);
    this.group.add(this.thickLines.overlay.group);
  }

  drawThrough(isOn: boolean): void {
    this.thickLines?.overlay.drawThrough(isOn);
  }

  update(links: Float64Array, theme: Theme): void {
    if (!this.group.visible || this.thickLines === null) return;
    colour.setHex(theme.line);
    this.lines.forEach(({ link, end }, k) => {
      setFromPose(pose, links, 7 * link);
      a.setFromMatrixPosition(pose);
      b.copy(end).applyMatrix4(pose);
      this.thickLines!.set(k, a, b, this.radius, colour, 0.95);
    });
    this.thickLines.overlay.instances.update();
  }
}
