// Lines of the world: curves of a scene, such as the path of a coupler, and the path that goals' points have walked.
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
import { poseInto } from "./pose";

export class Curves {
  readonly group = new Group();

  take(curves: CurveInfo[]): void {
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

const MOST = 4096; // places of a path; the oldest half goes when they are used up
const pose = new Matrix4();
const place = new Vector3();

interface Trail {
  line: Line<BufferGeometry, LineBasicMaterial>;
  places: BufferAttribute;
  count: number;
  last: Vector3;
}

export class Paths {
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

  paint(colour: number): void {
    for (const { line } of this.trails.values()) line.material.color.setHex(colour);
  }

  /** Goals' points are there now. step: places nearer than this to the last are left out, m. */
  walk(goals: GoalInfo[], links: Float64Array, step: number, colour: number): void {
    for (const goal of goals) {
      if (goal.is_link_drag || goal.pinned) continue;
      place.set(...goal.at).applyMatrix4(poseInto(pose, links, 7 * goal.link));
      const trail = this.trails.get(goal.number) ?? this.begin(goal.number, colour);
      if (trail.count > 0 && trail.last.distanceTo(place) < step) continue;
      if (trail.count === MOST) forget(trail);
      trail.places.setXYZ(trail.count, place.x, place.y, place.z);
      trail.places.addUpdateRange(3 * trail.count++, 3);
      trail.places.needsUpdate = true;
      trail.last.copy(place);
      trail.line.geometry.setDrawRange(0, trail.count);
    }
  }

  private begin(number: number, colour: number): Trail {
    const places = new BufferAttribute(new Float32Array(3 * MOST), 3).setUsage(DynamicDrawUsage);
    const geometry = new BufferGeometry().setAttribute("position", places);
    const line = new Line(
      geometry,
      new LineBasicMaterial({ color: new Color(colour), transparent: true, opacity: 0.85 }),
    );
    line.frustumCulled = false;
    this.group.add(line);
    const trail = { line, places, count: 0, last: new Vector3() };
    this.trails.set(number, trail);
    return trail;
  }
}

function forget(trail: Trail): void {
  const half = MOST >> 1;
  trail.places.array.copyWithin(0, 3 * half);
  trail.count = half;
  trail.places.clearUpdateRanges();
  trail.places.needsUpdate = true;
}
