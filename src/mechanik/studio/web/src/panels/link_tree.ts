// The tree of links and joints: what carries what, what is drawn, what is selected.
import { el, fill, iconButton, press } from "./element";
import { redraw } from "./icons";
import type { Model } from "../messages";
import type { Store } from "../store";

export class LinkTree {
  readonly root = el("div", { class: "tree", role: "tree", test: "tree" });
  private readonly rows = new Map<string, HTMLElement>();
  private eyes: HTMLButtonElement[] = [];

  constructor(private readonly store: Store) {
    store.on("model", (model) => this.build(model));
    store.on("shown", () => this.paint());
    store.on("selection", () => this.select());
  }

  /** Brings the selected row into sight. */
  reveal(): void {
    this.root.querySelector(".is-selected")?.scrollIntoView({ block: "nearest" });
  }

  private build(model: Model): void {
    this.rows.clear();
    this.eyes = [];
    const roots = model.links.flatMap((link, k) => (link.parent === -1 ? [this.link(model, k)] : []));
    fill(this.root, ...roots);
    this.paint();
    this.select();
  }

  /** A link with the joints that it carries below it, each with its own link. */
  private link(model: Model, k: number): HTMLElement {
    const carried = model.joints.flatMap((joint, j) => (joint.parent === k ? [j] : []));
    const below = el("div", { class: "tree-below", role: "group" });
    for (const j of carried) {
      below.append(this.joint(model, j));
      const child = model.joints[j]!.child;
      if (child >= 0) below.append(this.link(model, child));
    }
    const isLong = carried.length > 1; // a chain stays at one depth, so that long arms can be read
    below.classList.toggle("is-branching", isLong);
    const fold = el(
      "button",
      { class: "tree-fold", label: "Fold", attributes: { "aria-expanded": "true" } },
      carried.length > 0 ? "▾" : "",
    );
    fold.type = "button";
    fold.disabled = carried.length === 0;
    fold.addEventListener("click", () => {
      below.hidden = !below.hidden;
      fold.textContent = below.hidden ? "▸" : "▾";
      fold.setAttribute("aria-expanded", String(!below.hidden));
    });
    const link = model.links[k]!;
    const eye = iconButton("eye", `Show or hide ${link.name}`, {
      test: `eye-${link.name}`,
      click: () =>
        void this.store.ask({ do: "ShowLinks", links: [link.name], visible: !this.store.model?.links[k]?.visible }),
    });
    this.eyes[k] = eye;
    const name = el(
      "button",
      {
        class: "tree-name",
        test: `link-${link.name}`,
        title: link.name,
        click: () => this.store.select({ kind: "link", link: k }),
      },
      link.name,
    );
    name.type = "button";
    const row = el("div", { class: "tree-row is-link", role: "treeitem" }, fold, name, eye);
    this.rows.set(`link ${k}`, row);
    return el("div", { class: "tree-node" }, row, below);
  }

  private joint(model: Model, j: number): HTMLElement {
    const joint = model.joints[j]!;
    const [first] = joint.dofs;
    const name = el("button", { class: "tree-name", title: joint.name }, joint.name);
    name.type = "button";
    name.disabled = first === undefined;
    if (first !== undefined)
      name.addEventListener("click", () => this.store.select({ kind: "freedom", freedom: first }));
    const row = el(
      "div",
      { class: "tree-row is-joint", role: "treeitem" },
      name,
      el("span", { class: "tree-kind" }, joint.child === -1 ? `${joint.kind}, closes a loop` : joint.kind),
    );
    for (const freedom of joint.dofs) this.rows.set(`freedom ${freedom}`, row);
    return row;
  }

  private paint(): void {
    this.store.model?.links.forEach((link, k) => {
      const eye = this.eyes[k];
      if (!eye) return;
      redraw(eye, link.visible ? "eye" : "hidden");
      press(eye, link.visible);
      this.rows.get(`link ${k}`)?.classList.toggle("is-off", !link.visible);
    });
  }

  private select(): void {
    const chosen = this.store.selection;
    const key =
      chosen.kind === "link" ? `link ${chosen.link}` : chosen.kind === "freedom" ? `freedom ${chosen.freedom}` : "";
    for (const row of this.rows.values()) row.classList.remove("is-selected");
    this.rows.get(key)?.classList.add("is-selected");
  }
}
