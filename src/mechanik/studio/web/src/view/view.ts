// The picture: it follows the store, draws when something has changed, and says what is under the pointer.
import { LinearSRGBColorSpace, Scene, Sphere, Vector2, Vector3, WebGLRenderer, type Object3D } from "three";
import type { Model } from "../messages";
import type { Store } from "../store";
import { Eye, type Camera } from "./camera";
import { ALL, Cover } from "./cover";
import { FirstLook, around, besides } from "./framing";
import { nameOf, type Hit } from "./hit";
import { Words } from "./labels";
import { Leash } from "./leash";
import { nameThings } from "./naming";
import { pick } from "./picking";
import { toPng, watchLoss } from "./picture";
import { Quality } from "./quality";
import { sceneDisplay } from "./scene_display";
import { Stage } from "./stage";
import { Still, isSoftware } from "./still";
import { Tiling, areaAt, drawTiles, titleOf } from "./tiles";

export type { Camera, Hit };

/** camera: it is another object now; framed: it was put elsewhere by the view; drawn: pixels have changed. */
export type Happening = "camera" | "framed" | "drawn";

const middle = new Vector3();
const NOTHING = new Sphere(new Vector3(), 1);

export class View {
  readonly scene = new Scene();
  readonly renderer: WebGLRenderer;
  readonly canvas: HTMLCanvasElement;
  readonly quality: Quality;
  readonly cover: Cover;
  private readonly still: Still;
  private readonly eye = new Eye();
  private readonly stage: Stage;
  private readonly words: Words;
  private readonly leash: Leash;
  private readonly firstLook = new FirstLook();
  private readonly tiling = new Tiling();
  private readonly listeners = new Map<Happening, (() => void)[]>();
  private readonly metresPerPixel = (place: Vector3): number => this.eye.metresPerPixel(place, this.area(0).height);
  private asked = 0;
  private isStale = false; // a frame came and the objects do not stand there yet
  private isNew = false; // no frame of this model was seen
  private plane: Vector3 | null = null; // in which the model moves, seen from its front
  private hovered: Hit | null = null;

  constructor(
    readonly host: HTMLElement,
    private readonly store: Store,
  ) {
    const isSlow = isSoftware();
    this.renderer = new WebGLRenderer({ antialias: !isSlow, powerPreference: "high-performance" });
    this.renderer.outputColorSpace = LinearSRGBColorSpace; // colours are those of the screen already
    this.canvas = this.renderer.domElement;
    this.quality = new Quality(this.renderer, () => this.resize());
    this.still = new Still(this.renderer, this.quality, isSlow);
    this.stage = new Stage(store, () => this.showAll());
    this.scene.add(this.stage.group);
    host.append(this.canvas);
    this.words = new Words(host);
    watchLoss(this.canvas, store, () => this.showAll());
    this.leash = new Leash(this.canvas);
    this.cover = new Cover(host, () => this.resize());
    new ResizeObserver(() => this.resize()).observe(host);
    this.follow();
    this.showAll();
    this.resize();
  }

  get camera(): Camera {
    return this.eye.camera;
  }

  /** What the camera looks at; whoever moves the camera moves it. */
  get target(): Vector3 {
    return this.eye.target;
  }

  on(what: Happening, listener: () => void): void {
    this.listeners.set(what, [...(this.listeners.get(what) ?? []), listener]);
  }

  /** Ask for one frame. */
  draw(): void {
    if (this.asked === 0) this.asked = requestAnimationFrame(() => this.drawNow());
  }

  /** What can be taken under the pointer: goals, then markers of freedoms, then links; "link": past markers there. */
  pick(clientX: number, clientY: number, what: "any" | "link" = "any"): Hit | null {
    this.settle();
    return pick(this.store, this.stage, this.camera, this.pointer(clientX, clientY), this.area(0), what);
  }

  /** Where on the camera's picture the pointer is, -1 to 1 each way; with tiles, on the tile that it is over. */
  pointer(clientX: number, clientY: number, into = new Vector2()): Vector2 {
    const canvas = this.canvas.getBoundingClientRect();
    const [x, y] = [clientX - canvas.left, clientY - canvas.top];
    const area = areaAt(this.tiling.tiles, x, y, canvas.width, canvas.height);
    return into.set((2 * (x - area.x)) / area.width - 1, 1 - (2 * (y - area.y)) / area.height);
  }

  /** Show what the pointer is over. */
  hover(hit: Hit | null): void {
    const isSame = nameOf(hit) === nameOf(this.hovered);
    this.hovered = hit;
    if (!isSame) this.mark();
  }

  /** Its matrix is the link's pose. */
  linkObject(link: number): Object3D | null {
    this.settle();
    return this.stage.bodies.links[link]?.object ?? null;
  }

  /** Its matrix is the goal's pose. */
  goalObject(goal: number): Object3D | null {
    this.settle();
    return this.stage.goals.object(goal);
  }

  frameAll(): void {
    this.lookFrom();
  }

  frameSelection(): void {
    this.settle();
    const ball = around(this.store.selection, this.stage, this.store.model?.radius ?? 1);
    if (ball === null) this.frameAll();
    else this.frame(ball, undefined, false);
  }

  /** Look at the whole, from another side if one is given. */
  lookFrom(direction?: Vector3): void {
    this.settle();
    this.frame(this.stage.bodies.bounds() ?? NOTHING, direction);
  }

  /** Forget the path that was walked. */
  clearPath(): void {
    this.stage.clearPath();
    this.draw();
  }

  /** As finely as it can be drawn, also where moving pictures are coarser. */
  screenshot(): Promise<Blob> {
    this.stage.show(true);
    this.fitCamera(ALL); // nothing covers it there
    this.prepare();
    this.still.draw(this.render);
    const written = toPng(this.canvas); // takes the pixels now, before they are drawn over
    this.fitCamera();
    this.showAll();
    return written;
  }

  private follow(): void {
    const { store, stage } = this;
    store.on("model", (model) => this.take(model));
    for (const news of ["frame", "layer", "freedoms"] as const) store.on(news, () => this.moved());
    for (const news of ["shown", "display"] as const) store.on(news, () => this.showAll());
    store.on("selection", () => this.mark());
    store.on("comparison", () => {
      stage.takeClashes();
      this.layTiles();
    });
    store.on("clashes", () => {
      stage.takeClashes();
      this.moved();
    });
    store.on("obstacles", () => {
      stage.takeObstacles();
      this.firstLook.add();
      this.moved();
    });
    store.on("goals", () => {
      stage.takeGoals();
      this.firstLook.add();
      this.mark();
    });
    store.on("ghosts", () => {
      stage.takeGhosts();
      this.draw();
    });
    const beginsToShow = sceneDisplay(store);
    store.on("scene", (scene) => {
      stage.takeScene();
      this.firstLook.add();
      if (!beginsToShow(scene)) this.showAll();
    });
  }

  private take(model: Model): void {
    this.stage.take(model);
    this.words.clear();
    this.hovered = null;
    this.isNew = true;
    this.showAll();
  }

  private moved(): void {
    this.isStale = true;
    this.draw();
  }

  /** Put all objects where the newest frame says. */
  private settle(): void {
    const { frame, model } = this.store;
    if (!this.isStale || model === null) return;
    this.isStale = false;
    if (frame === null) return this.stage.poseGoals();
    this.stage.pose(frame, this.metresPerPixel);
    if (this.isNew) this.first(model);
    else if (this.firstLook.isDue()) this.frameFirst(model);
    else if (this.store.scene?.name && this.leash.pull(this.stage.middle(middle), model.radius, this.eye))
      this.tell("framed");
  }

  /** The first frame of a model: ground, light and camera go where it stands. */
  private first(model: Model): void {
    this.isNew = false;
    this.plane = this.stage.settleDown(model);
    if (!model.resets_view) return this.leash.tie(this.stage.middle(middle));
    if (this.eye.setFlat(this.plane !== null)) this.tell("camera");
    this.firstLook.begin();
    this.frameFirst(model);
  }

  private frameFirst(model: Model): void {
    this.leash.tie(this.stage.middle(middle));
    const ball = new Sphere(new Vector3(...model.centre), model.radius);
    this.frame(ball, this.plane ?? new Vector3(...model.view_from));
  }

  private frame(ball: Sphere, from?: Vector3, hasMore = true): void {
    this.eye.frame(ball, from, hasMore ? besides(ball, this.stage, this.store.scene?.curves ?? []) : []);
    this.tell("framed");
    this.draw();
  }

  private showAll(): void {
    this.renderer.setClearColor(this.stage.theme.background);
    this.words.paint(this.store.display.theme);
    this.stage.show(this.quality.shadows);
    this.mark();
  }

  private mark(): void {
    this.stage.mark(this.hovered);
    this.moved();
  }

  private layTiles(): void {
    if (!this.tiling.lay(this.store.comparison?.rows ?? [], ...this.cover.freePixels)) return;
    this.words.setTitles(this.tiling.tiles.map(titleOf));
    this.fitCamera();
    this.moved();
  }

  private fitCamera(free = this.tiling.tiles.length > 0 ? ALL : this.cover.free): void {
    const { width, height } = this.area(0);
    this.eye.resize(width / height, free);
  }

  private area(tile: number): DOMRect {
    return this.tiling.tiles[tile]?.area ?? new DOMRect(0, 0, this.host.clientWidth, this.host.clientHeight);
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.host;
    if (clientWidth === 0 || clientHeight === 0) return;
    this.renderer.setPixelRatio(this.quality.ratio);
    this.renderer.setSize(clientWidth, clientHeight);
    this.layTiles();
    this.fitCamera();
    this.firstLook.add(); // panels that open with a scene take from the picture
    this.showAll();
  }

  private drawNow(): void {
    cancelAnimationFrame(this.asked);
    this.asked = 0;
    this.prepare();
    this.quality.measure(this.render);
    this.still.after(this.render);
    nameThings(this.words, this.store, this.stage, this.hovered, this.camera, this.area(0));
    this.tell("drawn");
  }

  private prepare(): void {
    this.settle();
    this.eye.clip(this.store.model?.radius ?? 1);
  }

  private readonly render = (): void => {
    const [{ store, stage, renderer }, { tiles }] = [this, this.tiling];
    const draw = () => renderer.render(this.scene, this.camera);
    if (tiles.length === 0) return draw();
    drawTiles(renderer, tiles, stage.theme, (row) => {
      const frame = store.layers.get(row.layer);
      if (frame === undefined || row.refusal !== "") return renderer.clear();
      stage.pose(frame, this.metresPerPixel);
      draw();
    });
    if (store.frame !== null) stage.pose(store.frame, this.metresPerPixel);
  };

  private tell(what: Happening): void {
    for (const listener of this.listeners.get(what) ?? []) listener();
  }
}
