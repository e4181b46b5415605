// The links: one mesh each, made of all its shapes, moved by the frames.
import {
  Color,
  Group,
  LineSegments,
  Matrix4,
  Mesh,
  type BufferGeometry,
  type Intersection,
  type Object3D,
  type Raycaster,
  type Sphere,
  type Vector3,
} from "three";
import type { Model, ShapeInfo } from "../messages";
import { bone, holds } from "./bones";
import { collider, fetchColliders, paintCollider } from "./colliders";
import { isMany } from "./corners";
import { ballAround, lowest } from "./extent";
import { Flock, PICKED } from "./flock";
import type { Materials } from "./materials";
import { fetchShape } from "./meshes";
import { paint } from "./paint";
import { poseInto } from "./pose";
import { box, merged, solid } from "./shapes";
import { paletteColour, type Theme } from "./theme";

export interface Body {
  /** Its matrix is the link's pose in the world. */
  object: Group;
  solid: Mesh | null;
  glass: Mesh | null;
  collider: Mesh | null;
  rim: Mesh | null;
  /** Null also where its flock casts it. */
  shadow: Mesh | null;
}

export class Bodies {
  readonly group = new Group();
  links: Body[] = [];
  private model: Model | null = null;
  private theme: Theme;
  private selected = -1;
  private hovered = -1;
  private clashing: ReadonlySet<number> = new Set();
  private hasBones = false;
  private hasShadows = true;
  private isGathered = false;
  private readonly flock: Flock;
  private withColliders = new WeakSet<Body>();
  private shows = { bodies: true, collisions: false };

  /** changed: called when a mesh has come; failed: with a sentence for the person. */
  constructor(
    private readonly materials: Materials,
    theme: Theme,
    private readonly changed: () => void,
    private readonly failed: (text: string) => void,
  ) {
    this.theme = theme;
    this.flock = new Flock(materials);
  }

  /** Other links; their meshes come as they are fetched. */
  take(model: Model, theme: Theme): void {
    for (const body of this.links) throwAway(body.object);
    this.group.clear();
    this.model = model;
    this.theme = theme;
    this.selected = this.hovered = -1;
    this.clashing = new Set();
    // where most links have bodies, those without are frames such as the world and the tip of a tool
    this.hasBones = 2 * model.links.filter((link) => link.visuals.length > 0).length < model.links.length;
    this.links = model.links.map((link, k) => {
      const object = new Group();
      object.matrixAutoUpdate = false;
      object.userData.link = k;
      this.group.add(object);
      const body: Body = { object, solid: null, glass: null, collider: null, rim: null, shadow: null };
      const meshes = link.visuals.filter((shape) => shape.kind === "mesh");
      this.build(body, k, meshes.length > 0 ? null : new Map());
      if (meshes.length > 0) void this.fetch(body, k, meshes, model);
      return body;
    });
    this.show(this.shows.bodies, this.shows.collisions);
  }

  pose(links: Float64Array): void {
    if (!this.isGathered) this.gather();
    const count = Math.min(this.links.length, Math.floor(links.length / 7));
    for (let k = 0; k < count; k++) {
      const object = this.links[k]!.object;
      poseInto(object.matrix, links, 7 * k);
      object.matrixWorldNeedsUpdate = true;
      this.flock.pose(k, object.matrix, object.visible, this.isMarked(k));
    }
    this.flock.update();
  }

  show(bodies: boolean, collisions: boolean): void {
    this.shows = { bodies, collisions };
    this.links.forEach((body, k) => {
      const seen = this.model!.links[k]!.visible;
      body.object.visible = seen;
      if (body.solid) body.solid.visible = bodies;
      if (body.glass) body.glass.visible = bodies;
      if (collisions && body.collider === null) void this.buildCollider(body, k);
      if (body.collider) body.collider.visible = collisions;
    });
    this.flock.show(bodies, this.hasShadows);
  }

  castShadows(on: boolean): void {
    this.hasShadows = on;
    for (const body of this.links) if (body.shadow) body.shadow.visible = on;
    this.flock.show(this.shows.bodies, on);
  }

  /** -1: none. */
  mark(selected: number, hovered: number): void {
    if (selected === this.selected && hovered === this.hovered) return;
    const before = [this.selected, this.hovered];
    this.selected = selected;
    this.hovered = hovered;
    for (const k of [...before, selected, hovered]) this.dress(k);
  }

  /** Links that bump into something now. */
  clash(links: ReadonlySet<number>): void {
    const before = this.clashing;
    this.clashing = links;
    for (const k of new Set([...before, ...links])) if (before.has(k) !== links.has(k)) this.dress(k);
  }

  /** The nearest link that the ray meets. */
  pick(raycaster: Raycaster): { link: number; point: Vector3 } | null {
    let best: Intersection | null = null;
    let link = -1;
    this.links.forEach((body, k) => {
      if (!body.object.visible) return;
      for (const mesh of [body.solid, body.glass, body.collider]) {
        if (!mesh?.visible) continue;
        const hit = raycaster.intersectObject(mesh, false)[0];
        if (hit && (best === null || hit.distance < best.distance)) [best, link] = [hit, k];
      }
    });
    return best === null ? null : { link, point: (best as Intersection).point };
  }

  /** A ball around what is drawn where it stands now, or around one link; null when there is nothing. */
  bounds(link = -1): Sphere | null {
    return ballAround(link < 0 ? this.links.filter(({ object }) => object.visible) : this.links.slice(link, link + 1));
  }

  /** The lowest point along `up` of what is drawn. */
  lowest(up: Vector3): number {
    return lowest(this.links, up);
  }

  private async fetch(body: Body, k: number, shapes: ShapeInfo[], model: Model): Promise<void> {
    const found = new Map<ShapeInfo, BufferGeometry[]>();
    await Promise.all(
      shapes.map(async (shape) => {
        try {
          const pieces = await fetchShape(shape);
          found.set(
            shape,
            pieces.map(({ geometry, colour, opacity }) => {
              // what the model says goes before what the file says
              if (shape.rgba === null && geometry.hasAttribute("color")) return paint(geometry, null, opacity);
              const named = shape.rgba === null ? colour : null;
              return paint(geometry, named ?? this.colour(shape, k), shape.rgba?.[3] ?? opacity);
            }),
          );
        } catch (why) {
          if (this.model !== model) return;
          const edge = 0.08 * model.radius;
          found.set(shape, [paint(box(edge, edge, edge), this.colour(shape, k), 1)]);
          const name = model.links[k]!.name;
          this.failed(
            `The mesh of '${name}' cannot be drawn: ${why instanceof Error ? why.message : String(why)}. ` +
              "A box stands for it.",
          );
        }
      }),
    );
    if (this.model !== model) return;
    this.build(body, k, found);
    this.show(this.shows.bodies, this.shows.collisions);
    this.changed();
  }

  /** All shapes of a link in two geometries: solid and glass. meshes: those that have come; null: not yet. */
  private build(body: Body, k: number, meshes: Map<ShapeInfo, BufferGeometry[]> | null): void {
    for (const old of [body.solid, body.glass, body.rim, body.shadow]) {
      old?.geometry.dispose();
      old?.removeFromParent();
    }
    body.solid = body.glass = body.rim = body.shadow = null;
    this.isGathered = false;
    const model = this.model!;
    const visuals = model.links[k]!.visuals;
    const [solids, glasses]: [BufferGeometry[], BufferGeometry[]] = [[], []];
    const place = new Matrix4();
    for (const shape of visuals) {
      const opacity = shape.rgba?.[3] ?? 1;
      const own = solid(shape, this.model!);
      const parts = own ? [paint(own, this.colour(shape, k), opacity)] : (meshes?.get(shape) ?? []);
      for (const part of parts) {
        part.applyMatrix4(poseInto(place, shape.pose));
        ((part.userData.opacity as number) < 0.99 ? glasses : solids).push(part);
      }
    }
    if (visuals.length === 0 && this.hasBones) {
      const places = holds(model, k);
      // a frame that holds nothing else is a tip: a small ball
      const thickness = (places.length > 1 ? 0.028 : 0.02) * model.radius;
      solids.push(paint(bone(places, thickness, isMany(model.links.length) ? 8 : 14), new Color(this.theme.bone), 1));
    }
    if (solids.length > 0) body.solid = this.add(body, new Mesh(merged(solids), this.materials.body));
    if (glasses.length > 0) body.glass = this.add(body, new Mesh(merged(glasses), this.materials.glass));
    this.dress(k);
  }

  /** What is drawn together, once all shapes that have come are there. */
  private gather(): void {
    this.isGathered = true;
    this.flock.gather(this.links);
    this.group.add(this.flock.group);
    this.links.forEach((body, k) => {
      body.shadow?.removeFromParent();
      body.shadow = null;
      if (body.solid && !this.flock.has(k)) {
        body.shadow = new Mesh(body.solid.geometry, this.materials.shadow);
        body.shadow.matrixAutoUpdate = false;
        body.shadow.frustumCulled = false; // it does not lie where the body is
        body.shadow.renderOrder = -3;
        body.solid.add(body.shadow);
      }
      this.dress(k);
    });
    this.castShadows(this.hasShadows);
  }

  /** What a link bumps with, once; its meshes come as they are fetched. */
  private async buildCollider(body: Body, k: number): Promise<void> {
    if (this.withColliders.has(body)) return;
    this.withColliders.add(body);
    const model = this.model!;
    const put = (mesh: Mesh | null) => {
      if (mesh === null) return;
      if (body.collider) throwAway(body.collider);
      body.collider = this.add(body, mesh);
      this.dress(k);
    };
    put(collider(k, model, this.materials, new Map()));
    const meshes = await fetchColliders(k, model, this.failed);
    if (this.model !== model || meshes.size === 0) return;
    put(collider(k, model, this.materials, meshes));
    this.show(this.shows.bodies, this.shows.collisions);
    this.changed();
  }

  private add(body: Body, mesh: Mesh): Mesh {
    mesh.userData.link = body.object.userData.link as number;
    mesh.matrixAutoUpdate = false; // it never moves on its link
    body.object.add(mesh);
    return mesh;
  }

  private dress(k: number): void {
    const body = this.links[k];
    if (!body) return;
    const { selected, hovered, body: plain, rim, clash, clashGlass, glass } = this.materials;
    const bumps = this.clashing.has(k);
    const marked = k === this.selected ? selected : k === this.hovered ? hovered : plain;
    if (body.solid) body.solid.material = bumps ? clash : marked; // a rim still says what is selected
    if (body.glass) body.glass.material = bumps ? clashGlass : glass;
    if (body.collider) paintCollider(body.collider, bumps, this.materials);
    body.solid?.layers.set(this.isMarked(k) || !this.flock.has(k) ? 0 : PICKED);
    body.rim?.removeFromParent();
    body.rim = null;
    if (k === this.selected && body.solid) {
      body.rim = new Mesh(body.solid.geometry, rim);
      body.solid.add(body.rim);
    }
  }

  /** Whether it looks otherwise than its own, and so is drawn by itself. */
  private isMarked(k: number): boolean {
    return k === this.selected || k === this.hovered || this.clashing.has(k);
  }

  private colour(shape: ShapeInfo, k: number): Color {
    const colour = new Color();
    if (shape.rgba === null) return paletteColour(k, colour);
    return colour.setRGB(shape.rgba[0], shape.rgba[1], shape.rgba[2]);
  }
}

function throwAway(object: Object3D): void {
  object.traverse((part) => {
    if (part instanceof Mesh || part instanceof LineSegments) (part.geometry as BufferGeometry).dispose();
  });
  object.removeFromParent();
}
