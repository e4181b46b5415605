// Keys of the view. While somebody types they mean letters, and nothing is done here but to leave the field by Esc.
import { Vector3 } from "three";
import type { Display, Store } from "../store";

export interface KeyWishes {
  setMode(mode: "move" | "rotate" | "both"): void;
  toggleSpace(): void;
  frame(): void;
  help(): void;
  /** Esc: the innermost thing that can be left. */
  leave(): void;
  lookFrom(direction: Vector3): void;
  /** Ctrl was pressed or let go: what is dragged goes on in steps, or without. */
  stepsChanged(event: KeyboardEvent): void;
  isDragging(): boolean;
}

const TYPED = new Set(["text", "search", "number", "email", "url", "password", "tel", "date", "time"]);
const PRESSED_BY_SPACE = "button, a, summary, input, [role=button], [role=tab]";
const SHOWN: Record<string, keyof Display> = { g: "grid", l: "labels", b: "bodies", k: "skeleton", x: "drawThrough" };
const VIEWS: Record<string, Vector3> = {
  "1": new Vector3(0, -1, 0), // front
  "2": new Vector3(1, 0, 0), // right
  "3": new Vector3(0, 0, 1), // top
  "4": new Vector3(0, 1, 0), // back
  "5": new Vector3(-1, 0, 0), // left
  "6": new Vector3(0, 0, -1), // below
};

export function listenToKeys(store: Store, wishes: KeyWishes, signal: AbortSignal): void {
  window.addEventListener("keydown", (event) => pressed(event, store, wishes), { signal });
  window.addEventListener("keyup", (event) => {
    if (event.key === "Control" || event.key === "Meta") wishes.stepsChanged(event);
    if (event.key === "Alt" && !isTyping(event.target)) event.preventDefault(); // some browsers open their menu bar
  }, { signal });
}

function pressed(event: KeyboardEvent, store: Store, wishes: KeyWishes): void {
  const { target } = event;
  if (isTyping(target)) {
    if (event.key === "Escape" && target instanceof HTMLElement) target.blur();
    return;
  }
  if (event.key === "Escape") return wishes.leave();
  if (event.key === "Control" || event.key === "Meta") return wishes.stepsChanged(event);
  if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]") !== null) return;
  if (act(event, store, wishes)) event.preventDefault();
}

/** Whether the key meant something. */
function act(event: KeyboardEvent, store: Store, wishes: KeyWishes): boolean {
  const key = event.key.toLowerCase();
  if (event.altKey) return false;
  if (event.ctrlKey || event.metaKey) return !wishes.isDragging() && history(key, event.shiftKey, store);
  if (event.shiftKey && key !== "?") return false;
  const shown = SHOWN[key];
  if (shown !== undefined) {
    if (!event.repeat) store.show({ [shown]: !store.display[shown] });
    return true;
  }
  const view = VIEWS[key];
  if (view !== undefined) {
    wishes.lookFrom(view);
    return true;
  }
  switch (key) {
    case "w":
    case "e":
    case "r":
      wishes.setMode(key === "w" ? "move" : key === "e" ? "rotate" : "both");
      return true;
    case "q":
      if (!event.repeat) wishes.toggleSpace();
      return true;
    case "f":
      wishes.frame();
      return true;
    case "h":
    case "?":
      wishes.help();
      return true;
    case "delete":
    case "backspace":
      return !(event.target instanceof HTMLInputElement) && removeSelected(store, wishes); // a slider, say
    case " ":
      return !event.repeat && runOrPause(event.target, store);
  }
  return false;
}

/** Those whose last step back or forth has not been answered yet. */
const underway = new WeakSet<Store>();

function history(key: string, shift: boolean, store: Store): boolean {
  const back = key === "z" && !shift;
  if (!back && key !== "y" && !(key === "z" && shift)) return false;
  const isThere = back ? store.history?.undo : store.history?.redo;
  if (!isThere || underway.has(store)) return true; // a key held down repeats faster than it is answered
  underway.add(store);
  void store.ask({ do: back ? "Undo" : "Redo" }).finally(() => underway.delete(store));
  return true;
}

function removeSelected(store: Store, wishes: KeyWishes): boolean {
  const chosen = store.selection;
  if (wishes.isDragging()) return false;
  if (chosen.kind === "goal") void store.ask({ do: "RemoveGoal", goal: chosen.goal });
  if (chosen.kind === "obstacle") void store.ask({ do: "RemoveObstacle", obstacle: chosen.obstacle });
  return chosen.kind === "goal" || chosen.kind === "obstacle";
}

function runOrPause(target: EventTarget | null, store: Store): boolean {
  const isPressable = target instanceof Element && target.closest(PRESSED_BY_SPACE) !== null;
  if (isPressable || store.solving === null || store.model === null) return false;
  void store.ask({ do: "SetRunning", running: !store.solving.running });
  return true;
}

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return TYPED.has(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}
