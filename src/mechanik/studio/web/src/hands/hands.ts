// Everything a person does in the view: the handle, the camera, joints by hand, the menu, keys.
import type { Store } from "../store";
import { thing } from "../view/hit";
import type { Hit, View } from "../view/view";
import { Camera } from "./camera";
import { choicesFor } from "./choices";
import { Gizmo, type Mode, type Space } from "./gizmo";
import { listenToKeys } from "./keys";
import { Menu } from "./menu";
import { Pointers } from "./pointers";
import { Pointing } from "./pointing";

/** change: mode, space, steps, camera style, or whether something is dragged. help: H was pressed. */
export type HandsEvent = "change" | "help";

export class Hands {
  mode: Mode = "move";
  space: Space = "world";
  /** Whether drags go in steps without Ctrl (and without steps with it). */
  snaps = false;
  readonly menu = new Menu();
  private readonly listeners: Record<HandsEvent, (() => void)[]> = { change: [], help: [] };
  private readonly leaving: (() => boolean)[] = [];
  private readonly end = new AbortController();
  private readonly camera: Camera;
  private readonly gizmo: Gizmo;
  private readonly pointers: Pointers;
  private isNew = false; // a model has come and no goal of it has been selected yet

  constructor(
    private readonly view: View,
    private readonly store: Store,
  ) {
    const pointing = new Pointing(view);
    const { signal } = this.end;
    view.canvas.tabIndex = 0;
    view.canvas.classList.add("hands-canvas");
    this.camera = new Camera(view, pointing);
    this.gizmo = new Gizmo(view, pointing, store);
    this.pointers = new Pointers(view, pointing, store, this.camera, this.gizmo, {
      menu: (x, y, hit) => this.openMenu(x, y, hit, hit?.kind === "freedom" ? view.pick(x, y, "link") : null),
      changed: () => this.tell("change"),
      snaps: (event) => (event.ctrlKey || event.metaKey) !== this.snaps,
    }, signal);
    view.canvas.addEventListener("keydown", (event) => this.menuKey(event), { signal });
    listenToKeys(store, {
      setMode: (mode) => this.setMode(mode),
      toggleSpace: () => this.setSpace(this.space === "world" ? "local" : "world"),
      frame: () => (store.selection.kind === "none" ? view.frameAll() : view.frameSelection()),
      help: () => this.tell("help"),
      leave: () => this.leave(),
      lookFrom: (direction) => view.lookFrom(direction),
      stepsChanged: (event) => this.pointers.again(event),
      isDragging: () => this.isDragging,
    }, signal);
    this.watchStore();
  }

  get isDragging(): boolean {
    return this.pointers.isDragging;
  }

  /** orbit: plain drags move the camera. maya: only those with Alt do. */
  get cameraStyle(): "orbit" | "maya" {
    return this.pointers.cameraStyle;
  }

  set cameraStyle(style: "orbit" | "maya") {
    this.pointers.cameraStyle = style;
    this.tell("change");
  }

  setMode(mode: Mode): void {
    if (this.isDragging) return;
    this.mode = mode;
    this.gizmo.setMode(mode);
    this.tell("change");
  }

  setSpace(space: Space): void {
    if (this.isDragging) return;
    this.space = space;
    this.gizmo.setSpace(space);
    this.tell("change");
  }

  setSnaps(on: boolean): void {
    this.snaps = on;
    this.tell("change");
  }

  on(what: HandsEvent, listener: () => void): void {
    this.listeners[what].push(listener);
  }

  /** On Esc, after drags and the menu and before the selection: `leave` says whether it closed anything. */
  onEscape(leave: () => boolean): void {
    this.leaving.push(leave);
  }

  dispose(): void {
    this.pointers.letGo();
    this.menu.close();
    this.end.abort();
  }

  private tell(what: HandsEvent): void {
    for (const listener of this.listeners[what]) listener();
  }

  private leave(): void {
    if (this.pointers.putBack()) return;
    if (this.menu.isOpen) return this.menu.close();
    if (document.querySelector("dialog[open]") !== null) return; // closes itself
    if (this.leaving.some((close) => close())) return;
    this.store.select({ kind: "none" });
  }

  private openMenu(x: number, y: number, hit: Hit | null, behind: Hit | null = null): void {
    const choices = choicesFor(hit, behind, this.store, this.view);
    if (choices === null) return;
    if (hit !== null) this.store.select(thing(hit));
    this.menu.open(x, y, choices.title, choices.groups);
  }

  /** The menu of what is selected, by the menu key or Shift + F10. */
  private menuKey(event: KeyboardEvent): void {
    if (event.key !== "ContextMenu" && !(event.key === "F10" && event.shiftKey)) return;
    event.preventDefault();
    const box = this.view.canvas.getBoundingClientRect();
    const chosen = this.store.selection;
    const point = this.view.target.clone();
    const { frame } = this.store;
    if (chosen.kind === "link" && frame !== null) point.fromArray(frame.links, 7 * chosen.link);
    const hit = chosen.kind === "none" ? null : { ...chosen, point };
    this.openMenu(box.left + box.width / 2, box.top + box.height / 3, hit);
  }

  private watchStore(): void {
    const { store } = this;
    store.on("connected", (isConnected) => {
      if (!isConnected) this.pointers.drop();
    });
    store.on("model", (model) => {
      this.pointers.letGo();
      this.menu.close();
      this.camera.radius = model.radius;
      this.isNew = model.resets_view;
    });
    store.on("obstacles", () => this.pointers.dropWhatIsGone());
    store.on("goals", ({ goals }) => {
      this.pointers.dropWhatIsGone();
      if (!this.isNew) return;
      this.isNew = false; // a new mechanism comes with a handle in the hand
      const first = goals.find((goal) => goal.enabled && !goal.pinned && !goal.is_link_drag);
      if (first !== undefined && store.selection.kind === "none") store.select({ kind: "goal", goal: first.number });
    });
  }
}
