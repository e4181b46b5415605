// Lines in the world: curves of a scene, such as a coupler curve, and the trails of the points of goals.
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DynamicDrawUsage,
  Group,
  Line,
  LineBasicMaterial,
  Matrix4,
  Vector3,
} from "three";
import { Line2 } from "three/addons/lines/Line2.js";
import { LineGeometry } from "three/addons/lines/LineGeometry.js";
import { LineMaterial } from "three/addons/lines/LineMaterial.js";
import type { CurveInfo, GoalInfo } from "../messages";
import { setFromPose } from "./pose_matrix";

export class Curves {
  readonly group = new Group();

  load(curves: CurveInfo[]): void {
    for (const line of this.group.children as Line2[]) {
      line.geometry.dispose();
      line.material.dispose();
    }
    this.group.clear();
    for (const curve of curves) {
      if (curve.points.length < 6) continue;
      const points = curve.closed ? [...curve.points, ...curve.points.slice(0, 3)] : curve.points;
      const [red, green, blue, alpha] = curve.rgba;
      const material = new LineMaterial({ linewidth: 2, transparent: alpha < 1, opacity: alpha });
      material.color.setRGB(red, green, blue);
      this.group.add(new Line2(new LineGeometry().setPositions(points), material));
    }
  }
}

const MAX_TRAIL_POINTS = 4096; // per trail; when a trail is full, its oldest half is dropped
const pose = new Matrix4();
const position = new Vector3();

interface Trail {
  line: Line<BufferGeometry, LineBasicMaterial>;
  positions: BufferAttribute;
  pointCount: number;
  lastPoint: Vector3;
}

export class GoalTrails {
  readonly group = new Group();
  private readonly trails = new Map<number, Trail>();

  clear(): void {
    for (const { line } of this.trails.values()) {
      line.geometry.dispose();
      line.material.dispose();
    }
    this.trails.clear();
    this.group.clear();
  }

  setColour(colour: number): void {
    for (const { line } of this.trails.values()) line.material.color.setHex(colour);
  }

  /**
   * Adds the present points of the goals, except of pinned goals and of a link drag. links: seven numbers per link;
   * minStep: minimum distance of points, m.
   */
  extend(goals: GoalInfo[], links: Float64Array, minStep: number, colour: number): void {
    for (const goal of goals) {
      if (goal.is_link_drag || goal.pinned) continue;
      position.set(...goal.at).applyMatrix4(setFromPose(pose, links, 7 * goal.link));
      const trail = this.trails.get(goal.number) ?? this.createTrail(goal.number, colour);
      if (trail.pointCount > 0 && trail.lastPoint.distanceTo(position) < minStep) continue;
      if (trail.pointCount === MAX_TRAIL_POINTS) dropOldestHalf(trail);
      trail.positions.setXYZ(trail.pointCount, position.x, position.y, position.z);
      trail.positions.addUpdateRange(3 * trail.pointCount++, 3);
      trail.positions.needsUpdate = true;
      trail.lastPoint.copy(position);
      trail.line.geometry.setDrawRange(0, trail.pointCount);
    }
  }

  private createTrail(number: number, colour: number): Trail {
    const positions = new BufferAttribute(new Float32Array(3 * MAX_TRAIL_POINTS), 3).setUsage(DynamicDrawUsage);
    const geometry = new BufferGeometry().setAttribute("position", positions);
    const line = new Line(
      geometry,
      new LineBasicMaterial({ color: new Color(colour), transparent: true, opacity: 0.85 }),
    );
    line.frustumCulled = false;
    this.group.add(line);
    const trail = { line, positions, pointCount: 0, lastPoint: new Vector3() };
    this.trails.set(number, trail);
    return trail;
  }
}

function dropOldestHalf(trail: Trail): void {
  const half = MAX_TRAIL_POINTS >> 1;
  trail.positions.array.copyWithin(0, 3 * half);
  trail.pointCount = half;
  trail.positions.clearUpdateRanges();
  trail.positions.needsUpdate = true;
}
