// Joints: every freedom with its slider, number, lock, limits and rest.
import { BallRow } from "./ball_row";
import { button, choice, el, fill, section, toggle } from "./element";
import { spoken } from "./format";
import { JointRow, type Row } from "./joint_row";
import { paced } from "./pace";
import type { Panel } from "./side";
import type { Units } from "./units";
import type { Store } from "../store";

const MANY = 8; // joints from which on a filter helps

export class JointsPanel implements Panel {
  readonly root = el("div", { test: "panel-joints" });
  private readonly filter = el("input", {
    test: "joint-filter",
    label: "Filter joints",
    attributes: { placeholder: "Filter" },
  });
  private readonly places = el("div", { class: "buttons is-wrapping" });
  private readonly list = el("div", { class: "joints" });
  private rows: Row[] = [];

  constructor(
    private readonly store: Store,
    private readonly units: Units,
  ) {
    this.filter.type = "search";
    this.filter.addEventListener("input", () => this.sift());
    const limits = toggle("Limits and rests", false, { test: "show-limits" }, (on) =>
      this.list.classList.toggle("with-limits", on),
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
      section("Go to", this.places),
      section("Joints", el("div", { class: "joint-tools" }, this.filter, angle, length), limits.root, this.list),
    );
    store.on("model", () => this.build());
    store.on("freedoms", (event) => event.dofs.forEach((info, k) => this.rows[k]?.change(info)));
    store.on("freedoms", () => this.paint());
    store.on("selection", () => this.select());
    store.on(
      "frame",
      paced(() => this.paint()),
    );
    units.onChange(() => {
      store.model?.dofs.forEach((info, k) => this.rows[k]?.change(info));
      this.paint();
    });
  }

  shown(): void {
    this.paint();
    this.select();
  }

  private build(): void {
    const model = this.store.model;
    if (!model) return;
    this.rows = model.dofs.map((info, k) => {
      const kind = info.kind === "spherical" ? BallRow : JointRow;
      return new kind(this.store, this.units, k, info, model);
    });
    fill(this.list, ...this.rows.map((row) => row.root));
    if (this.rows.length === 0) fill(this.list, el("p", { class: "quiet" }, "This mechanism has no joints that move."));
    const names = [...new Set([...model.configurations, "neutral", "random"])];
    fill(
      this.places,
      ...names.map((name) =>
        button(spoken(name), {
          test: `go-${name}`,
          click: () => void this.store.ask({ do: "GoTo", configuration: name }),
        }),
      ),
    );
    this.filter.hidden = this.rows.length < MANY;
    this.filter.value = "";
    this.paint();
  }

  private paint(): void {
    const frame = this.store.frame;
    if (frame && !this.root.hidden) for (const row of this.rows) row.show(frame);
  }

  private sift(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    for (const row of this.rows) row.root.hidden = !row.name.toLowerCase().includes(wanted);
  }

  private select(): void {
    const chosen = this.store.selection;
    this.rows.forEach((row, k) => {
      const isIt = chosen.kind === "freedom" && chosen.freedom === k;
      row.select(isIt);
      if (isIt && !this.root.hidden) row.root.scrollIntoView({ block: "nearest" });
    });
  }
}
