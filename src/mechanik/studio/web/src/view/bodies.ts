// Meshes of links: per link an opaque and a transparent mesh, merged from its visual shapes, and its collision shapes.
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
import { placeholder, jointPositions } from "./placeholder_links";
import { colliderMesh, fetchColliders, setColliderContact } from "./colliders";
import { isMany } from "./tessellation";
import { boundingSphere, lowestPoint } from "./bounds";
import { MergedMeshes, PICK_ONLY_LAYER } from "./merged_meshes";
import type { Materials } from "./materials";
import { fetchShape } from "./meshes";
import { setVertexColours } from "./vertex_colors";
import { setFromPose } from "./pose_matrix";
import { boxGeometry, mergeAll, primitiveGeometry } from "./shapes";
import { paletteColour, type Theme } from "./theme";

export interface DrawnLink {
  /** Object whose matrix is the pose of the link in the world. */
  object: Group;
  /** Opaque shapes. */
  opaque: Mesh | null;
  /** Transparent shapes. */
  transparent: Mesh | null;
  /** Collision shapes. */
  collider: Mesh | null;
  /** Rim of the selected link. */
  rim: Mesh | null;
  /** Null if there is no shadow, or if the merged meshes cast the shadow. */
  shadow: Mesh | null;
}

export class LinkMeshes {
  readonly group = new Group();
  links: DrawnLink[] = [];
  private model: Model | null = null;
  private theme: Theme;
  private selectedLink = -1;
  private hoveredLink = -1;
  private linksInContact: ReadonlySet<number> = new Set();
  private hasPlaceholders = false;
  private hasShadows = true;
  private isMerged = false;
  private readonly mergedMeshes: MergedMeshes;
  private linksWithColliders = new WeakSet<DrawnLink>();
  private visibility = { bodies: true, collisions: false };

  /** onChange: called when a mesh was loaded; onError: called with a message for the user. */
  constructor(
    private readonly materials: Materials,
    theme: Theme,
    private readonly onChange: () => void,
    private readonly onError: (text: string) => void,
  ) {
    this.theme = theme;
    this.mergedMeshes = new MergedMeshes(materials);
  }

  /** Builds the links of a new model; their meshes are fetched afterwards. */
  loadModel(model: Model, theme: Theme): void {
    for (const body of this.links) disposeObject(body.object);
    this.group.clear();
    this.model = model;
    this.theme = theme;
    this.selectedLink = this.hoveredLink = -1;
    this.linksInContact = new Set();
    // if at least half of the links have visual shapes, links without shapes are frames such as a tool point
    this.hasPlaceholders = 2 * model.links.filter((link) => link.visuals.length > 0).length < model.links.length;
    this.links = model.links.map((link, k) => {
      const object = new Group();
      object.matrixAutoUpdate = false;
      object.userData.link = k;
      this.group.add(object);
      const body: DrawnLink = { object, opaque: null, transparent: null, collider: null, rim: null, shadow: null };
      const meshes = link.visuals.filter((shape) => shape.kind === "mesh");
      this.build(body, k, meshes.length > 0 ? null : new Map());
      if (meshes.length > 0) void this.fetchMeshes(body, k, meshes, model);
      return body;
    });
    this.setVisibility(this.visibility.bodies, this.visibility.collisions);
  }

  /** links: seven numbers per link. */
  applyPoses(links: Float64Array): void {
    if (!this.isMerged) this.mergeSmallMeshes();
    const count = Math.min(this.links.length, Math.floor(links.length / 7));
    for (let k = 0; k < count; k++) {
      const object = this.links[k]!.object;
      setFromPose(object.matrix, links, 7 * k);
      object.matrixWorldNeedsUpdate = true;
      this.mergedMeshes.setPose(k, object.matrix, object.visible, this.isHighlighted(k));
    }
    this.mergedMeshes.update();
  }

  setVisibility(bodies: boolean, collisions: boolean): void {
    this.visibility = { bodies, collisions };
    this.links.forEach((body, k) => {
      const isVisible = this.model!.links[k]!.visible;
      body.object.visible = isVisible;
      if (body.opaque) body.opaque.visible = bodies;
      if (body.transparent) body.transparent.visible = bodies;
      if (collisions && body.collider === null) void this.buildCollider(body, k);
      if (body.collider) body.collider.visible = collisions;
    });
    this.mergedMeshes.setVisibility(bodies, this.hasShadows);
  }

  castShadows(isOn: boolean): void {
    this.hasShadows = isOn;
    for (const body of this.links) if (body.shadow) body.shadow.visible = isOn;
    this.mergedMeshes.setVisibility(this.visibility.bodies, isOn);
  }

  /** selected, hovered: indices of links; -1: none. */
  updateHighlight(selected: number, hovered: number): void {
    if (selected === this.selectedLink && hovered === this.hoveredLink) return;
    const previousLinks = [this.selectedLink, this.hoveredLink];
    this.selectedLink = selected;
    this.hoveredLink = hovered;
    for (const k of [...previousLinks, selected, hovered]) this.updateMaterials(k);
  }

  /** Sets the indices of the links in contact. */
  setContacts(links: ReadonlySet<number>): void {
    const previousLinks = this.linksInContact;
    this.linksInContact = links;
    for (const k of new Set([...previousLinks, ...links]))
      if (previousLinks.has(k) !== links.has(k)) this.updateMaterials(k);
  }

  /** The nearest link on a ray. */
  pick(raycaster: Raycaster): { link: number; point: Vector3 } | null {
    let nearestHit: Intersection | null = null;
    let link = -1;
    this.links.forEach((body, k) => {
      if (!body.object.visible) return;
      for (const mesh of [body.opaque, body.transparent, body.collider]) {
        if (!mesh?.visible) continue;
        const hit = raycaster.intersectObject(mesh, false)[0];
        if (hit && (nearestHit === null || hit.distance < nearestHit.distance)) [nearestHit, link] = [hit, k];
      }
    });
    return nearestHit === null ? null : { link, point: (nearestHit as Intersection).point };
  }

  /** Bounding sphere of all visible links or of one link, at the present pose; null if there are no meshes. */
  bounds(link = -1): Sphere | null {
    return boundingSphere(
      link < 0 ? this.links.filter(({ object }) => object.visible) : this.links.slice(link, link + 1),
    );
  }

  /** Height (m) along `up` of the lowest point of all links; infinite if there are no meshes. */
  lowest(up: Vector3): number {
    return lowestPoint(this.links, up);
  }

  private async fetchMeshes(body: DrawnLink, k: number, shapes: ShapeInfo[], model: Model): Promise<void> {
    const geometries = new Map<ShapeInfo, BufferGeometry[]>();
    await Promise.all(
      shapes.map(async (shape) => {
        try {
          const pieces = await fetchShape(shape);
          geometries.set(
            shape,
            pieces.map(({ geometry, colour, opacity }) => {
              // colours of the model have precedence over colours of the mesh file
              if (shape.rgba === null && geometry.hasAttribute("color"))
                return setVertexColours(geometry, null, opacity);
              const fileColour = shape.rgba === null ? colour : null;
              return setVertexColours(geometry, fileColour ?? this.colour(shape, k), shape.rgba?.[3] ?? opacity);
            }),
          );
        } catch (error) {
          if (this.model !== model) return;
          const edge = 0.08 * model.radius;
          geometries.set(shape, [setVertexColours(boxGeometry(edge, edge, edge), this.colour(shape, k), 1)]);
          const name = model.links[k]!.name;
          this.onError(
            `The mesh of link '${name}' cannot be drawn: ${error instanceof Error ? error.message : String(error)}. ` +
              "A box is drawn instead.",
          );
        }
      }),
    );
    if (this.model !== model) return;
    this.build(body, k, geometries);
    this.setVisibility(this.visibility.bodies, this.visibility.collisions);
    this.onChange();
  }

  /** Merges all shapes of a link into an opaque and a transparent geometry. meshes: null if not loaded yet. */
  private build(body: DrawnLink, k: number, meshes: Map<ShapeInfo, BufferGeometry[]> | null): void {
    for (const mesh of [body.opaque, body.transparent, body.rim, body.shadow]) {
      mesh?.geometry.dispose();
      mesh?.removeFromParent();
    }
    body.opaque = body.transparent = body.rim = body.shadow = null;
    this.isMerged = false;
    const model = this.model!;
    const visuals = model.links[k]!.visuals;
    const [opaqueParts, transparentParts]: [BufferGeometry[], BufferGeometry[]] = [[], []];
    const matrix = new Matrix4();
    for (const shape of visuals) {
      const opacity = shape.rgba?.[3] ?? 1;
      const primitive = primitiveGeometry(shape, this.model!);
      const parts = primitive
        ? [setVertexColours(primitive, this.colour(shape, k), opacity)]
        : (meshes?.get(shape) ?? []);
      for (const part of parts) {
        part.applyMatrix4(setFromPose(matrix, shape.pose));
        ((part.userData.opacity as number) < 0.99 ? transparentParts : opaqueParts).push(part);
      }
    }
    if (visuals.length === 0 && this.hasPlaceholders) {
      const joints = jointPositions(model, k);
      // a link with one joint position is a tip: a small sphere
      const radius = (joints.length > 1 ? 0.028 : 0.02) * model.radius;
      opaqueParts.push(
        setVertexColours(
          placeholder(joints, radius, isMany(model.links.length) ? 8 : 14),
          new Color(this.theme.placeholder),
          1,
        ),
      );
    }
    if (opaqueParts.length > 0) body.opaque = this.add(body, new Mesh(mergeAll(opaqueParts), this.materials.body));
    if (transparentParts.length > 0)
      body.transparent = this.add(body, new Mesh(mergeAll(transparentParts), this.materials.transparentBody));
    this.updateMaterials(k);
  }

  /** Merges the small opaque meshes of links into one mesh, after their shapes were built. */
  private mergeSmallMeshes(): void {
    this.isMerged = true;
    this.mergedMeshes.merge(this.links);
    this.group.add(this.mergedMeshes.group);
    this.links.forEach((body, k) => {
      body.shadow?.removeFromParent();
      body.shadow = null;
      if (body.opaque && !this.mergedMeshes.has(k)) {
        body.shadow = new Mesh(body.opaque.geometry, this.materials.shadow);
        body.shadow.matrixAutoUpdate = false;
        body.shadow.frustumCulled = false; // the shader moves the vertices
        body.shadow.renderOrder = -3;
        body.opaque.add(body.shadow);
      }
      this.updateMaterials(k);
    });
    this.castShadows(this.hasShadows);
  }

  /** Builds the collision shapes of a link once; meshes are fetched afterwards. */
  private async buildCollider(body: DrawnLink, k: number): Promise<void> {
    if (this.linksWithColliders.has(body)) return;
    this.linksWithColliders.add(body);
    const model = this.model!;
    const setCollider = (mesh: Mesh | null) => {
      if (mesh === null) return;
      if (body.collider) disposeObject(body.collider);
      body.collider = this.add(body, mesh);
      this.updateMaterials(k);
    };
    setCollider(colliderMesh(k, model, this.materials, new Map()));
    const meshes = await fetchColliders(k, model, this.onError);
    if (this.model !== model || meshes.size === 0) return;
    setCollider(colliderMesh(k, model, this.materials, meshes));
    this.setVisibility(this.visibility.bodies, this.visibility.collisions);
    this.onChange();
  }

  private add(body: DrawnLink, mesh: Mesh): Mesh {
    mesh.userData.link = body.object.userData.link as number;
    mesh.matrixAutoUpdate = false; // the mesh is fixed to the link
    body.object.add(mesh);
    return mesh;
  }

  private updateMaterials(k: number): void {
    const body = this.links[k];
    if (!body) return;
    const { selected, hovered, body: plainMaterial, transparentBody, contact, transparentContact, rim } =
      this.materials;
    const isInContact = this.linksInContact.has(k);
    const highlightMaterial = k === this.selectedLink ? selected : k === this.hoveredLink ? hovered : plainMaterial;
    // the rim shows the selection of a link in contact
    if (body.opaque) body.opaque.material = isInContact ? contact : highlightMaterial;
    if (body.transparent) body.transparent.material = isInContact ? transparentContact : transparentBody;
    if (body.collider) setColliderContact(body.collider, isInContact, this.materials);
    body.opaque?.layers.set(this.isHighlighted(k) || !this.mergedMeshes.has(k) ? 0 : PICK_ONLY_LAYER);
    body.rim?.removeFromParent();
    body.rim = null;
    if (k === this.selectedLink && body.opaque) {
      body.rim = new Mesh(body.opaque.geometry, rim);
      body.opaque.add(body.rim);
    }
  }

  /** Whether the link has a special material and is therefore drawn separately. */
  private isHighlighted(k: number): boolean {
    return k === this.selectedLink || k === this.hoveredLink || this.linksInContact.has(k);
  }

  private colour(shape: ShapeInfo, k: number): Color {
    const colour = new Color();
    if (shape.rgba === null) return paletteColour(k, colour);
    return colour.setRGB(shape.rgba[0], shape.rgba[1], shape.rgba[2]);
  }
}

function disposeObject(object: Object3D): void {
  object.traverse((part) => {
    if (part instanceof Mesh || part instanceof LineSegments) (part.geometry as BufferGeometry).dispose();
  });
  object.removeFromParent();
}
