// All keys and gestures, on one sheet.
import { el, iconButton } from "./element";

const SHEETS: [headline: string, rows: [keys: string, does: string][]][] = [
  [
    "Touch the mechanism",
    [
      ["Drag a handle", "its goal moves, the mechanism follows; an obstacle moves, and it gives way"],
      ["Drag a link", "its joint by hand; pins and loops hold"],
      ["Shift + drag a link", "pull it at that point"],
      ["Click", "select a link, a goal, a joint or an obstacle"],
      ["Right click", "pin it, give it a goal, lock its joint, hide it"],
      ["Delete", "remove the selected goal or obstacle"],
    ],
  ],
  [
    "The handle",
    [
      ["W", "move"],
      ["E", "rotate"],
      ["R", "both at once"],
      ["Q", "along the world's axes, or its own"],
      ["Ctrl, held", "in steps"],
      ["Esc", "while dragging: back to where it was"],
    ],
  ],
  [
    "The camera",
    [
      ["Drag beside it", "orbit"],
      ["Right or middle drag", "pan"],
      ["Wheel", "zoom"],
      ["Alt + left, middle, right", "orbit, pan, dolly, as in Maya"],
      ["F, or double click", "frame the selection, or all"],
      ["1 to 6", "from the front, right, top, back, left, below"],
      ["One finger, two fingers", "orbit; pan and zoom"],
    ],
  ],
  [
    "The rest",
    [
      ["Space", "run or pause"],
      ["Ctrl + Z", "undo"],
      ["Ctrl + Shift + Z, Ctrl + Y", "redo"],
      ["G, L, B, K, X", "grid, labels, bodies, skeleton, draw-through"],
      ["H", "this sheet"],
      ["Esc", "close, or select nothing"],
    ],
  ],
];

export class Help {
  readonly root = el("dialog", { class: "help", test: "help", attributes: { "aria-label": "Help" } });

  constructor() {
    const sheets = SHEETS.map(([headline, rows]) => {
      const list = el("dl", {});
      for (const [keys, does] of rows) list.append(el("dt", {}, ...keyCaps(keys)), el("dd", {}, does));
      return el("section", {}, el("h3", {}, headline), list);
    });
    const head = el(
      "header",
      {},
      el("h2", {}, "Keys and gestures"),
      iconButton("close", "Close", { test: "help-close", click: () => this.close() }),
    );
    const foot = el(
      "p",
      { class: "quiet" },
      "Keys are left alone while you type. In number fields the arrow keys count: Shift by tens, Ctrl by tenths.",
    );
    this.root.append(head, el("div", { class: "help-sheets" }, ...sheets), foot);
    this.root.addEventListener("click", (event) => {
      if (event.target === this.root) this.close();
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "h" || event.ctrlKey || event.metaKey) return;
      this.close();
      event.stopPropagation(); // the key that opens it must not open it again
    });
  }

  get isOpen(): boolean {
    return this.root.open;
  }

  open(): void {
    if (!this.root.open) this.root.showModal();
  }

  close(): void {
    this.root.close();
  }
}

/** Names of keys look like keys; words between them do not. */
function keyCaps(text: string): Node[] {
  const isKey = /^(Ctrl|Shift|Alt|Space|Esc|Delete|Wheel|[A-Z])$/;
  return text
    .split(/( \+ |, )/)
    .map((part) => (isKey.test(part) ? el("kbd", {}, part) : document.createTextNode(part)));
}
