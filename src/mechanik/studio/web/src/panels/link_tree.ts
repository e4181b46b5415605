// Tree of links and joints, with visibility and selection.
import { el, fill, iconButton, press } from "./element";
import { setIcon } from "./icons";
import type { Model } from "../messages";
import type { Store } from "../store";

export class LinkTree {
  readonly root = el("div", { class: "tree", role: "tree", test: "tree" });
  private readonly rows = new Map<string, HTMLElement>();
  private visibilityButtons: HTMLButtonElement[] = [];

  constructor(private readonly store: Store) {
    store.on("model", (model) => this.build(model));
    store.on("visibility", () => this.refresh());
    store.on("selection", () => this.select());
  }

  /** Scrolls to the selected row. */
  reveal(): void {
    this.root.querySelector(".is-selected")?.scrollIntoView({ block: "nearest" });
  }

  private build(model: Model): void {
    this.rows.clear();
    this.visibilityButtons = [];
    const roots = model.links.flatMap((link, k) => (link.parent === -1 ? [this.link(model, k)] : []));
    fill(this.root, ...roots);
    this.refresh();
    this.select();
  }

  /** Element of a link, with its child joints and their links below it. */
  private link(model: Model, k: number): HTMLElement {
    const childJoints = model.joints.flatMap((joint, j) => (joint.parent === k ? [j] : []));
    const children = el("div", { class: "tree-below", role: "group" });
    for (const j of childJoints) {
      children.append(this.joint(model, j));
      const child = model.joints[j]!.child;
      if (child >= 0) children.append(this.link(model, child));
    }
    const isBranching = childJoints.length > 1; // a chain is not indented, so that long arms remain readable
    children.classList.toggle("is-branching", isBranching);
    const foldButton = el(
      "button",
      { class: "tree-fold", label: "Fold or unfold", attributes: { "aria-expanded": "true" } },
      childJoints.length > 0 ? "▾" : "",
    );
    foldButton.type = "button";
    foldButton.disabled = childJoints.length === 0;
    foldButton.addEventListener("click", () => {
      children.hidden = !children.hidden;
      foldButton.textContent = children.hidden ? "▸" : "▾";
      foldButton.setAttribute("aria-expanded", String(!children.hidden));
    });
    const link = model.links[k]!;
    const visibilityButton = iconButton("eye", `Show or hide ${link.name}`, {
      test: `eye-${link.name}`,
      click: () =>
        void this.store.request({ do: "ShowLinks", links: [link.name], visible: !this.store.model?.links[k]?.visible }),
    });
    this.visibilityButtons[k] = visibilityButton;
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
    const row = el("div", { class: "tree-row is-link", role: "treeitem" }, foldButton, name, visibilityButton);
    this.rows.set(`link ${k}`, row);
    return el("div", { class: "tree-node" }, row, children);
  }

  /** Element of a joint; a click selects its first dof. */
  private joint(model: Model, j: number): HTMLElement {
    const joint = model.joints[j]!;
    const [firstDof] = joint.dofs;
    const name = el("button", { class: "tree-name", title: joint.name }, joint.name);
    name.type = "button";
    name.disabled = firstDof === undefined;
    if (firstDof !== undefined)
      name.addEventListener("click", () => this.store.select({ kind: "dof", dof: firstDof }));
    const row = el(
      "div",
      { class: "tree-row is-joint", role: "treeitem" },
      name,
      el("span", { class: "tree-kind" }, joint.child === -1 ? `${joint.kind}, closes a loop` : joint.kind),
    );
    for (const dof of joint.dofs) this.rows.set(`dof ${dof}`, row);
    return row;
  }

  private refresh(): void {
    this.store.model?.links.forEach((link, k) => {
      const visibilityButton = this.visibilityButtons[k];
      if (!visibilityButton) return;
      setIcon(visibilityButton, link.visible ? "eye" : "hidden");
      press(visibilityButton, link.visible);
      this.rows.get(`link ${k}`)?.classList.toggle("is-off", !link.visible);
    });
  }

  private select(): void {
    const selection = this.store.selection;
    const key =
      selection.kind === "link" ? `link ${selection.link}` : selection.kind === "dof" ? `dof ${selection.dof}` : "";
    for (const row of this.rows.values()) row.classList.remove("is-selected");
    this.rows.get(key)?.classList.add("is-selected");
  }
}
