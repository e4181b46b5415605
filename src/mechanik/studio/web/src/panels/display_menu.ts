// Display menu: which parts are drawn, marker size and theme.
import { el, iconButton, toggle } from "./element";
import { Slider } from "./slider";
import type { Display, Store } from "../store";

type SwitchName = { [K in keyof Display]: Display[K] extends boolean ? K : never }[keyof Display];

const SWITCHES: [name: SwitchName, title: string, key: string][] = [
  ["bodies", "Bodies", "B"],
  ["skeleton", "Skeleton", "K"],
  ["markers", "Joint markers with limits", ""],
  ["collisions", "Collision shapes", ""],
  ["closures", "Loop closures", ""],
  ["labels", "Labels", "L"],
  ["path", "Paths of goal points", ""],
  ["grid", "Grid", "G"],
  ["shadows", "Shadows", ""],
  ["drawThrough", "Draw markers through bodies", "X"],
];

export class DisplayMenu {
  readonly root = el("div", { class: "menu-place" });
  private readonly menu = el("div", {
    class: "menu",
    test: "display-menu",
    role: "group",
    attributes: { "aria-label": "Display" },
  });
  private readonly button = iconButton("eye", "Display", { test: "display", click: () => this.toggle() });

  constructor(store: Store) {
    this.menu.hidden = true;
    this.root.append(this.button, this.menu);
    const boxes = SWITCHES.map(([name, title, key]) => {
      const { root, box } = toggle(title, store.display[name], { test: `display-${name}` }, (isOn) =>
        store.setDisplay({ [name]: isOn }),
      );
      if (key) root.append(el("kbd", {}, key));
      this.menu.append(root);
      return [name, box] as const;
    });
    const size = new Slider(
      { label: "Marker size", test: "display-markerScale" },
      { drag: (markerScale) => store.setDisplay({ markerScale }) },
    );
    size.setRange(0.3, 3);
    size.show(store.display.markerScale);
    const light = toggle("Light theme", store.display.theme === "light", { test: "display-light" }, (isOn) =>
      store.setDisplay({ theme: isOn ? "light" : "dark" }),
    );
    this.menu.append(
      el("div", { class: "line" }, el("span", { class: "line-name" }, "Marker size"), size.root),
      light.root,
    );
    store.on("display", (display) => {
      for (const [name, box] of boxes) box.checked = display[name];
      light.box.checked = display.theme === "light";
      size.show(display.markerScale);
    });
    window.addEventListener(
      "pointerdown",
      (event) => {
        if (!this.root.contains(event.target as Node)) this.close();
      },
      { capture: true },
    );
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.menu.hidden) return;
      this.close();
      this.button.focus();
      event.stopPropagation();
    });
  }

  /** Closes the menu; returns whether it was open. */
  close(): boolean {
    const wasOpen = !this.menu.hidden;
    this.menu.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    return wasOpen;
  }

  private toggle(): void {
    this.menu.hidden = !this.menu.hidden;
    this.button.setAttribute("aria-expanded", String(!this.menu.hidden));
  }
}
