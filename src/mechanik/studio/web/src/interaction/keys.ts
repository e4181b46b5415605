// Keyboard shortcuts of the view. In text fields only Esc is handled, which removes the focus from the field.
import { Vector3 } from "three";
import type { Display, Store } from "../store";

export interface KeyActions {
  setMode(mode: "move" | "rotate" | "both"): void;
  toggleSpace(): void;
  /** Frames the selection, or all if nothing is selected. */
  frame(): void;
  help(): void;
  /** Esc; see `InteractionController.onEscape`. */
  escape(): void;
  viewFrom(direction: Vector3): void;
  /** Ctrl or Cmd was pressed or released, which changes snapping. */
  snapKeyChanged(event: KeyboardEvent): void;
  isDragging(): boolean;
}

const TEXT_INPUT_TYPES = new Set(["text", "search", "number", "email", "url", "password", "tel", "date", "time"]);
// on these elements the space key does not run or pause the solver
const PRESSABLE_SELECTOR = "button, a, summary, input, [role=button], [role=tab]";
const DISPLAY_KEYS: Record<string, keyof Display> = {
  g: "grid",
  l: "labels",
  b: "bodies",
  k: "skeleton",
  x: "drawThrough",
};
/** Directions from the mechanism to the camera. */
const VIEW_KEYS: Record<string, Vector3> = {
  "1": new Vector3(0, -1, 0), // front
  "2": new Vector3(1, 0, 0), // right
  "3": new Vector3(0, 0, 1), // top
  "4": new Vector3(0, 1, 0), // back
  "5": new Vector3(-1, 0, 0), // left
  "6": new Vector3(0, 0, -1), // bottom
};

export function listenToKeys(store: Store, actions: KeyActions, signal: AbortSignal): void {
  window.addEventListener("keydown", (event) => onKeyDown(event, store, actions), { signal });
  window.addEventListener("keyup", (event) => {
    if (event.key === "Control" || event.key === "Meta") actions.snapKeyChanged(event);
    if (event.key === "Alt" && !isTyping(event.target)) event.preventDefault(); // some browsers open their menu bar
  }, { signal });
}

function onKeyDown(event: KeyboardEvent, store: Store, actions: KeyActions): void {
  const { target } = event;
  if (isTyping(target)) {
    if (event.key === "Escape" && target instanceof HTMLElement) target.blur();
    return;
  }
  if (event.key === "Escape") return actions.escape();
  if (event.key === "Control" || event.key === "Meta") return actions.snapKeyChanged(event);
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]") !== null) return;
  if (handleKey(event, store, actions)) event.preventDefault();
}

/** Handles a key; returns whether it was handled, so that the browser must not handle it too. */
function handleKey(event: KeyboardEvent, store: Store, actions: KeyActions): boolean {
  const key = event.key.toLowerCase();
  if (event.altKey) return false;
  if (event.ctrlKey || event.metaKey) return !actions.isDragging() && undoOrRedo(key, event.shiftKey, store);
  if (event.shiftKey && key !== "?") return false;
  const setting = DISPLAY_KEYS[key];
  if (setting !== undefined) {
    if (!event.repeat) store.setDisplay({ [setting]: !store.display[setting] });
    return true;
  }
  const direction = VIEW_KEYS[key];
  if (direction !== undefined) {
    actions.viewFrom(direction);
    return true;
  }
  switch (key) {
    case "w":
    case "e":
    case "r":
      actions.setMode(key === "w" ? "move" : key === "e" ? "rotate" : "both");
      return true;
    case "q":
      if (!event.repeat) actions.toggleSpace();
      return true;
    case "f":
      actions.frame();
      return true;
    case "h":
    case "?":
      actions.help();
      return true;
    case "delete":
    case "backspace":
      return !(event.target instanceof HTMLInputElement) && removeSelected(store, actions);
    case " ":
      return !event.repeat && runOrPause(event.target, store);
  }
  return false;
}

/** Stores with an undo or redo request that has no reply yet. */
const storesWithPendingUndo = new WeakSet<Store>();

function undoOrRedo(key: string, isShiftPressed: boolean, store: Store): boolean {
  const isUndo = key === "z" && !isShiftPressed;
  if (!isUndo && key !== "y" && !(key === "z" && isShiftPressed)) return false;
  const stepLabel = isUndo ? store.history?.undo : store.history?.redo;
  if (!stepLabel || storesWithPendingUndo.has(store)) return true; // a held key repeats faster than the server replies
  storesWithPendingUndo.add(store);
  void store.request({ do: isUndo ? "Undo" : "Redo" }).finally(() => storesWithPendingUndo.delete(store));
  return true;
}

function removeSelected(store: Store, actions: KeyActions): boolean {
  const selection = store.selection;
  if (actions.isDragging()) return false;
  if (selection.kind === "goal") void store.request({ do: "RemoveGoal", goal: selection.goal });
  if (selection.kind === "obstacle") void store.request({ do: "RemoveObstacle", obstacle: selection.obstacle });
  return selection.kind === "goal" || selection.kind === "obstacle";
}

function runOrPause(target: EventTarget | null, store: Store): boolean {
  const isPressable = target instanceof Element && target.closest(PRESSABLE_SELECTOR) !== null;
  if (isPressable || store.solving === null || store.model === null) return false;
  void store.request({ do: "SetRunning", running: !store.solving.running });
  return true;
}

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return TEXT_INPUT_TYPES.has(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}
