// All drawn objects, and their updates from the store.
import { Group, Vector3 } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import type { StateFrame } from "../connection/state_frame";
import { LinkMeshes } from "./bodies";
import { Closures } from "./closures";
import { AlternativeMeshes } from "./alternatives";
import { GoalMarkers } from "./goals";
import { FloorGrid } from "./floor_grid";
import type { Hit } from "./hit";
import { DofFrames } from "./dof_frames";
import { Curves, GoalTrails } from "./lines";
import { Markers } from "./markers";
import { Materials } from "./materials";
import { ObstacleMeshes } from "./obstacles";
import { planeOfMotion } from "./planar";
import { Skeleton } from "./skeleton";
import { Terrain } from "./terrain";
import { THEMES, type Theme } from "./theme";

const UP = new Vector3(0, 0, 1);
const GROUND_TOLERANCE = 0.03; // in radii; if the lowest point is this near to height zero, the floor is at height zero
const TRAIL_STEP = 2e-3; // minimum distance between trail points, in radii

export class SceneGraph {
  readonly group = new Group();
  readonly links: LinkMeshes;
  readonly obstacles: ObstacleMeshes;
  readonly goals: GoalMarkers;
  readonly markers = new Markers();
  dofFrames: DofFrames | null = null;
  private readonly materials = new Materials();
  private readonly skeleton = new Skeleton();
  private readonly closures = new Closures();
  private readonly floor: FloorGrid;
  private readonly terrain = new Terrain(this.materials);
  private readonly alternatives = new AlternativeMeshes(this.materials);
  private readonly curves = new Curves();
  private readonly trails = new GoalTrails();
  private goalScale = 0;

  /** onChange: called when the view must be drawn again. */
  constructor(
    private readonly store: Store,
    private readonly onChange: () => void,
  ) {
    this.goals = new GoalMarkers((kind) => store.goalKind(kind));
    const onError = (text: string) => store.emit("message", { kind: "warning", text });
    this.links = new LinkMeshes(this.materials, this.theme, () => this.onMeshLoaded(), onError);
    this.obstacles = new ObstacleMeshes(this.materials, this.theme, onChange, onError);
    this.floor = new FloorGrid(this.theme);
    for (const part of [
      this.floor,
      this.terrain,
      this.links,
      this.obstacles,
      this.alternatives,
      this.skeleton,
      this.closures,
      this.markers,
      this.curves,
      this.trails,
      this.goals,
    ]) {
      this.group.add(part.group);
    }
  }

  get theme(): Theme {
    return THEMES[this.store.display.theme];
  }

  loadModel(model: Model): void {
    this.dofFrames = new DofFrames(model);
    this.links.loadModel(model, this.theme);
    this.skeleton.loadModel(model);
    this.closures.loadModel(model);
    this.markers.loadModel(model);
    this.alternatives.load([], []);
    this.trails.clear();
    this.loadObstacles();
    this.updateContacts();
    this.loadGoals();
  }

  loadObstacles(): void {
    this.obstacles.load(this.store.obstacles, this.store.model);
    this.group.updateMatrixWorld();
  }

  /** Shows contacts in red, except in a comparison, since contacts are checked only for the main solver. */
  updateContacts(): void {
    const { contacts, comparison } = this.store;
    const shownContacts = (comparison?.rows.length ?? 0) > 0 ? null : contacts;
    this.links.setContacts(new Set(shownContacts?.links));
    this.obstacles.setContacts(new Set(shownContacts?.obstacles));
  }

  loadGoals(): void {
    this.goalScale = this.store.display.markerScale;
    this.goals.load(this.store.goals, this.store.order, this.store.model?.radius ?? 1, this.goalScale);
  }

  loadAlternatives(): void {
    this.alternatives.load(this.links.links, this.store.alternatives?.poses ?? []);
  }

  loadScene(): void {
    this.curves.load(this.store.scene?.curves ?? []);
    this.terrain.load(this.store.scene?.terrain ?? null, this.theme);
  }

  clearTrails(): void {
    this.trails.clear();
  }

  /** Applies colours and visibility. allowsShadows: whether the render quality allows shadows. */
  applyDisplay(allowsShadows: boolean): void {
    const { display } = this.store;
    const theme = this.theme;
    this.materials.setTheme(theme);
    this.floor.setTheme(theme);
    this.trails.setColour(theme.path);
    this.terrain.setTheme(theme);
    this.obstacles.setTheme(theme);
    this.floor.setVisible(display.grid && !this.terrain.isLoaded);
    this.links.setVisibility(display.bodies, display.collisions);
    const shadows = display.shadows && allowsShadows && display.bodies && !this.terrain.isLoaded;
    this.links.castShadows(shadows);
    this.obstacles.castShadows(shadows);
    this.skeleton.group.visible = display.skeleton;
    this.markers.group.visible = display.markers;
    this.closures.group.visible = display.closures;
    this.trails.group.visible = display.path;
    if (!display.path) this.trails.clear();
    if (display.markerScale !== this.goalScale) this.loadGoals();
    for (const part of [this.skeleton, this.markers, this.closures, this.goals]) part.drawThrough(display.drawThrough);
  }

  updateHighlight(hovered: Hit | null): void {
    const selection = this.store.selection;
    this.links.updateHighlight(
      selection.kind === "link" ? selection.link : -1,
      hovered?.kind === "link" ? hovered.link : -1,
    );
    this.goals.updateHighlight(
      selection.kind === "goal" ? selection.goal : 0,
      hovered?.kind === "goal" ? hovered.goal : 0,
    );
    this.markers.updateHighlight(
      selection.kind === "dof" ? selection.dof : -1,
      hovered?.kind === "dof" ? hovered.dof : -1,
    );
    this.obstacles.updateHighlight(
      selection.kind === "obstacle" ? selection.obstacle : null,
      hovered?.kind === "obstacle" ? hovered.obstacle : null,
    );
  }

  /** Moves all objects to the state of a frame. metresPerPixel: size of a pixel at a point, m. */
  applyFrame(frame: StateFrame, metresPerPixel: (point: Vector3) => number): void {
    const { display, model, goals } = this.store;
    const { dofFrames, theme } = this;
    if (model === null || dofFrames === null) return;
    this.links.applyPoses(frame.links);
    dofFrames.update(frame.links, frame.values);
    this.skeleton.update(frame.links, theme);
    this.closures.update(frame.links, frame.closures, metresPerPixel, theme);
    this.markers.update(dofFrames, frame.values, model.dofs, display.markerScale, theme);
    this.goals.update(frame, theme);
    if (display.path && frame.layer === 0)
      this.trails.extend(goals, frame.links, TRAIL_STEP * model.radius, theme.path);
    this.group.updateMatrixWorld();
  }

  /** Moves the goal markers to `GoalInfo.pose`, before the first frame. */
  applyGoalTargets(): void {
    this.goals.update(null, this.theme);
    this.group.updateMatrixWorld();
  }

  /** Positions floor and light for a model; returns the normal of the plane of motion, or null if there is no plane. */
  placeFloor(model: Model): Vector3 | null {
    const planeNormal = this.dofFrames === null ? null : planeOfMotion(model, this.dofFrames);
    const isVerticalPlane = planeNormal !== null && Math.abs(planeNormal.z) < 0.5;
    const normal = isVerticalPlane ? planeNormal : UP;
    const origin = new Vector3(...model.centre);
    const lowestHeight = this.links.lowest(normal);
    const groundTolerance = GROUND_TOLERANCE * model.radius;
    const isOnGround = !isVerticalPlane && lowestHeight < groundTolerance && lowestHeight > -groundTolerance;
    const floorHeight = !isFinite(lowestHeight) || isOnGround ? 0 : lowestHeight;
    origin.addScaledVector(normal, floorHeight - (isVerticalPlane ? 0.04 * model.radius : 0) - origin.dot(normal));
    this.floor.moveTo(origin, normal, model.radius);
    this.materials.aimLights(new Vector3(...model.view_from));
    // a planar mechanism is seen along the normal of its plane, with short shadows
    const shadowReach = (isVerticalPlane ? 0.8 : 3) * model.radius;
    this.materials.castShadowsOnto(origin, normal, shadowReach, planeNormal === null ? 0.3 : 0.75);
    return planeNormal;
  }

  /** Position of a dof in the world. */
  dofPosition(dof: number): Vector3 | undefined {
    const frame = this.dofFrames?.frames[dof];
    return frame && new Vector3().setFromMatrixPosition(frame);
  }

  /** Mean position of all links, which the camera follows. */
  linkCentre(result: Vector3): Vector3 {
    result.set(0, 0, 0);
    for (const { object } of this.links.links) {
      const m = object.matrix.elements;
      result.set(result.x + m[12], result.y + m[13], result.z + m[14]);
    }
    return result.divideScalar(Math.max(1, this.links.links.length));
  }

  private onMeshLoaded(): void {
    if (this.store.alternatives !== null) this.loadAlternatives();
    if (this.store.model !== null) this.placeFloor(this.store.model); // the lowest point may have changed
    this.onChange();
  }
}
