// Panel of the joints: named configurations, units, and a row for each dof.
import { SphericalRow } from "./spherical_row";
import { button, choice, el, fill, section, toggle } from "./element";
import { titleCase } from "./format";
import { SingleDofRow, type DofRow } from "./joint_row";
import { throttled } from "./throttle";
import type { Panel } from "./sidebar";
import type { Units } from "./units";
import type { Store } from "../store";

const MIN_FILTER_ROWS = 8; // number of rows from which the filter is shown

export class JointsPanel implements Panel {
  readonly root = el("div", { test: "panel-joints" });
  private readonly filter = el("input", {
    test: "joint-filter",
    label: "Filter joints",
    attributes: { placeholder: "Filter" },
  });
  private readonly configurations = el("div", { class: "buttons is-wrapping" });
  private readonly list = el("div", { class: "joints" });
  private rows: DofRow[] = [];

  constructor(
    private readonly store: Store,
    private readonly units: Units,
  ) {
    this.filter.type = "search";
    this.filter.addEventListener("input", () => this.applyFilter());
    const limits = toggle("Limits and rest values", false, { test: "show-limits" }, (isOn) =>
      this.list.classList.toggle("with-limits", isOn),
    );
    const angle = choice(
      [
        ["deg", "degrees"],
        ["rad", "radians"],
      ],
      units.angle,
      { label: "Unit of angles", test: "unit-angle" },
      (value) => units.set({ angle: value === "rad" ? "rad" : "deg" }),
    );
    const length = choice(
      [
        ["m", "m"],
        ["mm", "mm"],
      ],
      units.length,
      { label: "Unit of lengths", test: "unit-length" },
      (value) => units.set({ length: value === "mm" ? "mm" : "m" }),
    );
    this.root.append(
      section("Go to", this.configurations),
      section("Joints", el("div", { class: "joint-tools" }, this.filter, angle, length), limits.root, this.list),
    );
    store.on("model", () => this.build());
    store.on("dofs", (event) => event.dofs.forEach((info, k) => this.rows[k]?.update(info)));
    store.on("dofs", () => this.refresh());
    store.on("selection", () => this.select());
    store.on(
      "frame",
      throttled(() => this.refresh()),
    );
    units.onChange(() => {
      store.model?.dofs.forEach((info, k) => this.rows[k]?.update(info));
      this.refresh();
    });
  }

  onShown(): void {
    this.refresh();
    this.select();
  }

  private build(): void {
    const model = this.store.model;
    if (!model) return;
    this.rows = model.dofs.map((info, k) => {
      const Row = info.kind === "spherical" ? SphericalRow : SingleDofRow;
      return new Row(this.store, this.units, k, info, model);
    });
    fill(this.list, ...this.rows.map((row) => row.root));
    if (this.rows.length === 0) fill(this.list, el("p", { class: "quiet" }, "This mechanism has no movable joints."));
    const names = [...new Set([...model.configurations, "neutral", "random"])];
    fill(
      this.configurations,
      ...names.map((name) =>
        button(titleCase(name), {
          test: `go-${name}`,
          click: () => void this.store.request({ do: "GoTo", configuration: name }),
        }),
      ),
    );
    this.filter.hidden = this.rows.length < MIN_FILTER_ROWS;
    this.filter.value = "";
    this.refresh();
  }

  private refresh(): void {
    const frame = this.store.frame;
    if (frame && !this.root.hidden) for (const row of this.rows) row.show(frame);
  }

  private applyFilter(): void {
    const query = this.filter.value.trim().toLowerCase();
    for (const row of this.rows) row.root.hidden = !row.name.toLowerCase().includes(query);
  }

  private select(): void {
    const selection = this.store.selection;
    this.rows.forEach((row, k) => {
      const isSelected = selection.kind === "dof" && selection.dof === k;
      row.select(isSelected);
      if (isSelected && !this.root.hidden) row.root.scrollIntoView({ block: "nearest" });
    });
  }
}
