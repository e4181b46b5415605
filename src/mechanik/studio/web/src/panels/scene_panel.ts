// Panel with the controls of the scene.
import { el, fill, section } from "./element";
import { controlField, type ControlField } from "./control_field";
import type { Panel } from "./sidebar";
import type { Store } from "../store";

export class ScenePanel implements Panel {
  readonly root = el("div", { test: "panel-scene" });
  private fields = new Map<string, ControlField>();
  private signature = "";

  constructor(private readonly store: Store) {
    store.on("scene", () => this.build());
    store.on("controls", () => this.refresh());
  }

  private build(): void {
    const scene = this.store.scene;
    if (!scene) return;
    // curves and terrain are part of the same event; their changes must not rebuild a field that the user is dragging
    const signature = JSON.stringify([
      scene.name,
      scene.title,
      scene.about,
      scene.controls.map((control) => ({ ...control, value: null })),
    ]);
    if (signature === this.signature) return this.refresh();
    this.signature = signature;
    this.fields = new Map();
    const groups = new Map<string, HTMLElement[]>();
    for (const control of scene.controls) {
      const field = controlField(control, (value, isDragging = false) => {
        const request = { do: "SetControl", name: control.name, value, is_dragging: isDragging } as const;
        void this.store.request(request).then((isAccepted) => {
          if (!isAccepted) this.refresh();
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
      ...[...groups].map(([heading, fields]) => section(heading, el("div", { class: "controls" }, ...fields))),
    );
  }

  private refresh(): void {
    for (const control of this.store.scene?.controls ?? []) this.fields.get(control.name)?.show(control.value);
  }
}
