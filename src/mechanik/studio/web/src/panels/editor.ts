// The model as text, edited live: what can be read becomes the mechanism at once, what cannot says why and is kept.
import { button, el, write } from "./element";
import { DhTableView } from "./dh_table";
import { tidy } from "./dh_text";
import { settled } from "./pace";
import type { EditModel, Model } from "../messages";
import type { Store } from "../store";

type Kind = EditModel["kind"];

const PAUSE = 300; // ms without a key after which the text is tried
const NAMES: Record<Kind, string> = {
  dh: "DH table",
  arm_2d: "Arm in the plane, a list of lengths",
  arm_3d: "Arm in space, lengths and axes",
  json: "Mechanism as JSON",
  urdf: "URDF",
};
const LIMIT = 200_000; // letters, as in the schema

const EXAMPLES: [kind: Kind, title: string, text: string][] = [
  [
    "dh",
    "DH table",
    tidy({
      mechanik: 1,
      dh: {
        rows: [
          [0.4, 0, 90, 0],
          [0, 0.5, 0, 60],
          [0, 0.4, 0, -60],
          [0, 0.2, 0, 0],
        ],
        columns: "d a alpha theta",
        convention: "classic",
        degrees: true,
      },
    }),
  ],
  ["arm_2d", "2D arm", tidy({ mechanik: 1, arm: { lengths: [0.5, 0.4, 0.3] } })],
  ["arm_3d", "3D arm", tidy({ mechanik: 1, arm: { lengths: [0.3, 0.4, 0.3, 0.2], axes: "zyyz" } })],
];

export class Editor {
  readonly root = el("div", { class: "editor" });
  private readonly name = el("p", { class: "caption", test: "editor-kind" });
  private readonly table: DhTableView;
  private readonly area = el("textarea", {
    class: "code",
    label: "The model as text",
    test: "editor",
    attributes: { rows: "12", spellcheck: "false" },
  });
  private readonly error = el("p", { class: "editor-error", role: "alert", test: "editor-error" });
  private kind: Kind | "" = "";
  private sent = "";
  private isWaiting = false;
  private readonly trySoon = settled(() => void this.send(), PAUSE);

  constructor(private readonly store: Store) {
    this.table = new DhTableView((text) => {
      this.area.value = text;
      this.touched();
    });
    this.area.addEventListener("input", () => {
      this.touched();
      if (this.kind === "dh") this.table.show(this.area.value);
    });
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void this.send();
    });
    const starts = EXAMPLES.map(([kind, title, text]) =>
      button(title, { test: `new-${kind}`, class: "is-small", click: () => this.start(kind, text) }, "plus"),
    );
    this.root.append(
      this.name,
      this.table.root,
      this.area,
      this.error,
      el("div", { class: "buttons is-wrapping" }, ...starts),
    );
    store.on("model", (model) => this.follow(model));
    this.paint();
  }

  /** Another model brings its text; the answer to what is typed here changes nothing here. */
  private follow(model: Model): void {
    const isBusy = this.isWaiting || this.root.contains(document.activeElement);
    const isOurs = model.source === this.sent || (isBusy && !model.resets_view);
    if (isOurs && model.source_kind === this.kind && this.kind !== "") return;
    this.kind = model.source_kind;
    this.area.value = model.source;
    this.sent = model.source;
    write(this.error, "");
    this.paint();
  }

  private start(kind: Kind, text: string): void {
    this.kind = kind;
    this.area.value = text;
    this.paint();
    void this.send();
  }

  private touched(): void {
    this.isWaiting = true;
    this.trySoon();
  }

  private async send(): Promise<void> {
    const text = this.area.value;
    if (this.kind === "") return;
    if (text.length > LIMIT) {
      this.isWaiting = false;
      return write(
        this.error,
        `The text has ${text.length} letters; at most ${LIMIT} can be edited here. Drop it as a file instead.`,
      );
    }
    this.isWaiting = true;
    this.sent = text;
    try {
      await this.store.wire.ask({ do: "EditModel", kind: this.kind, text });
      if (this.area.value === text) write(this.error, "");
    } catch (why) {
      if (this.area.value === text) write(this.error, why instanceof Error ? why.message : String(why));
    } finally {
      if (this.area.value === text) this.isWaiting = false;
      this.area.classList.toggle("wrong", this.error.textContent !== "");
    }
  }

  private paint(): void {
    const isThere = this.kind !== "";
    write(this.name, this.kind === "" ? "This model did not come from a text. Start one:" : NAMES[this.kind]);
    this.area.hidden = !isThere;
    this.error.hidden = !isThere;
    this.table.root.hidden = this.kind !== "dh";
    if (this.kind === "dh") this.table.show(this.area.value);
  }
}
