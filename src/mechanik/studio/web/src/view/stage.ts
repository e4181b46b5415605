// All that stands in the picture, and how it follows the store.
import { Group, Vector3 } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import type { Frame } from "../wire/frame";
import { Bodies } from "./bodies";
import { Closures } from "./closures";
import { Ghosts } from "./ghosts";
import { Goals } from "./goals";
import { Ground } from "./ground";
import type { Hit } from "./hit";
import { JointFrames } from "./joint_frames";
import { Curves, Paths } from "./lines";
import { Markers } from "./markers";
import { Materials } from "./materials";
import { Obstacles } from "./obstacles";
import { planeOf } from "./planar";
import { Skeleton } from "./skeleton";
import { Terrain } from "./terrain";
import { THEMES, type Theme } from "./theme";

const UP = new Vector3(0, 0, 1);
const ON_THE_GROUND = 0.03; // of the radius: a foot so near to height zero stands there
const STRIDE = 2e-3; // of the radius: the shortest step of a path

export class Stage {
  readonly group = new Group();
  readonly bodies: Bodies;
  readonly obstacles: Obstacles;
  readonly goals = new Goals();
  readonly markers = new Markers();
  joints: JointFrames | null = null;
  private readonly materials = new Materials();
  private readonly skeleton = new Skeleton();
  private readonly closures = new Closures();
  private readonly ground: Ground;
  private readonly terrain = new Terrain(this.materials);
  private readonly ghosts = new Ghosts(this.materials);
  private readonly curves = new Curves();
  private readonly paths = new Paths();
  private goalScale = 0;

  /** changed: something has to be drawn again. */
  constructor(
    private readonly store: Store,
    private readonly changed: () => void,
  ) {
    const failed = (text: string) => store.emit("message", { kind: "warning", text });
    this.bodies = new Bodies(this.materials, this.theme, () => this.arrived(), failed);
    this.obstacles = new Obstacles(this.materials, this.theme, changed, failed);
    this.ground = new Ground(this.theme);
    for (const part of [
      this.ground,
      this.terrain,
      this.bodies,
      this.obstacles,
      this.ghosts,
      this.skeleton,
      this.closures,
      this.markers,
      this.curves,
      this.paths,
      this.goals,
    ]) {
      this.group.add(part.group);
    }
  }

  get theme(): Theme {
    return THEMES[this.store.display.theme];
  }

  take(model: Model): void {
    this.joints = new JointFrames(model);
    this.bodies.take(model, this.theme);
    this.skeleton.take(model);
    this.closures.take(model);
    this.markers.take(model);
    this.ghosts.take([], []);
    this.paths.clear();
    this.takeObstacles();
    this.takeClashes();
    this.takeGoals();
  }

  takeObstacles(): void {
    this.obstacles.take(this.store.obstacles, this.store.model);
    this.group.updateMatrixWorld();
  }

  /** What bumps is red; not where several methods are drawn, since it is known of one alone. */
  takeClashes(): void {
    const { clashes, comparison } = this.store;
    const seen = (comparison?.rows.length ?? 0) > 0 ? null : clashes;
    this.bodies.clash(new Set(seen?.links));
    this.obstacles.clash(new Set(seen?.obstacles));
  }

  takeGoals(): void {
    this.goalScale = this.store.display.markerScale;
    this.goals.take(this.store.goals, this.store.order, this.store.model?.radius ?? 1, this.goalScale);
  }

  takeGhosts(): void {
    this.ghosts.take(this.bodies.links, this.store.ghosts?.poses ?? []);
  }

  takeScene(): void {
    this.curves.take(this.store.scene?.curves ?? []);
    this.terrain.take(this.store.scene?.terrain ?? null, this.theme);
  }

  clearPath(): void {
    this.paths.clear();
  }

  /** Colours, and what is drawn at all. hasShadows: whether the machine keeps up with them. */
  show(hasShadows: boolean): void {
    const { display } = this.store;
    const theme = this.theme;
    this.materials.paint(theme);
    this.ground.paint(theme);
    this.paths.paint(theme.path);
    this.terrain.paint(theme);
    this.obstacles.paint(theme);
    this.ground.show(display.grid && !this.terrain.isThere);
    this.bodies.show(display.bodies, display.collisions);
    const shadows = display.shadows && hasShadows && display.bodies && !this.terrain.isThere;
    this.bodies.castShadows(shadows);
    this.obstacles.castShadows(shadows);
    this.skeleton.group.visible = display.skeleton;
    this.markers.group.visible = display.markers;
    this.closures.group.visible = display.closures;
    this.paths.group.visible = display.path;
    if (!display.path) this.paths.clear();
    if (display.markerScale !== this.goalScale) this.takeGoals();
    for (const part of [this.skeleton, this.markers, this.closures, this.goals]) part.drawThrough(display.drawThrough);
  }

  mark(hovered: Hit | null): void {
    const chosen = this.store.selection;
    this.bodies.mark(chosen.kind === "link" ? chosen.link : -1, hovered?.kind === "link" ? hovered.link : -1);
    this.goals.mark(chosen.kind === "goal" ? chosen.goal : 0, hovered?.kind === "goal" ? hovered.goal : 0);
    this.markers.mark(
      chosen.kind === "freedom" ? chosen.freedom : -1,
      hovered?.kind === "freedom" ? hovered.freedom : -1,
    );
    this.obstacles.mark(
      chosen.kind === "obstacle" ? chosen.obstacle : null,
      hovered?.kind === "obstacle" ? hovered.obstacle : null,
    );
  }

  /** Put everything where this frame says. pixel: metres that a pixel covers at a place. */
  pose(frame: Frame, pixel: (place: Vector3) => number): void {
    const { display, model, goals } = this.store;
    const { joints, theme } = this;
    if (model === null || joints === null) return;
    this.bodies.pose(frame.links);
    joints.update(frame.links, frame.values);
    this.skeleton.update(frame.links, theme);
    this.closures.update(frame.links, frame.closures, pixel, theme);
    this.markers.update(joints, frame.values, model.dofs, display.markerScale, theme);
    this.goals.update(frame, theme);
    if (display.path && frame.layer === 0) this.paths.walk(goals, frame.links, STRIDE * model.radius, theme.path);
    this.group.updateMatrixWorld();
  }

  /** Where nothing has come yet, goals stand where they were asked for. */
  poseGoals(): void {
    this.goals.update(null, this.theme);
    this.group.updateMatrixWorld();
  }

  /** Lay the ground and the light where the model stands; tells the plane in which it moves, if it does in one. */
  settleDown(model: Model): Vector3 | null {
    const plane = this.joints === null ? null : planeOf(model, this.joints);
    const isUpright = plane !== null && Math.abs(plane.z) < 0.5;
    const normal = isUpright ? plane : UP;
    const foot = new Vector3(...model.centre);
    const low = this.bodies.lowest(normal);
    const level =
      !isFinite(low) || (!isUpright && low < ON_THE_GROUND * model.radius && low > -ON_THE_GROUND * model.radius)
        ? 0
        : low;
    foot.addScaledVector(normal, level - (isUpright ? 0.04 * model.radius : 0) - foot.dot(normal));
    this.ground.lay(foot, normal, model.radius);
    this.materials.aim(new Vector3(...model.view_from));
    // a planar mechanism is looked at straight: its shadow stays close to it
    this.materials.shadeOnto(foot, normal, (isUpright ? 0.8 : 3) * model.radius, plane === null ? 0.3 : 0.75);
    return plane;
  }

  /** Where a freedom moves. */
  placeOf(freedom: number): Vector3 | undefined {
    const frame = this.joints?.frames[freedom];
    return frame && new Vector3().setFromMatrixPosition(frame);
  }

  /** The middle of all links; cheap, and moves with a mechanism that walks away. */
  middle(into: Vector3): Vector3 {
    into.set(0, 0, 0);
    for (const { object } of this.bodies.links) {
      const m = object.matrix.elements;
      into.set(into.x + m[12], into.y + m[13], into.z + m[14]);
    }
    return into.divideScalar(Math.max(1, this.bodies.links.length));
  }

  private arrived(): void {
    if (this.store.ghosts !== null) this.takeGhosts();
    if (this.store.model !== null) this.settleDown(this.store.model); // only now it is known how far down it reaches
    this.changed();
  }
}
