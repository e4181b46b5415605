// Help dialog with keys and gestures.
import { el, iconButton } from "./element";

const SHEETS: [heading: string, rows: [keys: string, action: string][]][] = [
  [
    "Mechanism",
    [
      ["Drag a handle", "move its goal or obstacle; the mechanism follows the goal"],
      ["Drag a link", "move its joint; pinned goals keep their poses and loops stay closed"],
      ["Shift + drag a link", "pull the link at that point"],
      ["Click", "select a link, a goal, a joint or an obstacle"],
      ["Right click", "menu: pin, add a goal, lock the joint, hide"],
      ["Delete", "remove the selected goal or obstacle"],
    ],
  ],
  [
    "Handle",
    [
      ["W", "move"],
      ["E", "rotate"],
      ["R", "move and rotate"],
      ["Q", "world axes or local axes"],
      ["Ctrl, held", "snap to steps (angles: 15°), or do not snap if the snap button is on"],
      ["Esc", "while dragging: cancel the drag"],
    ],
  ],
  [
    "Camera",
    [
      ["Drag the background", "orbit"],
      ["Right or middle drag", "pan"],
      ["Wheel", "zoom"],
      ["Alt + left, middle, right", "orbit, pan, dolly, as in Maya"],
      ["F, or double click", "frame the selection or everything"],
      ["1 to 6", "view from front, right, top, back, left, bottom"],
      ["One finger, two fingers", "one finger: orbit; two fingers: pan and zoom"],
    ],
  ],
  [
    "General",
    [
      ["Space", "run or pause"],
      ["Ctrl + Z", "undo"],
      ["Ctrl + Shift + Z, Ctrl + Y", "redo"],
      ["G, L, B, K, X", "show or hide: grid, labels, bodies, skeleton, markers behind bodies"],
      ["H", "this help"],
      ["Esc", "close what is open over the view, or clear the selection"],
    ],
  ],
];

export class Help {
  readonly root = el("dialog", { class: "help", test: "help", attributes: { "aria-label": "Help" } });

  constructor() {
    const sheets = SHEETS.map(([heading, rows]) => {
      const list = el("dl", {});
      for (const [keys, action] of rows) list.append(el("dt", {}, ...keyCaps(keys)), el("dd", {}, action));
      return el("section", {}, el("h3", {}, heading), list);
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
      "Shortcuts are off while you type. In the number fields of joints, goals and obstacles, the up and down arrow " +
        "keys change the value by one step, with Shift by 10 steps, with Ctrl by 0.1 steps.",
    );
    this.root.append(head, el("div", { class: "help-sheets" }, ...sheets), foot);
    this.root.addEventListener("click", (event) => {
      if (event.target === this.root) this.close();
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "h" || event.ctrlKey || event.metaKey) return;
      this.close();
      event.stopPropagation(); // otherwise the same key opens the dialog again
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

/** Wraps names of keys in `kbd` elements. */
function keyCaps(text: string): Node[] {
  const isKey = /^(Ctrl|Shift|Alt|Space|Esc|Delete|Wheel|[A-Z])$/;
  return text
    .split(/( \+ |, )/)
    .map((part) => (isKey.test(part) ? el("kbd", {}, part) : document.createTextNode(part)));
}
