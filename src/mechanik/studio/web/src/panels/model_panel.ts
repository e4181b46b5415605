// Panel of the model: description, links and joints, model as text, and files.
import { button, el, fill, section } from "./element";
import { Editor } from "./editor";
import { countText } from "./format";
import { LinkTree } from "./link_tree";
import type { Panel } from "./sidebar";
import { modelTitle } from "./titles";
import type { Upload } from "./upload";
import type { Store } from "../store";

export class ModelPanel implements Panel {
  readonly root = el("div", { test: "panel-model" });
  private readonly about = el("div", { class: "about", test: "about" });
  private readonly tree: LinkTree;

  constructor(
    private readonly store: Store,
    upload: Upload,
  ) {
    this.tree = new LinkTree(store);
    const showAllLinks = (visible: boolean) => (): void =>
      void store.request({ do: "ShowLinks", links: store.model?.links.map(({ name }) => name) ?? [], visible });
    const save = (kind: "mechanism" | "urdf", title: string): HTMLElement =>
      button(title, { test: `export-${kind}`, click: () => void store.request({ do: "Export", kind }) }, "save");
    this.root.append(
      section("", this.about),
      section(
        "Links and joints",
        this.tree.root,
        el(
          "div",
          { class: "buttons" },
          button("Show all", { class: "is-small", test: "show-all", click: showAllLinks(true) }),
          button("Hide all", { class: "is-small", test: "hide-all", click: showAllLinks(false) }),
        ),
      ),
      section("Model as text", new Editor(store).root),
      section(
        "Files",
        el("p", { class: "quiet" }, "Drop a URDF, MJCF, SDF, JSON or zip file anywhere on this page."),
        el(
          "div",
          { class: "buttons is-wrapping" },
          upload.button("Open a file"),
          save("mechanism", "Save as JSON"),
          save("urdf", "Save as URDF"),
        ),
      ),
    );
    store.on("model", () => this.refresh());
  }

  onShown(): void {
    this.tree.reveal();
  }

  private refresh(): void {
    const model = this.store.model;
    if (!model) return;
    const counts = [
      countText(model.links.length, "link"),
      countText(model.joints.length, "joint"),
      model.closures.length > 0 ? countText(model.closures.length, "loop") : "no loops",
    ].join(", ");
    fill(
      this.about,
      el("strong", {}, modelTitle(model, this.store.welcome?.entries ?? [])),
      el("p", { class: "quiet" }, counts),
      ...model.about.map((sentence) => el("p", {}, sentence)),
    );
  }
}
