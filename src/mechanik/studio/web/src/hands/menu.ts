// A menu of buttons beside the pointer: mouse, arrow keys and Tab; Esc or a click elsewhere closes it.
import { el } from "../panels/element";
import "./hands.css";

export interface Entry {
  /** The name under which tests find it. */
  name: string;
  text: string;
  about?: string;
  isOn?: boolean; // the one that holds now
  isOff?: boolean; // cannot be chosen
  choose: () => void;
}

export interface Group {
  title: string;
  isGrid?: boolean; // short words in two columns
  entries: Entry[];
}

const ROOM = 8; // px to the edge of the window

export class Menu {
  private root: HTMLElement | null = null;
  private closing: AbortController | null = null;
  private before: Element | null = null;

  get isOpen(): boolean {
    return this.root !== null;
  }

  open(x: number, y: number, title: string, groups: Group[]): void {
    this.close();
    this.before = document.activeElement;
    const root = el("div", { class: "hands-menu", role: "menu", test: "menu", attributes: { "aria-label": title } });
    root.append(el("div", { class: "hands-menu-title" }, title));
    for (const group of groups.filter((one) => one.entries.length > 0)) root.append(this.group(group));
    document.body.append(root);
    this.root = root;
    const { width, height } = root.getBoundingClientRect();
    root.style.left = `${Math.max(ROOM, Math.min(x + 2, innerWidth - width - ROOM))}px`;
    root.style.top = `${Math.max(ROOM, Math.min(y + 2, innerHeight - height - ROOM))}px`;
    this.listen(root);
    this.buttons()[0]?.focus({ preventScroll: true });
  }

  close(): void {
    const { root, before } = this;
    if (root === null) return;
    const hadFocus = root.contains(document.activeElement);
    this.closing?.abort();
    this.root = null;
    root.remove();
    if (hadFocus && before instanceof HTMLElement) before.focus({ preventScroll: true });
  }

  private group(group: Group): HTMLElement {
    const box = el("div", { class: group.isGrid ? "hands-menu-grid" : "hands-menu-list", role: "group" });
    if (group.title) box.setAttribute("aria-label", group.title);
    for (const entry of group.entries) {
      const one = el("button", { role: "menuitem", test: `menu-${entry.name}` }, entry.text);
      one.type = "button";
      if (entry.about) one.title = entry.about;
      one.disabled = entry.isOff ?? false;
      if (entry.isOn) one.setAttribute("aria-current", "true");
      one.addEventListener("click", () => {
        this.close();
        entry.choose();
      });
      box.append(one);
    }
    if (!group.title) return box;
    return el("div", {}, el("div", { class: "hands-menu-head" }, group.title), box);
  }

  private listen(root: HTMLElement): void {
    this.closing = new AbortController();
    const { signal } = this.closing;
    const outside = (event: Event): void => {
      if (!(event.target instanceof Node) || !root.contains(event.target)) this.close();
    };
    document.addEventListener("pointerdown", outside, { signal, capture: true });
    document.addEventListener("wheel", outside, { signal, capture: true, passive: true });
    window.addEventListener("blur", () => this.close(), { signal });
    window.addEventListener("resize", () => this.close(), { signal });
    root.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
    root.addEventListener("keydown", (event) => this.key(event), { signal });
  }

  private key(event: KeyboardEvent): void {
    const buttons = this.buttons();
    const here = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const steps: Record<string, number> = {
      ArrowDown: here + 1, ArrowRight: here + 1, ArrowUp: here - 1, ArrowLeft: here - 1,
      Home: 0, End: buttons.length - 1,
    };
    const next = steps[event.key];
    if (event.key === "Escape") this.close();
    else if (next !== undefined) buttons.at(next % buttons.length)?.focus();
    if (event.key !== "Tab" && event.key !== "Enter" && event.key !== " ") event.preventDefault();
    event.stopPropagation(); // keys of the view mean nothing in here
  }

  private buttons(): HTMLButtonElement[] {
    return [...(this.root?.querySelectorAll<HTMLButtonElement>("button:not(:disabled)") ?? [])];
  }
}
