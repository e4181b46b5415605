// Meshes of obstacles, in their own colour or the colour of the theme; red for obstacles in contact.
import { Box3, Color, Group, Mesh, Sphere, Vector3, type BufferGeometry, type Raycaster } from "three";
import type { Model, ObstacleInfo } from "../messages";
import type { Materials } from "./materials";
import { fetchShape } from "./meshes";
import { setVertexColours } from "./vertex_colors";
import { setFromPose } from "./pose_matrix";
import { mergeAll, primitiveGeometry } from "./shapes";
import type { Theme } from "./theme";

const MAX_DIAGONAL_RATIO = 8; // in radii of the model; larger obstacles, such as floors, are not framed or picked

interface DrawnObstacle {
  info: ObstacleInfo;
  mesh: Mesh;
  shadow: Mesh;
  rim: Mesh | null;
}

export class ObstacleMeshes {
  readonly group = new Group();
  private infos: ObstacleInfo[] = [];
  private drawnObstacles: DrawnObstacle[] = [];
  private model: Model | null = null;
  private theme: Theme;
  private namesInContact: ReadonlySet<string> = new Set();
  private highlight: { selected: string | null; hovered: string | null } = { selected: null, hovered: null };
  private hasShadows = true;

  /** onChange: called when a mesh was loaded; onError: called with a message for the user. */
  constructor(
    private readonly materials: Materials,
    theme: Theme,
    private readonly onChange: () => void,
    private readonly onError: (text: string) => void,
  ) {
    this.theme = theme;
  }

  /** Shows new obstacles, or moves the present obstacles if only their poses have changed. */
  load(infos: ObstacleInfo[], model: Model | null): void {
    const hasSameShapes = model === this.model && haveSameShapes(infos, this.infos);
    this.infos = infos;
    this.model = model;
    if (hasSameShapes) {
      for (const obstacle of this.drawnObstacles) {
        obstacle.info = infos.find(({ name }) => name === obstacle.info.name)!;
        applyPose(obstacle);
      }
      return;
    }
    for (const { mesh } of this.drawnObstacles) mesh.geometry.dispose();
    this.group.clear();
    this.drawnObstacles = [];
    if (model === null) return;
    for (const info of infos) {
      const geometry = primitiveGeometry(info.shape, model);
      if (geometry) this.add(info, [geometry]);
      else void this.fetchMesh(info);
    }
  }

  setTheme(theme: Theme): void {
    if (theme === this.theme) return;
    this.theme = theme;
    const { infos, model } = this;
    this.infos = [];
    this.load(infos, model);
  }

  castShadows(isOn: boolean): void {
    this.hasShadows = isOn;
    for (const { shadow } of this.drawnObstacles) shadow.visible = isOn;
  }

  /** Sets the names of obstacles in contact. */
  setContacts(names: ReadonlySet<string>): void {
    this.namesInContact = names;
    for (const obstacle of this.drawnObstacles) this.updateMaterial(obstacle);
  }

  updateHighlight(selected: string | null, hovered: string | null): void {
    if (selected === this.highlight.selected && hovered === this.highlight.hovered) return;
    this.highlight = { selected, hovered };
    for (const obstacle of this.drawnObstacles) this.updateMaterial(obstacle);
  }

  /** The nearest obstacle on a ray; very large obstacles are ignored, since they are usually background. */
  pick(raycaster: Raycaster): { obstacle: string; point: Vector3 } | null {
    const meshes = this.drawnObstacles.filter((obstacle) => !this.isLarge(boxAround(obstacle))).map(({ mesh }) => mesh);
    const hit = raycaster.intersectObjects(meshes, false)[0];
    return hit === undefined ? null : { obstacle: hit.object.name, point: hit.point };
  }

  /** Bounding sphere of an obstacle; null if it is not drawn. */
  boundingSphere(name: string): Sphere | null {
    const obstacle = this.drawnObstacles.find(({ info }) => info.name === name);
    return obstacle ? boxAround(obstacle).getBoundingSphere(new Sphere()) : null;
  }

  /** Corners of the bounding boxes of all obstacles, except very large obstacles. */
  boxCorners(): Vector3[] {
    const corners: Vector3[] = [];
    for (const obstacle of this.drawnObstacles) {
      const box = boxAround(obstacle);
      if (this.isLarge(box)) continue;
      const ends = [box.min, box.max] as const;
      for (const x of ends) for (const y of ends) for (const z of ends) corners.push(new Vector3(x.x, y.y, z.z));
    }
    return corners;
  }

  private isLarge(box: Box3): boolean {
    return this.model === null || box.getSize(new Vector3()).length() > MAX_DIAGONAL_RATIO * this.model.radius;
  }

  private async fetchMesh(info: ObstacleInfo): Promise<void> {
    try {
      const pieces = await fetchShape(info.shape);
      const currentInfo = this.infos.find(({ name, shape }) => name === info.name && shape.mesh === info.shape.mesh);
      // the obstacle was removed or is already drawn
      if (!currentInfo || this.drawnObstacles.some((obstacle) => obstacle.info.name === currentInfo.name)) return;
      this.add(
        currentInfo,
        pieces.map(({ geometry }) => geometry.deleteAttribute("color")),
      );
      this.onChange();
    } catch (error) {
      this.onError(
        `The obstacle '${info.name}' cannot be drawn: ${error instanceof Error ? error.message : String(error)}.`,
      );
    }
  }

  private add(info: ObstacleInfo, parts: BufferGeometry[]): void {
    const rgba = info.shape.rgba;
    const colour = rgba ? new Color(rgba[0], rgba[1], rgba[2]) : new Color(this.theme.obstacle);
    const mesh = new Mesh(mergeAll(parts.map((part) => setVertexColours(part, colour, 1))), this.materials.obstacle);
    mesh.matrixAutoUpdate = false;
    mesh.name = info.name;
    const shadow = new Mesh(mesh.geometry, this.materials.shadow);
    shadow.matrixAutoUpdate = false;
    shadow.frustumCulled = false; // the shader moves the vertices
    shadow.renderOrder = -3;
    shadow.visible = this.hasShadows;
    mesh.add(shadow);
    this.group.add(mesh);
    const obstacle: DrawnObstacle = { info, mesh, shadow, rim: null };
    this.drawnObstacles.push(obstacle);
    applyPose(obstacle);
    this.updateMaterial(obstacle);
  }

  private updateMaterial(drawnObstacle: DrawnObstacle): void {
    const { obstacle, obstacleHovered, obstacleSelected, obstacleContact, rim } = this.materials;
    const isSelected = drawnObstacle.info.name === this.highlight.selected;
    const isHovered = drawnObstacle.info.name === this.highlight.hovered;
    const highlightMaterial = isSelected ? obstacleSelected : isHovered ? obstacleHovered : obstacle;
    // the rim shows the selection of an obstacle in contact
    const isInContact = this.namesInContact.has(drawnObstacle.info.name);
    drawnObstacle.mesh.material = isInContact ? obstacleContact : highlightMaterial;
    drawnObstacle.rim?.removeFromParent();
    drawnObstacle.rim = null;
    if (isSelected) drawnObstacle.mesh.add((drawnObstacle.rim = new Mesh(drawnObstacle.mesh.geometry, rim)));
  }
}

function applyPose({ info, mesh }: DrawnObstacle): void {
  setFromPose(mesh.matrix, info.shape.pose);
  mesh.matrix.decompose(mesh.position, mesh.quaternion, mesh.scale);
  mesh.matrixWorldNeedsUpdate = true;
}

function boxAround({ mesh }: DrawnObstacle): Box3 {
  mesh.updateWorldMatrix(true, false);
  mesh.geometry.boundingBox ?? mesh.geometry.computeBoundingBox();
  return new Box3().copy(mesh.geometry.boundingBox!).applyMatrix4(mesh.matrixWorld);
}

/** Whether two lists of obstacles differ only in poses. */
function haveSameShapes(infos: ObstacleInfo[], otherInfos: ObstacleInfo[]): boolean {
  const shapeKey = ({ name, shape }: ObstacleInfo) => JSON.stringify([name, { ...shape, pose: 0 }]);
  return infos.length === otherInfos.length && infos.every(
    (info, k) => info === otherInfos[k] || shapeKey(info) === shapeKey(otherInfos[k]!),
  );
}
