// Scene: what the demonstration shows, and all that can be set of it.
import { el, fill, section } from "./element";
import { controlField, type ControlField } from "./control_field";
import type { Panel } from "./side";
import type { Store } from "../store";

export class ScenePanel implements Panel {
  readonly root = el("div", { test: "panel-scene" });
  private fields = new Map<string, ControlField>();
  private signature = "";

  constructor(private readonly store: Store) {
    store.on("scene", () => this.build());
    store.on("controls", () => this.paint());
  }

  private build(): void {
    const scene = this.store.scene;
    if (!scene) return;
    // curves and terrain come with the same event; fields that a hand is on must not be made anew for them
    const signature = JSON.stringify([
      scene.name,
      scene.title,
      scene.about,
      scene.controls.map((control) => ({ ...control, value: null })),
    ]);
    if (signature === this.signature) return this.paint();
    this.signature = signature;
    this.fields = new Map();
    const groups = new Map<string, HTMLElement[]>();
    for (const control of scene.controls) {
      const field = controlField(control, (value, isHeld = false) => {
        void this.store.ask({ do: "SetControl", name: control.name, value, is_dragging: isHeld }).then((isDone) => {
          if (!isDone) this.paint();
        });
      });
      this.fields.set(control.name, field);
      groups.set(control.group, [...(groups.get(control.group) ?? []), field.root]);
    }
    const about = scene.about
      .split(/\n+/)
      .filter(Boolean)
      .map((text) => el("p", {}, text));
    fill(
      this.root,
      section("", el("div", { class: "about", test: "scene-about" }, el("strong", {}, scene.title), ...about)),
      ...[...groups].map(([headline, fields]) => section(headline, el("div", { class: "controls" }, ...fields))),
    );
  }

  private paint(): void {
    for (const control of this.store.scene?.controls ?? []) this.fields.get(control.name)?.show(control.value);
  }
}
