// View of the mechanism: listens to the store, draws after changes, and picks objects under the pointer.
import { LinearSRGBColorSpace, Scene, Sphere, Vector2, Vector3, WebGLRenderer, type Object3D } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import { ViewCamera, type Camera } from "./view_camera";
import { WHOLE_VIEW, SafeArea } from "./safe_area";
import { InitialFraming, selectionSphere, framedPoints } from "./framing";
import { hitKey, type Hit } from "./hit";
import { LabelLayer } from "./labels";
import { CameraFollow } from "./camera_follow";
import { updateLabels } from "./name_labels";
import { pick } from "./picking";
import { toPng, watchContextLoss } from "./screenshot";
import { RenderQuality } from "./quality";
import { sceneDisplay } from "./scene_display";
import { SceneGraph } from "./scene_graph";
import { IdleRefiner, isSoftware } from "./refine_when_idle";
import { Tiling, areaAt, drawTiles, tileTitle } from "./tiles";

export type { Camera, Hit };

/** camera: the camera is a new object; framed: the view has moved the camera; drawn: the image has changed. */
export type ViewEvent = "camera" | "framed" | "drawn";

const scratch = new Vector3();
const UNIT_SPHERE = new Sphere(new Vector3(), 1);

export class View {
  readonly scene = new Scene();
  readonly renderer: WebGLRenderer;
  readonly canvas: HTMLCanvasElement;
  readonly quality: RenderQuality;
  readonly safeArea: SafeArea;
  private readonly idleRefiner: IdleRefiner;
  private readonly viewCamera = new ViewCamera();
  private readonly sceneGraph: SceneGraph;
  private readonly labels: LabelLayer;
  private readonly cameraFollow: CameraFollow;
  private readonly initialFraming = new InitialFraming();
  private readonly tiling = new Tiling();
  private readonly listeners = new Map<ViewEvent, (() => void)[]>();
  private readonly metresPerPixel = (point: Vector3): number =>
    this.viewCamera.metresPerPixel(point, this.area(0).height);
  private drawRequest = 0;
  private isStale = false; // objects are not yet at the poses of the newest frame
  private awaitsFirstFrame = false; // a new model without a frame
  private planeNormal: Vector3 | null = null; // normal of the plane of motion, towards the viewer
  private hovered: Hit | null = null;

  constructor(
    readonly host: HTMLElement,
    private readonly store: Store,
  ) {
    const isSoftwareRenderer = isSoftware();
    this.renderer = new WebGLRenderer({ antialias: !isSoftwareRenderer, powerPreference: "high-performance" });
    this.renderer.outputColorSpace = LinearSRGBColorSpace; // colours are sRGB already
    this.canvas = this.renderer.domElement;
    this.quality = new RenderQuality(this.renderer, () => this.resize());
    this.idleRefiner = new IdleRefiner(this.renderer, this.quality, isSoftwareRenderer);
    this.sceneGraph = new SceneGraph(store, () => this.applyDisplay());
    this.scene.add(this.sceneGraph.group);
    host.append(this.canvas);
    this.labels = new LabelLayer(host);
    watchContextLoss(this.canvas, store, () => this.applyDisplay());
    this.cameraFollow = new CameraFollow(this.canvas);
    this.safeArea = new SafeArea(host, () => this.resize());
    new ResizeObserver(() => this.resize()).observe(host);
    this.listen();
    this.applyDisplay();
    this.resize();
  }

  get camera(): Camera {
    return this.viewCamera.camera;
  }

  /** Point at which the camera looks, in the middle of the free part of the view; code that pans must move it too. */
  get target(): Vector3 {
    return this.viewCamera.target;
  }

  on(name: ViewEvent, listener: () => void): void {
    this.listeners.set(name, [...(this.listeners.get(name) ?? []), listener]);
  }

  /** Requests drawing; several requests are merged into one image. */
  draw(): void {
    if (this.drawRequest === 0) this.drawRequest = requestAnimationFrame(() => this.drawNow());
  }

  /** The object under the pointer, at client pixels; see `pick` in picking.ts. */
  pick(clientX: number, clientY: number, filter: "any" | "link" = "any"): Hit | null {
    this.applyPoses();
    return pick(this.store, this.sceneGraph, this.camera, this.pointer(clientX, clientY), this.area(0), filter);
  }

  /** Position of the pointer in the image, x and y from -1 to 1; with tiles, in the tile under the pointer. */
  pointer(clientX: number, clientY: number, result = new Vector2()): Vector2 {
    const canvas = this.canvas.getBoundingClientRect();
    const [x, y] = [clientX - canvas.left, clientY - canvas.top];
    const area = areaAt(this.tiling.tiles, x, y, canvas.width, canvas.height);
    return result.set((2 * (x - area.x)) / area.width - 1, 1 - (2 * (y - area.y)) / area.height);
  }

  /** Highlights the object under the pointer. */
  hover(hit: Hit | null): void {
    const isSame = hitKey(hit) === hitKey(this.hovered);
    this.hovered = hit;
    if (!isSame) this.updateHighlight();
  }

  /** The object whose matrix is the pose of the link. */
  linkObject(link: number): Object3D | null {
    this.applyPoses();
    return this.sceneGraph.links.links[link]?.object ?? null;
  }

  /** The object whose matrix is the pose of the goal. */
  goalObject(goal: number): Object3D | null {
    this.applyPoses();
    return this.sceneGraph.goals.object(goal);
  }

  frameAll(): void {
    this.viewFrom();
  }

  frameSelection(): void {
    this.applyPoses();
    const sphere = selectionSphere(this.store.selection, this.sceneGraph, this.store.model?.radius ?? 1);
    if (sphere === null) this.frameAll();
    else this.frame(sphere, undefined, false);
  }

  /** Frames everything. direction: from the mechanism to the camera; default: the present direction. */
  viewFrom(direction?: Vector3): void {
    this.applyPoses();
    this.frame(this.sceneGraph.links.bounds() ?? UNIT_SPHERE, direction);
  }

  /** Removes the trails of goals. */
  clearTrails(): void {
    this.sceneGraph.clearTrails();
    this.draw();
  }

  /** A screenshot in the finest quality, as PNG. */
  screenshot(): Promise<Blob> {
    this.sceneGraph.applyDisplay(true);
    this.fitCamera(WHOLE_VIEW); // panels do not cover a screenshot
    this.prepare();
    this.idleRefiner.draw(this.render);
    const png = toPng(this.canvas); // reads the pixels before they are overwritten
    this.fitCamera();
    this.applyDisplay();
    return png;
  }

  private listen(): void {
    const { store, sceneGraph } = this;
    store.on("model", (model) => this.loadModel(model));
    for (const event of ["frame", "layer", "dofs"] as const) store.on(event, () => this.invalidate());
    for (const event of ["visibility", "display"] as const) store.on(event, () => this.applyDisplay());
    store.on("selection", () => this.updateHighlight());
    store.on("comparison", () => {
      sceneGraph.updateContacts();
      this.updateTiles();
    });
    store.on("contacts", () => {
      sceneGraph.updateContacts();
      this.invalidate();
    });
    store.on("obstacles", () => {
      sceneGraph.loadObstacles();
      this.initialFraming.notify();
      this.invalidate();
    });
    store.on("goals", () => {
      sceneGraph.loadGoals();
      this.initialFraming.notify();
      this.updateHighlight();
    });
    store.on("alternatives", () => {
      sceneGraph.loadAlternatives();
      this.draw();
    });
    const applySceneDisplay = sceneDisplay(store);
    store.on("scene", (scene) => {
      sceneGraph.loadScene();
      this.initialFraming.notify();
      if (!applySceneDisplay(scene)) this.applyDisplay();
    });
  }

  private loadModel(model: Model): void {
    this.sceneGraph.loadModel(model);
    this.labels.clear();
    this.hovered = null;
    this.awaitsFirstFrame = true;
    this.applyDisplay();
  }

  private invalidate(): void {
    this.isStale = true;
    this.draw();
  }

  /** Moves all objects to the newest frame. */
  private applyPoses(): void {
    const { frame, model } = this.store;
    if (!this.isStale || model === null) return;
    this.isStale = false;
    if (frame === null) return this.sceneGraph.applyGoalTargets();
    this.sceneGraph.applyFrame(frame, this.metresPerPixel);
    if (this.awaitsFirstFrame) this.onFirstFrame(model);
    else if (this.initialFraming.isDue()) this.frameModel(model);
    else if (this.store.scene?.name) {
      const centre = this.sceneGraph.linkCentre(scratch);
      if (this.cameraFollow.follow(centre, model.radius, this.viewCamera)) this.emit("framed");
    }
  }

  /** First frame of a model: places floor, light and camera. */
  private onFirstFrame(model: Model): void {
    this.awaitsFirstFrame = false;
    this.planeNormal = this.sceneGraph.placeFloor(model);
    if (!model.resets_view) return this.cameraFollow.reset(this.sceneGraph.linkCentre(scratch));
    if (this.viewCamera.setOrthographic(this.planeNormal !== null)) this.emit("camera");
    this.initialFraming.start();
    this.frameModel(model);
  }

  private frameModel(model: Model): void {
    this.cameraFollow.reset(this.sceneGraph.linkCentre(scratch));
    const sphere = new Sphere(new Vector3(...model.centre), model.radius);
    this.frame(sphere, this.planeNormal ?? new Vector3(...model.view_from));
  }

  /** direction: from the sphere to the camera; includesOthers: whether goals, obstacles and curves are framed too. */
  private frame(sphere: Sphere, direction?: Vector3, includesOthers = true): void {
    this.viewCamera.frame(
      sphere,
      direction,
      includesOthers ? framedPoints(sphere, this.sceneGraph, this.store.scene?.curves ?? []) : [],
    );
    this.emit("framed");
    this.draw();
  }

  private applyDisplay(): void {
    this.renderer.setClearColor(this.sceneGraph.theme.background);
    this.labels.setTheme(this.store.display.theme);
    this.sceneGraph.applyDisplay(this.quality.shadows);
    this.updateHighlight();
  }

  private updateHighlight(): void {
    this.sceneGraph.updateHighlight(this.hovered);
    this.invalidate();
  }

  private updateTiles(): void {
    if (!this.tiling.layOut(this.store.comparison?.rows ?? [], ...this.safeArea.freePixels)) return;
    this.labels.setTitles(this.tiling.tiles.map(tileTitle));
    this.fitCamera();
    this.invalidate();
  }

  private fitCamera(free = this.tiling.tiles.length > 0 ? WHOLE_VIEW : this.safeArea.free): void {
    const { width, height } = this.area(0);
    this.viewCamera.resize(width / height, free);
  }

  /** Area of a tile, or of the whole view if there are no tiles, CSS pixels. */
  private area(tile: number): DOMRect {
    return this.tiling.tiles[tile]?.area ?? new DOMRect(0, 0, this.host.clientWidth, this.host.clientHeight);
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.host;
    if (clientWidth === 0 || clientHeight === 0) return;
    this.renderer.setPixelRatio(this.quality.ratio);
    this.renderer.setSize(clientWidth, clientHeight);
    this.updateTiles();
    this.fitCamera();
    this.initialFraming.notify(); // panels that open with a scene cover a part of the view
    this.applyDisplay();
  }

  private drawNow(): void {
    cancelAnimationFrame(this.drawRequest);
    this.drawRequest = 0;
    this.prepare();
    this.quality.measure(this.render);
    this.idleRefiner.schedule(this.render);
    updateLabels(this.labels, this.store, this.sceneGraph, this.hovered, this.camera, this.area(0));
    this.emit("drawn");
  }

  private prepare(): void {
    this.applyPoses();
    this.viewCamera.clip(this.store.model?.radius ?? 1);
  }

  private readonly render = (): void => {
    const [{ store, sceneGraph, renderer }, { tiles }] = [this, this.tiling];
    const draw = () => renderer.render(this.scene, this.camera);
    if (tiles.length === 0) return draw();
    drawTiles(renderer, tiles, sceneGraph.theme, (row) => {
      const frame = store.layers.get(row.layer);
      if (frame === undefined || row.refusal !== "") return renderer.clear();
      sceneGraph.applyFrame(frame, this.metresPerPixel);
      draw();
    });
    if (store.frame !== null) sceneGraph.applyFrame(store.frame, this.metresPerPixel);
  };

  private emit(name: ViewEvent): void {
    for (const listener of this.listeners.get(name) ?? []) listener();
  }
}
