// Markers of all dofs: shape by kind, with their limits; red at a limit, except if selected or under the pointer.
import { Color, Group, Matrix4, Vector3, type BufferGeometry } from "three";
import type { DofInfo, Model } from "../messages";
import { isMany, arcSegments } from "./tessellation";
import type { InstanceTexture } from "./instance_texture";
import type { DofFrames } from "./dof_frames";
import { MARKER_VERTEX, sphericalMarker, translationMarker, rotationMarker } from "./marker_shapes";
import { Overlay } from "./overlay";
import { setFromPose } from "./pose_matrix";
import type { Theme } from "./theme";

const FREE_RAIL_RATIO = 1.4; // half length of a rail without limits, as a multiple of the marker size
const FULL_ROTATION = 2 * Math.PI;

/** Parameters of the geometry of a marker. */
interface MarkerShape {
  kind: DofInfo["kind"];
  segments: number; // segments of its arc or of each of its circles
  hasLimits: boolean;
}

const shapePose = new Matrix4();
const colour = new Color();
const point = new Vector3();
const local = new Vector3();

export class Markers {
  readonly group = new Group();
  private overlay: Overlay | null = null;
  private shapesKey = "";
  private sizes: number[] = [];
  private model: Model | null = null;
  private dofs: DofInfo[] = [];
  private highlight = { selected: -1, hovered: -1 }; // indices of dofs; -1: none
  private isDrawnThrough = true;

  loadModel(model: Model): void {
    this.model = model;
    this.sizes = model.dofs.map((dof) => markerSize(model, dof));
    this.updateShapes(model.dofs);
  }

  drawThrough(isOn: boolean): void {
    this.isDrawnThrough = isOn;
    this.overlay?.drawThrough(isOn);
  }

  updateHighlight(selected: number, hovered: number): void {
    this.highlight = { selected, hovered };
  }

  /** Default size of the marker of a dof, m. */
  size(dof: number): number {
    return this.sizes[dof] ?? 0;
  }

  update(frames: DofFrames, values: Float64Array, dofs: DofInfo[], scale: number, theme: Theme): void {
    if (dofs !== this.dofs) this.updateShapes(dofs); // limits may have changed
    const instances = this.overlay?.instances;
    if (!this.group.visible || this.model === null || instances === undefined) return;
    dofs.forEach((dof, k) => {
      const size = this.sizes[k]! * scale;
      const value = values[dof.value] ?? 0;
      instances.setPose(k, frames.frames[k]!, size);
      writeRange(instances, k, dof, value, size, this.model!.radius);
      this.setColour(colour, k, dof, value, theme);
      instances.setTint(k, colour.r, colour.g, colour.b, dof.locked || dof.mimics >= 0 ? 0.6 : 0.95);
    });
    instances.update();
  }

  /** Calls `visit` with each point in the world where a pointer can grab the marker of a dof; the vector is reused. */
  forEachGrip(
    dofIndex: number,
    frames: DofFrames,
    values: Float64Array,
    scale: number,
    visit: (grip: Vector3) => void,
  ): void {
    const dof = this.dofs[dofIndex]!;
    const frame = frames.frames[dofIndex]!;
    const size = this.sizes[dofIndex]! * scale;
    const value = values[dof.value] ?? 0;
    if (dof.kind === "translation") {
      for (const z of [-0.8, -0.4, 0, 0.4, 0.8]) visit(point.set(0, 0, value + z * size).applyMatrix4(frame));
    } else if (dof.kind === "spherical") visit(point.setFromMatrixPosition(frame));
    else {
      const [low, high] = arc(dof, value);
      const segments = Math.max(2, Math.ceil((48 * (high - low)) / FULL_ROTATION));
      for (let k = 0; k <= segments; k++) {
        const angle = low + ((high - low) * k) / segments;
        visit(point.set(size * Math.cos(angle), size * Math.sin(angle), 0).applyMatrix4(frame));
      }
      for (const r of [0.5, 0.8, 1.1])
        visit(point.set(r * size * Math.cos(value), r * size * Math.sin(value), 0).applyMatrix4(frame));
    }
  }

  /** Builds new geometries if the shapes have changed. */
  private updateShapes(dofs: DofInfo[]): void {
    this.dofs = dofs;
    const isCoarse = isMany(dofs.length);
    const markers = dofs.map((dof, k) => markerShape(dof, this.sizes[k]! / this.model!.radius, isCoarse));
    const key = JSON.stringify(markers);
    if (key === this.shapesKey) return;
    this.shapesKey = key;
    const oldOverlay = this.overlay;
    const shapes = new Map<string, [BufferGeometry, BufferGeometry]>();
    for (const shape of markers) {
      const shapeKey = JSON.stringify(shape);
      if (!shapes.has(shapeKey)) shapes.set(shapeKey, markerGeometries(shape));
    }
    const geometries = markers.map((shape) => shapes.get(JSON.stringify(shape))!);
    this.overlay = new Overlay(
      geometries.map(([geometry]) => geometry),
      MARKER_VERTEX,
      geometries.map(([, throughGeometry]) => throughGeometry),
    );
    this.overlay.drawThrough(this.isDrawnThrough);
    this.group.add(this.overlay.group);
    oldOverlay?.dispose(); // after the new overlay exists, so that the shared shader is not compiled again
  }

  private setColour(result: Color, dofIndex: number, dof: DofInfo, value: number, theme: Theme): void {
    const { selected, hovered } = this.highlight;
    if (dofIndex === selected) result.setHex(theme.selected);
    else if (dofIndex === hovered) result.setHex(theme.hovered);
    else if (dof.kind !== "spherical" && isAtLimit(dof, value)) result.setHex(theme.atLimit);
    else if (dof.locked) result.setHex(theme.locked);
    else if (dof.mimics >= 0) result.setHex(theme.mimic);
    else result.setHex(theme[dof.kind]);
  }
}

/** sizeRatio: size of the marker divided by the radius of the model. */
function markerShape(dof: DofInfo, sizeRatio: number, isCoarse: boolean): MarkerShape {
  const { kind, lower, upper } = dof;
  if (kind === "translation") return { kind, segments: 0, hasLimits: true };
  const [low, high] = kind === "rotation" ? arc(dof, 0) : [0, FULL_ROTATION];
  return { kind, segments: arcSegments(sizeRatio, high - low, isCoarse), hasLimits: lower !== null || upper !== null };
}

/** The geometry of a marker, and the geometry that is drawn through bodies, which has no sector. */
function markerGeometries({ kind, segments: count, hasLimits }: MarkerShape): [BufferGeometry, BufferGeometry] {
  if (kind === "rotation")
    return [rotationMarker(count, hasLimits, hasLimits), rotationMarker(count, hasLimits, false)];
  const shape = kind === "translation" ? translationMarker() : sphericalMarker(count);
  return [shape, shape];
}

/** Whether a value is within half a per cent of the range, or 1e-6 (m or rad), of a limit. */
export function isAtLimit({ lower, upper }: DofInfo, value: number): boolean {
  const tolerance = lower !== null && upper !== null ? Math.max(1e-6, 0.005 * (upper - lower)) : 1e-6;
  return (lower !== null && value - lower <= tolerance) || (upper !== null && upper - value <= tolerance);
}

/**
 * Range of the ring of a rotation, rad: the limits if they are less than a full rotation apart; a full rotation from a
 * single limit; else a full rotation with the value in the middle.
 */
function arc({ lower, upper }: DofInfo, value: number): [number, number] {
  if (lower !== null && upper !== null && upper - lower < FULL_ROTATION) return [lower, upper];
  if (lower !== null && upper === null) return [lower, lower + FULL_ROTATION];
  if (upper !== null && lower === null) return [upper - FULL_ROTATION, upper];
  return [value - FULL_ROTATION / 2, value + FULL_ROTATION / 2];
}

/** Writes range and value of a dof for the shader. size: of the marker, m; maxHalfLength: of a rail with limits, m. */
function writeRange(
  instances: InstanceTexture,
  k: number,
  dof: DofInfo,
  value: number,
  size: number,
  maxHalfLength: number,
): void {
  const { lower, upper } = dof;
  if (dof.kind === "rotation") {
    const [low, high] = arc(dof, value);
    const isPartialRotation = high - low < FULL_ROTATION - 1e-9;
    const lowStop = isPartialRotation || lower !== null ? 1 : 0;
    const highStop = isPartialRotation || upper !== null ? 2 : 0;
    instances.setRange(k, low, high, value, lowStop + highStop);
    return;
  }
  const hasLow = lower !== null && value - lower < maxHalfLength;
  const hasHigh = upper !== null && upper - value < maxHalfLength;
  const low = hasLow ? lower : value - (lower === null ? FREE_RAIL_RATIO * size : maxHalfLength);
  const high = hasHigh ? upper : value + (upper === null ? FREE_RAIL_RATIO * size : maxHalfLength);
  instances.setRange(k, low / size, high / size, value / size, (hasLow ? 1 : 0) + (hasHigh ? 2 : 0));
}

/** Size of a marker, m: slightly larger than the bodies at the joint; rotation markers of one joint are nested. */
function markerSize(model: Model, dof: DofInfo): number {
  const joint = model.joints[dof.joint]!;
  const thickness = Math.max(
    thicknessAt(model, joint.parent, joint.pose),
    joint.child < 0 ? 0 : thicknessAt(model, joint.child, [0, 0, 0]),
  );
  const size = Math.min(0.2 * model.radius, Math.max(0.055 * model.radius, 1.22 * thickness));
  const rotations = joint.dofs.filter((k) => model.dofs[k]!.kind === "rotation");
  const index = dof.kind === "rotation" ? rotations.findIndex((k) => model.dofs[k] === dof) : 0;
  return size * (1 - 0.13 * Math.max(0, index));
}

/**
 * Largest radius (m) of the visual shapes of a link at a point of the link; 0 if there are none. The radius of a box is
 * taken as 0.6 times its middle edge. Meshes and shapes that are too large for a marker are ignored.
 */
function thicknessAt(model: Model, link: number, position: readonly number[]): number {
  let largestThickness = 0;
  const maxThickness = 0.2 * model.radius; // plates and torsos are often thicker
  for (const { kind, sizes, pose } of model.links[link]?.visuals ?? []) {
    if (kind === "mesh") continue;
    local.fromArray(position as number[]).applyMatrix4(setFromPose(shapePose, pose).invert());
    const [a = 0, b = 0, c = 0] = sizes;
    const [x, y, z] = [Math.abs(local.x), Math.abs(local.y), Math.abs(local.z)];
    if (kind === "box") {
      const thickness = 0.6 * [a, b, c].sort((first, second) => first - second)[1]!;
      const isInside = thickness < maxThickness && Math.max(x - a / 2, y - b / 2, z - c / 2) < 0.02 * model.radius;
      if (isInside) largestThickness = Math.max(largestThickness, thickness);
    } else if (a < maxThickness && Math.hypot(x, y, Math.max(0, z - (kind === "sphere" ? 0 : b / 2))) <= a)
      largestThickness = Math.max(largestThickness, a);
  }
  return largestThickness;
}
