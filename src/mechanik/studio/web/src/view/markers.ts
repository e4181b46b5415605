// A marker for each freedom by kind, with its limits: rings that turn, rails that slide, balls; red at a limit.
import { Color, Group, Matrix4, Vector3, type BufferGeometry } from "three";
import type { DofInfo, Model } from "../messages";
import { isMany, pieces } from "./corners";
import type { Items } from "./items";
import type { JointFrames } from "./joint_frames";
import { MARKER_VERTEX, ballMarker, slideMarker, turnMarker } from "./marker_shapes";
import { Overlay } from "./overlay";
import { poseInto } from "./pose";
import type { Theme } from "./theme";

const FREE_RAIL = 1.4; // half length of a rail without limits, in sizes of its marker
const FULL = 2 * Math.PI;

/** What tells how a marker looks, but for what its shader makes of the freedom's numbers. */
interface Look {
  kind: DofInfo["kind"];
  pieces: number; // of its circles
  hasLimits: boolean;
}

const scaled = new Matrix4();
const colour = new Color();
const point = new Vector3();
const local = new Vector3();

export class Markers {
  readonly group = new Group();
  private overlay: Overlay | null = null;
  private looks = "";
  private sizes: number[] = [];
  private model: Model | null = null;
  private freedoms: DofInfo[] = [];
  private marked = { selected: -1, hovered: -1 };
  private through = true;

  take(model: Model): void {
    this.model = model;
    this.sizes = model.dofs.map((freedom) => nested(model, freedom));
    this.shape(model.dofs);
  }

  drawThrough(on: boolean): void {
    this.through = on;
    this.overlay?.drawThrough(on);
  }

  mark(selected: number, hovered: number): void {
    this.marked = { selected, hovered };
  }

  /** Size of a freedom's marker, m, before the person's own scale. */
  size(freedom: number): number {
    return this.sizes[freedom] ?? 0;
  }

  update(frames: JointFrames, values: Float64Array, freedoms: DofInfo[], scale: number, theme: Theme): void {
    if (freedoms !== this.freedoms) this.shape(freedoms); // limits may have changed
    const items = this.overlay?.items;
    if (!this.group.visible || this.model === null || items === undefined) return;
    freedoms.forEach((freedom, k) => {
      const size = this.sizes[k]! * scale;
      const value = values[freedom.value] ?? 0;
      items.setPose(k, frames.frames[k]!, size);
      writeRange(items, k, freedom, value, size, this.model!.radius);
      this.paint(colour, k, freedom, value, theme);
      items.setTint(k, colour.r, colour.g, colour.b, freedom.locked || freedom.mimics >= 0 ? 0.6 : 0.95);
    });
    items.update();
  }

  /** Places on the marker that a pointer may take, in the world; told one after the other. */
  grips(
    number: number,
    frames: JointFrames,
    values: Float64Array,
    scale: number,
    tell: (place: Vector3) => void,
  ): void {
    const freedom = this.freedoms[number]!;
    const frame = frames.frames[number]!;
    const size = this.sizes[number]! * scale;
    const value = values[freedom.value] ?? 0;
    if (freedom.kind === "translation") {
      for (const z of [-0.8, -0.4, 0, 0.4, 0.8]) tell(point.set(0, 0, value + z * size).applyMatrix4(frame));
    } else if (freedom.kind === "spherical") tell(point.setFromMatrixPosition(frame));
    else {
      const [low, high] = arc(freedom, value);
      const pieces = Math.max(2, Math.ceil((48 * (high - low)) / FULL));
      for (let k = 0; k <= pieces; k++) {
        const angle = low + ((high - low) * k) / pieces;
        tell(point.set(size * Math.cos(angle), size * Math.sin(angle), 0).applyMatrix4(frame));
      }
      for (const r of [0.5, 0.8, 1.1])
        tell(point.set(r * size * Math.cos(value), r * size * Math.sin(value), 0).applyMatrix4(frame));
    }
  }

  /** New shapes, if other ones are needed than those that are there. */
  private shape(freedoms: DofInfo[]): void {
    this.freedoms = freedoms;
    const isPlain = isMany(freedoms.length);
    const looks = freedoms.map((freedom, k) => lookOf(freedom, this.sizes[k]! / this.model!.radius, isPlain));
    const written = JSON.stringify(looks);
    if (written === this.looks) return;
    this.looks = written;
    const before = this.overlay;
    const shapes = new Map<string, [BufferGeometry, BufferGeometry]>();
    for (const look of looks) if (!shapes.has(JSON.stringify(look))) shapes.set(JSON.stringify(look), shapesOf(look));
    const all = looks.map((look) => shapes.get(JSON.stringify(look))!);
    this.overlay = new Overlay(
      all.map(([seen]) => seen),
      MARKER_VERTEX,
      all.map(([, faintly]) => faintly),
    );
    this.overlay.drawThrough(this.through);
    this.group.add(this.overlay.group);
    before?.dispose(); // only now: the shader that both have is not built again
  }

  private paint(into: Color, number: number, freedom: DofInfo, value: number, theme: Theme): void {
    const { selected, hovered } = this.marked;
    if (number === selected) into.setHex(theme.selected);
    else if (number === hovered) into.setHex(theme.hovered);
    else if (freedom.kind !== "spherical" && isAtLimit(freedom, value)) into.setHex(theme.atLimit);
    else if (freedom.locked) into.setHex(theme.locked);
    else if (freedom.mimics >= 0) into.setHex(theme.follower);
    else into.setHex(theme[freedom.kind]);
  }
}

/** share: the marker's size, of the model's radius. */
function lookOf(freedom: DofInfo, share: number, isPlain: boolean): Look {
  const { kind, lower, upper } = freedom;
  if (kind === "translation") return { kind, pieces: 0, hasLimits: true };
  const [low, high] = kind === "rotation" ? arc(freedom, 0) : [0, FULL];
  return { kind, pieces: pieces(share, high - low, isPlain), hasLimits: lower !== null || upper !== null };
}

/** What is seen of a marker, and what of it through bodies: a sector would only be mist there. */
function shapesOf({ kind, pieces: count, hasLimits }: Look): [BufferGeometry, BufferGeometry] {
  if (kind === "rotation") return [turnMarker(count, hasLimits, hasLimits), turnMarker(count, hasLimits, false)];
  const shape = kind === "translation" ? slideMarker() : ballMarker(count);
  return [shape, shape];
}

/** Within half a per cent of the range of a limit, or 1e-6 (m or rad) of it. */
export function isAtLimit({ lower, upper }: DofInfo, value: number): boolean {
  const near = lower !== null && upper !== null ? Math.max(1e-6, 0.005 * (upper - lower)) : 1e-6;
  return (lower !== null && value - lower <= near) || (upper !== null && upper - value <= near);
}

/** From where to where the ring of a turn goes, rad: a whole turn around the value where the limits do not say less. */
function arc({ lower, upper }: DofInfo, value: number): [number, number] {
  if (lower !== null && upper !== null && upper - lower < FULL) return [lower, upper];
  if (lower !== null && upper === null) return [lower, lower + FULL];
  if (upper !== null && lower === null) return [upper - FULL, upper];
  return [value - FULL / 2, value + FULL / 2];
}

/** size: of the marker, m; longest: half length that a rail may have, m. */
function writeRange(
  items: Items,
  k: number,
  freedom: DofInfo,
  value: number,
  size: number,
  longest: number,
): void {
  const { lower, upper } = freedom;
  if (freedom.kind === "rotation") {
    const [low, high] = arc(freedom, value);
    const isPart = high - low < FULL - 1e-9;
    items.setRange(k, low, high, value, (isPart || lower !== null ? 1 : 0) + (isPart || upper !== null ? 2 : 0));
    return;
  }
  const hasLow = lower !== null && value - lower < longest;
  const hasHigh = upper !== null && upper - value < longest;
  const low = hasLow ? lower : value - (lower === null ? FREE_RAIL * size : longest);
  const high = hasHigh ? upper : value + (upper === null ? FREE_RAIL * size : longest);
  items.setRange(k, low / size, high / size, value / size, (hasLow ? 1 : 0) + (hasHigh ? 2 : 0));
}

/** Markers go around the bodies at the joint, as far as there is room; those of one joint fit into one another. */
function nested(model: Model, freedom: DofInfo): number {
  const joint = model.joints[freedom.joint]!;
  const thick = Math.max(
    bulk(model, joint.parent, joint.pose),
    joint.child < 0 ? 0 : bulk(model, joint.child, [0, 0, 0]),
  );
  const room = Math.min(0.2 * model.radius, Math.max(0.055 * model.radius, 1.22 * thick));
  const turns = joint.dofs.filter((k) => model.dofs[k]!.kind === "rotation");
  const place = freedom.kind === "rotation" ? turns.findIndex((k) => model.dofs[k] === freedom) : 0;
  return room * (1 - 0.13 * Math.max(0, place));
}

/** How thick the bodies of a link are where this place is inside of them: their radius, m. */
function bulk(model: Model, link: number, place: readonly number[]): number {
  let most = 0;
  const large = 0.2 * model.radius; // a plate or a trunk: a marker around it would be around everything
  for (const { kind, sizes, pose } of model.links[link]?.visuals ?? []) {
    if (kind === "mesh") continue;
    local.fromArray(place as number[]).applyMatrix4(poseInto(scaled, pose).invert());
    const [a = 0, b = 0, c = 0] = sizes;
    const [x, y, z] = [Math.abs(local.x), Math.abs(local.y), Math.abs(local.z)];
    if (kind === "box") {
      const thick = 0.6 * [a, b, c].sort((one, other) => one - other)[1]!;
      const isInside = thick < large && Math.max(x - a / 2, y - b / 2, z - c / 2) < 0.02 * model.radius;
      if (isInside) most = Math.max(most, thick);
    } else if (a < large && Math.hypot(x, y, Math.max(0, z - (kind === "sphere" ? 0 : b / 2))) <= a)
      most = Math.max(most, a);
  }
  return most;
}
