// Controller of the interaction in the view: handle, camera, joint drags, context menu and keys.
import type { Store } from "../store";
import { selectionOf } from "../view/hit";
import type { Hit, View } from "../view/view";
import { CameraControl } from "./camera_control";
import { menuFor } from "./menu_items";
import { Gizmo, type Mode, type Space } from "./gizmo";
import { listenToKeys } from "./keys";
import { Menu } from "./menu";
import { Pointers } from "./pointers";
import { Unprojector } from "./unproject";

/**
 * change: mode, space, snapping or camera style has changed, or a drag has started or ended. help: H or ? was pressed.
 */
export type ControllerEvent = "change" | "help";

export class InteractionController {
  mode: Mode = "move";
  space: Space = "world";
  /** Whether drags snap; Ctrl or Cmd inverts this setting while it is pressed. */
  isSnapping = false;
  readonly menu = new Menu();
  private readonly listeners: Record<ControllerEvent, (() => void)[]> = { change: [], help: [] };
  private readonly escapeHandlers: (() => boolean)[] = [];
  private readonly abortController = new AbortController(); // removes all event listeners
  private readonly camera: CameraControl;
  private readonly gizmo: Gizmo;
  private readonly pointers: Pointers;
  private awaitsFirstGoal = false; // a new model was opened, and its goals have not arrived yet

  constructor(
    private readonly view: View,
    private readonly store: Store,
  ) {
    const unprojector = new Unprojector(view);
    const { signal } = this.abortController;
    view.canvas.tabIndex = 0;
    view.canvas.classList.add("view-canvas");
    this.camera = new CameraControl(view, unprojector);
    this.gizmo = new Gizmo(view, unprojector, store);
    this.pointers = new Pointers(view, unprojector, store, this.camera, this.gizmo, {
      openMenu: (x, y, hit) => this.openMenu(x, y, hit, hit?.kind === "dof" ? view.pick(x, y, "link") : null),
      onDragChange: () => this.emit("change"),
      isSnapping: (event) => (event.ctrlKey || event.metaKey) !== this.isSnapping,
    }, signal);
    view.canvas.addEventListener("keydown", (event) => this.menuKey(event), { signal });
    listenToKeys(store, {
      setMode: (mode) => this.setMode(mode),
      toggleSpace: () => this.setSpace(this.space === "world" ? "local" : "world"),
      frame: () => (store.selection.kind === "none" ? view.frameAll() : view.frameSelection()),
      help: () => this.emit("help"),
      escape: () => this.escape(),
      viewFrom: (direction) => view.viewFrom(direction),
      snapKeyChanged: (event) => this.pointers.repeatMove(event),
      isDragging: () => this.isDragging,
    }, signal);
    this.watchStore();
  }

  get isDragging(): boolean {
    return this.pointers.isDragging;
  }

  /**
   * orbit: drags on the background, with the middle or right button, or with Alt move the camera. maya: of these, only
   * drags with Alt.
   */
  get cameraStyle(): "orbit" | "maya" {
    return this.pointers.cameraStyle;
  }

  set cameraStyle(style: "orbit" | "maya") {
    this.pointers.cameraStyle = style;
    this.emit("change");
  }

  setMode(mode: Mode): void {
    if (this.isDragging) return;
    this.mode = mode;
    this.gizmo.setMode(mode);
    this.emit("change");
  }

  setSpace(space: Space): void {
    if (this.isDragging) return;
    this.space = space;
    this.gizmo.setSpace(space);
    this.emit("change");
  }

  setSnapping(isSnapping: boolean): void {
    this.isSnapping = isSnapping;
    this.emit("change");
  }

  on(name: ControllerEvent, listener: () => void): void {
    this.listeners[name].push(listener);
  }

  /**
   * Adds a handler for Esc. It returns whether it has closed anything. Esc does the first of these actions that is
   * possible: cancel a drag, close the menu, close a dialog, call the handlers until one has closed anything, clear the
   * selection.
   */
  onEscape(handler: () => boolean): void {
    this.escapeHandlers.push(handler);
  }

  dispose(): void {
    this.pointers.endDrag();
    this.menu.close();
    this.abortController.abort();
  }

  private emit(name: ControllerEvent): void {
    for (const listener of this.listeners[name]) listener();
  }

  private escape(): void {
    if (this.pointers.cancelDrag()) return;
    if (this.menu.isOpen) return this.menu.close();
    if (document.querySelector("dialog[open]") !== null) return; // the dialog closes itself
    if (this.escapeHandlers.some((close) => close())) return;
    this.store.select({ kind: "none" });
  }

  /** hitBehind: the link behind the marker of a dof, if `hit` is a marker. */
  private openMenu(x: number, y: number, hit: Hit | null, hitBehind: Hit | null = null): void {
    const content = menuFor(hit, hitBehind, this.store, this.view);
    if (content === null) return;
    if (hit !== null) this.store.select(selectionOf(hit));
    this.menu.open(x, y, content.title, content.groups);
  }

  /** Opens the menu of the selection, by the menu key or Shift + F10. */
  private menuKey(event: KeyboardEvent): void {
    if (event.key !== "ContextMenu" && !(event.key === "F10" && event.shiftKey)) return;
    event.preventDefault();
    const canvasBounds = this.view.canvas.getBoundingClientRect();
    const selection = this.store.selection;
    const point = this.view.target.clone();
    const { frame } = this.store;
    if (selection.kind === "link" && frame !== null) point.fromArray(frame.links, 7 * selection.link);
    const hit = selection.kind === "none" ? null : { ...selection, point };
    const [x, y] = [canvasBounds.left + canvasBounds.width / 2, canvasBounds.top + canvasBounds.height / 3];
    this.openMenu(x, y, hit);
  }

  private watchStore(): void {
    const { store } = this;
    store.on("connected", (isConnected) => {
      if (!isConnected) this.pointers.abandonDrag();
    });
    store.on("model", (model) => {
      this.pointers.endDrag();
      this.menu.close();
      this.camera.radius = model.radius;
      this.awaitsFirstGoal = model.resets_view;
    });
    store.on("obstacles", () => this.pointers.abandonIfRemoved());
    store.on("goals", ({ goals }) => {
      this.pointers.abandonIfRemoved();
      if (!this.awaitsFirstGoal) return;
      this.awaitsFirstGoal = false; // select a goal of a new mechanism to show its handle
      const firstGoal = goals.find((goal) => goal.enabled && !goal.pinned && !goal.is_link_drag);
      if (firstGoal === undefined || store.selection.kind !== "none") return;
      store.select({ kind: "goal", goal: firstGoal.number });
    });
  }
}
