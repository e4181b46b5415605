// Editor of the model as text: after a pause in typing, a valid text replaces the mechanism. For an invalid text, the
// error is shown.
import { button, el, write } from "./element";
import { DhTableView } from "./dh_table";
import { formatJson } from "./dh_text";
import { debounced } from "./throttle";
import type { EditModel, Model } from "../messages";
import type { Store } from "../store";

type Kind = EditModel["kind"];

const TYPING_PAUSE_MS = 300; // time without input after which the text is sent
const KIND_TITLES: Record<Kind, string> = {
  dh: "DH table",
  arm_2d: "Planar arm: list of lengths",
  arm_3d: "Spatial arm: lengths and axes",
  json: "Mechanism as JSON",
  urdf: "URDF",
};
const NO_TEXT_TITLE = "This model was not made from text. Create a new model:";
const MAX_LENGTH = 200_000; // characters; the same limit as in `requests.py`

const EXAMPLES: [kind: Kind, title: string, text: string][] = [
  [
    "dh",
    "DH table",
    formatJson({
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
  ["arm_2d", "2D arm", formatJson({ mechanik: 1, arm: { lengths: [0.5, 0.4, 0.3] } })],
  ["arm_3d", "3D arm", formatJson({ mechanik: 1, arm: { lengths: [0.3, 0.4, 0.3, 0.2], axes: "zyyz" } })],
];

export class Editor {
  readonly root = el("div", { class: "editor" });
  private readonly kindTitle = el("p", { class: "caption", test: "editor-kind" });
  private readonly table: DhTableView;
  private readonly area = el("textarea", {
    class: "code",
    label: "The model as text",
    test: "editor",
    attributes: { rows: "12", spellcheck: "false" },
  });
  private readonly error = el("p", { class: "editor-error", role: "alert", test: "editor-error" });
  private kind: Kind | "" = "";
  private sentText = ""; // text that was sent or received last
  private isWaiting = false; // the edited text is not sent yet or has no reply yet
  private readonly sendSoon = debounced(() => void this.send(), TYPING_PAUSE_MS);

  constructor(private readonly store: Store) {
    this.table = new DhTableView((text) => {
      this.area.value = text;
      this.onEdit();
    });
    this.area.addEventListener("input", () => {
      this.onEdit();
      if (this.kind === "dh") this.table.show(this.area.value);
    });
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void this.send();
    });
    const exampleButtons = EXAMPLES.map(([kind, title, text]) =>
      button(title, { test: `new-${kind}`, class: "is-small", click: () => this.openExample(kind, text) }, "plus"),
    );
    this.root.append(
      this.kindTitle,
      this.table.root,
      this.area,
      this.error,
      el("div", { class: "buttons is-wrapping" }, ...exampleButtons),
    );
    store.on("model", (model) => this.onModel(model));
    this.refresh();
  }

  /** Shows the text of a new model, unless the model was made from the text that is being edited. */
  private onModel(model: Model): void {
    const isEditing = this.isWaiting || this.root.contains(document.activeElement);
    const isOwnText = model.source === this.sentText || (isEditing && !model.resets_view);
    if (isOwnText && model.source_kind === this.kind && this.kind !== "") return;
    this.kind = model.source_kind;
    this.area.value = model.source;
    this.sentText = model.source;
    write(this.error, "");
    this.refresh();
  }

  private openExample(kind: Kind, text: string): void {
    this.kind = kind;
    this.area.value = text;
    this.refresh();
    void this.send();
  }

  private onEdit(): void {
    this.isWaiting = true;
    this.sendSoon();
  }

  private async send(): Promise<void> {
    const text = this.area.value;
    if (this.kind === "") return;
    if (text.length > MAX_LENGTH) {
      this.isWaiting = false;
      return write(
        this.error,
        `The text has ${text.length} characters; at most ${MAX_LENGTH} can be edited here. ` +
          "Save it as a file and drop the file on this page.",
      );
    }
    this.isWaiting = true;
    this.sentText = text;
    try {
      await this.store.connection.request({ do: "EditModel", kind: this.kind, text });
      if (this.area.value === text) write(this.error, "");
    } catch (error) {
      if (this.area.value === text) write(this.error, error instanceof Error ? error.message : String(error));
    } finally {
      if (this.area.value === text) this.isWaiting = false;
      this.area.classList.toggle("wrong", this.error.textContent !== "");
    }
  }

  private refresh(): void {
    const hasText = this.kind !== "";
    write(this.kindTitle, this.kind === "" ? NO_TEXT_TITLE : KIND_TITLES[this.kind]);
    this.area.hidden = !hasText;
    this.error.hidden = !hasText;
    this.table.root.hidden = this.kind !== "dh";
    if (this.kind === "dh") this.table.show(this.area.value);
  }
}
