// The links: one mesh each, made of all its shapes, moved by the frames.
import {
  BufferAttribute,
  Color,
  EdgesGeometry,
  Group,
  LineSegments,
  Matrix4,
  Mesh,
  Sphere,
  Vector3,
  type BufferGeometry,
  type Intersection,
  type Raycaster,
} from "three";
import type { Model, ShapeInfo } from "../messages";
import { bone, holds } from "./bones";
import type { Materials } from "./materials";
import { fetchMesh } from "./meshes";
import { poseInto } from "./pose";
import { bare, box, flip, isMany, merged, solid } from "./shapes";
import { paletteColour, type Theme } from "./theme";

export interface Body {
  /** Its matrix is the link's pose in the world. */
  object: Group;
  solid: Mesh | null;
  glass: Mesh | null;
  collider: Mesh | null;
  rim: Mesh | null;
  shadow: Mesh | null;
}

export class Bodies {
  readonly group = new Group();
  links: Body[] = [];
  private model: Model | null = null;
  private theme: Theme;
  private selected = -1;
  private hovered = -1;
  private hasBones = false;
  private hasShadows = true;
  private shows = { bodies: true, collisions: false };

  /** changed: called when a mesh has come; failed: with a sentence for the person. */
  constructor(
    private readonly materials: Materials,
    theme: Theme,
    private readonly changed: () => void,
    private readonly failed: (text: string) => void,
  ) {
    this.theme = theme;
  }

  /** Other links; their meshes come as they are fetched. */
  take(model: Model, theme: Theme): void {
    for (const body of this.links) throwAway(body.object);
    this.group.clear();
    this.model = model;
    this.theme = theme;
    this.selected = this.hovered = -1;
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
    const count = Math.min(this.links.length, Math.floor(links.length / 7));
    for (let k = 0; k < count; k++) {
      const object = this.links[k]!.object;
      poseInto(object.matrix, links, 7 * k);
      object.matrixWorldNeedsUpdate = true;
    }
  }

  show(bodies: boolean, collisions: boolean): void {
    this.shows = { bodies, collisions };
    this.links.forEach((body, k) => {
      const seen = this.model!.links[k]!.visible;
      body.object.visible = seen;
      if (body.solid) body.solid.visible = bodies;
      if (body.glass) body.glass.visible = bodies;
      if (collisions && body.collider === null) this.buildCollider(body, k);
      if (body.collider) body.collider.visible = collisions;
    });
  }

  castShadows(on: boolean): void {
    this.hasShadows = on;
    for (const body of this.links) if (body.shadow) body.shadow.visible = on;
  }

  /** -1: none. */
  mark(selected: number, hovered: number): void {
    if (selected === this.selected && hovered === this.hovered) return;
    const before = [this.selected, this.hovered];
    this.selected = selected;
    this.hovered = hovered;
    for (const k of [...before, selected, hovered]) this.dress(k);
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
    const whole = new Sphere().makeEmpty();
    const part = new Sphere();
    this.links.forEach((body, k) => {
      if (link >= 0 ? k !== link : !body.object.visible) return;
      const geometry = (body.solid ?? body.glass)?.geometry;
      if (!geometry) return;
      if (geometry.boundingSphere === null) geometry.computeBoundingSphere();
      part.copy(geometry.boundingSphere!).applyMatrix4(body.object.matrix);
      if (whole.isEmpty()) whole.copy(part);
      else whole.union(part);
    });
    return whole.isEmpty() ? null : whole;
  }

  /** The lowest point along `up` of what is drawn. */
  lowest(up: Vector3): number {
    let low = Infinity;
    const point = new Vector3();
    for (const body of this.links) {
      const places = (body.solid ?? body.glass)?.geometry.getAttribute("position");
      if (!places) continue;
      const step = Math.max(1, Math.floor(places.count / 2000));
      for (let k = 0; k < places.count; k += step) {
        low = Math.min(low, point.fromBufferAttribute(places, k).applyMatrix4(body.object.matrix).dot(up));
      }
    }
    return low;
  }

  private async fetch(body: Body, k: number, shapes: ShapeInfo[], model: Model): Promise<void> {
    const found = new Map<ShapeInfo, BufferGeometry[]>();
    await Promise.all(
      shapes.map(async (shape) => {
        try {
          if (shape.mesh === null) throw new Error("the file was not found beside the model");
          const pieces = await fetchMesh(shape.mesh, shape.ending);
          const [x = 1, y = x, z = x] = shape.sizes;
          found.set(
            shape,
            pieces.map((piece) => {
              const geometry = piece.geometry.clone().scale(x, y, z);
              if (x * y * z < 0) flip(geometry);
              const named = shape.rgba === null && piece.colour !== null;
              return paint(geometry, named ? piece.colour! : this.colour(shape, k), shape.rgba?.[3] ?? piece.opacity);
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
    if (solids.length > 0) {
      body.solid = this.add(body, new Mesh(merged(solids), this.materials.body));
      body.shadow = new Mesh(body.solid.geometry, this.materials.shadow);
      body.shadow.matrixAutoUpdate = false;
      body.shadow.frustumCulled = false; // it does not lie where the body is
      body.shadow.renderOrder = -3;
      body.shadow.visible = this.hasShadows;
      body.solid.add(body.shadow);
    }
    if (glasses.length > 0) body.glass = this.add(body, new Mesh(merged(glasses), this.materials.glass));
    this.dress(k);
  }

  private buildCollider(body: Body, k: number): void {
    const parts: BufferGeometry[] = [];
    const place = new Matrix4();
    for (const shape of this.model!.links[k]!.collisions) {
      const own = solid(shape, this.model!);
      if (own) parts.push(bare(own.applyMatrix4(poseInto(place, shape.pose))));
    }
    if (parts.length === 0) return;
    const mesh = new Mesh(merged(parts), this.materials.collider);
    mesh.add(new LineSegments(new EdgesGeometry(mesh.geometry, 25), this.materials.colliderEdges));
    mesh.renderOrder = 2;
    body.collider = this.add(body, mesh);
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
    const { selected, hovered, body: plain, rim } = this.materials;
    if (body.solid) body.solid.material = k === this.selected ? selected : k === this.hovered ? hovered : plain;
    body.rim?.removeFromParent();
    body.rim = null;
    if (k === this.selected && body.solid) {
      body.rim = new Mesh(body.solid.geometry, rim);
      body.solid.add(body.rim);
    }
  }

  private colour(shape: ShapeInfo, k: number): Color {
    const colour = new Color();
    if (shape.rgba === null) return paletteColour(k, colour);
    return colour.setRGB(shape.rgba[0], shape.rgba[1], shape.rgba[2]);
  }
}

function paint(geometry: BufferGeometry, colour: Color, opacity: number): BufferGeometry {
  const count = geometry.getAttribute("position").count;
  const colours = new Float32Array(4 * count);
  for (let k = 0; k < count; k++) colours.set([colour.r, colour.g, colour.b, opacity], 4 * k);
  geometry.setAttribute("color", new BufferAttribute(colours, 4));
  geometry.userData.opacity = opacity;
  return geometry;
}

function throwAway(object: Group): void {
  object.traverse((part) => {
    if (part instanceof Mesh || part instanceof LineSegments) (part.geometry as BufferGeometry).dispose();
  });
  object.removeFromParent();
}
