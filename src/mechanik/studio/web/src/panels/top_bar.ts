// Top bar: start page, title, undo and redo, modes of the handle, camera, theme, display settings and help.
import { DisplayMenu } from "./display_menu";
import { button, el, iconButton, press, write } from "./element";
import { setIcon, type IconName } from "./icons";
import { pageTitle } from "./titles";
import type { InteractionController } from "../interaction/controller";
import type { Store } from "../store";
import type { View } from "../view/view";

const MODES: [mode: InteractionController["mode"], picture: IconName, title: string][] = [
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
    click: () => void this.store.request({ do: "Undo" }),
  });
  private readonly redo = iconButton("redo", "Redo", {
    test: "redo",
    click: () => void this.store.request({ do: "Redo" }),
  });
  private readonly space = iconButton("world", "World axes (Q)", {
    test: "space",
    click: () => this.toggleSpace(),
  });
  private readonly snap = iconButton(
    "snap",
    "Snap to steps (or hold Ctrl)",
    { test: "snap", click: () => this.toggleSnap() },
  );
  private readonly theme = iconButton("moon", "Switch theme", {
    test: "theme",
    class: "is-spare",
    click: () => this.toggleTheme(),
  });
  private readonly modes: [InteractionController["mode"], HTMLButtonElement][];

  constructor(
    private readonly view: View,
    private readonly controller: InteractionController,
    private readonly store: Store,
    actions: TopBarActions,
  ) {
    this.display = new DisplayMenu(store);
    this.modes = MODES.map(([mode, picture, title]) => [
      mode,
      iconButton(picture, title, { test: `mode-${mode}`, click: () => controller.setMode(mode) }),
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
        group("Handle", ...this.modes.map(([, button]) => button), this.space, this.snap),
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
    store.on("model", () => this.refresh());
    store.on("scene", () => this.refresh());
    store.on("history", () => this.refresh());
    store.on("display", () => this.refresh());
    controller.on("change", () => this.refresh());
    this.refresh();
  }

  private refresh(): void {
    const { history, display } = this.store;
    const title = pageTitle(this.store);
    write(this.title, title);
    document.title = title ? `${title} · Mechanik studio` : "Mechanik studio";
    setLabel(this.undo, history?.undo ? `Undo: ${history.undo} (Ctrl+Z)` : "Nothing to undo");
    setLabel(this.redo, history?.redo ? `Redo: ${history.redo} (Ctrl+Shift+Z)` : "Nothing to redo");
    this.undo.disabled = !history?.undo;
    this.redo.disabled = !history?.redo;
    for (const [mode, button] of this.modes) press(button, this.controller.mode === mode);
    setIcon(this.space, this.controller.space === "world" ? "world" : "local");
    setLabel(this.space, this.controller.space === "world" ? "World axes (Q)" : "Local axes (Q)");
    press(this.snap, this.controller.isSnapping);
    setIcon(this.theme, display.theme === "dark" ? "moon" : "sun");
    setLabel(this.theme, display.theme === "dark" ? "Switch to light theme" : "Switch to dark theme");
  }

  private toggleSpace(): void {
    this.controller.setSpace(this.controller.space === "world" ? "local" : "world");
  }

  private toggleSnap(): void {
    this.controller.setSnapping(!this.controller.isSnapping);
  }

  private toggleTheme(): void {
    this.store.setDisplay({ theme: this.store.display.theme === "dark" ? "light" : "dark" });
  }

  private frame(): void {
    if (this.store.selection.kind === "none") this.view.frameAll();
    else this.view.frameSelection();
  }
}

function group(title: string, ...children: HTMLElement[]): HTMLElement {
  return el("div", { class: "tool-group", role: "group", attributes: { "aria-label": title } }, ...children);
}

function setLabel(button: HTMLElement, text: string): void {
  button.title = text;
  button.setAttribute("aria-label", text);
}
