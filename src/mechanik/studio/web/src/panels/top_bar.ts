// The bar above: where one is, undo and redo, the handle's modes, the camera, the look.
import { DisplayMenu } from "./display_menu";
import { button, el, iconButton, press, write } from "./element";
import { redraw, type IconName } from "./icons";
import { titleOf } from "./titles";
import type { Hands } from "../hands/hands";
import type { Store } from "../store";
import type { View } from "../view/view";

const MODES: [mode: Hands["mode"], picture: IconName, title: string][] = [
  ["move", "move", "Move (W)"],
  ["rotate", "rotate", "Rotate (E)"],
  ["both", "both", "Move and rotate (R)"],
];

export interface TopBarActions {
  openStart(): void;
  openHelp(): void;
}

export class TopBar {
  readonly root = el("header", { class: "top", attributes: { "aria-label": "Tools" } });
  readonly display: DisplayMenu;
  private readonly title = el("span", { class: "top-title", test: "title" });
  private readonly undo = iconButton("undo", "Undo", {
    test: "undo",
    click: () => void this.store.ask({ do: "Undo" }),
  });
  private readonly redo = iconButton("redo", "Redo", {
    test: "redo",
    click: () => void this.store.ask({ do: "Redo" }),
  });
  private readonly space = iconButton("world", "Axes of the world (Q)", {
    test: "space",
    click: () => this.turnSpace(),
  });
  private readonly snap = iconButton("snap", "In steps (or hold Ctrl)", { test: "snap", click: () => this.turnSnap() });
  private readonly theme = iconButton("moon", "Dark or light", {
    test: "theme",
    class: "is-spare",
    click: () => this.turnTheme(),
  });
  private readonly modes: [Hands["mode"], HTMLButtonElement][];

  constructor(
    private readonly view: View,
    private readonly hands: Hands,
    private readonly store: Store,
    actions: TopBarActions,
  ) {
    this.display = new DisplayMenu(store);
    this.modes = MODES.map(([mode, picture, title]) => [
      mode,
      iconButton(picture, title, { test: `mode-${mode}`, click: () => hands.setMode(mode) }),
    ]);
    const home = button(
      "Mechanik",
      { class: "brand", label: "Start page", test: "home", click: () => actions.openStart() },
      "home",
    );
    this.root.append(
      home,
      this.title,
      el(
        "div",
        { class: "tools", role: "toolbar", attributes: { "aria-label": "Tools" } },
        group("History", this.undo, this.redo),
        group("Handle", ...this.modes.map(([, one]) => one), this.space, this.snap),
        group(
          "Camera",
          iconButton("frame", "Frame the selection, or all (F)", { test: "frame", click: () => this.frame() }),
        ),
      ),
      el(
        "div",
        { class: "tools is-right" },
        this.theme,
        this.display.root,
        iconButton("help", "Keys and gestures (H)", { test: "help-open", click: () => actions.openHelp() }),
      ),
    );
    store.on("model", () => this.paint());
    store.on("scene", () => this.paint());
    store.on("history", () => this.paint());
    store.on("display", () => this.paint());
    hands.on("change", () => this.paint());
    this.paint();
  }

  private paint(): void {
    const { history, display } = this.store;
    const title = titleOf(this.store);
    write(this.title, title);
    document.title = title ? `${title} · Mechanik studio` : "Mechanik studio";
    name(this.undo, history?.undo ? `Undo: ${history.undo} (Ctrl+Z)` : "Nothing to undo");
    name(this.redo, history?.redo ? `Redo: ${history.redo} (Ctrl+Shift+Z)` : "Nothing to redo");
    this.undo.disabled = !history?.undo;
    this.redo.disabled = !history?.redo;
    for (const [mode, one] of this.modes) press(one, this.hands.mode === mode);
    redraw(this.space, this.hands.space === "world" ? "world" : "local");
    name(this.space, this.hands.space === "world" ? "Along the world's axes (Q)" : "Along its own axes (Q)");
    press(this.snap, this.hands.snaps);
    redraw(this.theme, display.theme === "dark" ? "moon" : "sun");
    name(this.theme, display.theme === "dark" ? "Dark; make it light" : "Light; make it dark");
  }

  private turnSpace(): void {
    this.hands.setSpace(this.hands.space === "world" ? "local" : "world");
  }

  private turnSnap(): void {
    this.hands.setSnaps(!this.hands.snaps);
  }

  private turnTheme(): void {
    this.store.show({ theme: this.store.display.theme === "dark" ? "light" : "dark" });
  }

  private frame(): void {
    if (this.store.selection.kind === "none") this.view.frameAll();
    else this.view.frameSelection();
  }
}

function group(title: string, ...children: HTMLElement[]): HTMLElement {
  return el("div", { class: "tool-group", role: "group", attributes: { "aria-label": title } }, ...children);
}

function name(one: HTMLElement, text: string): void {
  one.title = text;
  one.setAttribute("aria-label", text);
}
