// Context menu of buttons, for mouse, arrow keys and Tab; Esc or a click outside closes it.
import { el } from "../panels/element";
import "./interaction.css";

export interface MenuItem {
  /** Name for tests. */
  name: string;
  text: string;
  hint?: string; // tooltip
  isCurrent?: boolean; // whether this is the current setting
  isDisabled?: boolean;
  action: () => void;
}

export interface MenuGroup {
  title: string;
  isGrid?: boolean; // two columns, for short texts
  items: MenuItem[];
}

const MARGIN_PIXELS = 8; // minimum distance to the edges of the window

export class Menu {
  private root: HTMLElement | null = null;
  private listeners: AbortController | null = null;
  private previousFocus: Element | null = null;

  get isOpen(): boolean {
    return this.root !== null;
  }

  /** x, y: position of the pointer, client pixels. */
  open(x: number, y: number, title: string, groups: MenuGroup[]): void {
    this.close();
    this.previousFocus = document.activeElement;
    const root = el("div", { class: "context-menu", role: "menu", test: "menu", attributes: { "aria-label": title } });
    root.append(el("div", { class: "context-menu-title" }, title));
    for (const group of groups.filter((group) => group.items.length > 0)) root.append(this.group(group));
    document.body.append(root);
    this.root = root;
    const { width, height } = root.getBoundingClientRect();
    root.style.left = `${Math.max(MARGIN_PIXELS, Math.min(x + 2, innerWidth - width - MARGIN_PIXELS))}px`;
    root.style.top = `${Math.max(MARGIN_PIXELS, Math.min(y + 2, innerHeight - height - MARGIN_PIXELS))}px`;
    this.listen(root);
    this.buttons()[0]?.focus({ preventScroll: true });
  }

  close(): void {
    const { root, previousFocus } = this;
    if (root === null) return;
    const hadFocus = root.contains(document.activeElement);
    this.listeners?.abort();
    this.root = null;
    root.remove();
    if (hadFocus && previousFocus instanceof HTMLElement) previousFocus.focus({ preventScroll: true });
  }

  private group(group: MenuGroup): HTMLElement {
    const box = el("div", { class: group.isGrid ? "context-menu-grid" : "context-menu-list", role: "group" });
    if (group.title) box.setAttribute("aria-label", group.title);
    for (const entry of group.items) {
      const button = el("button", { role: "menuitem", test: `menu-${entry.name}` }, entry.text);
      button.type = "button";
      if (entry.hint) button.title = entry.hint;
      button.disabled = entry.isDisabled ?? false;
      if (entry.isCurrent) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => {
        this.close();
        entry.action();
      });
      box.append(button);
    }
    if (!group.title) return box;
    return el("div", {}, el("div", { class: "context-menu-head" }, group.title), box);
  }

  private listen(root: HTMLElement): void {
    this.listeners = new AbortController();
    const { signal } = this.listeners;
    const closeIfOutside = (event: Event): void => {
      if (!(event.target instanceof Node) || !root.contains(event.target)) this.close();
    };
    document.addEventListener("pointerdown", closeIfOutside, { signal, capture: true });
    document.addEventListener("wheel", closeIfOutside, { signal, capture: true, passive: true });
    window.addEventListener("blur", () => this.close(), { signal });
    window.addEventListener("resize", () => this.close(), { signal });
    root.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
    root.addEventListener("keydown", (event) => this.onKey(event), { signal });
  }

  private onKey(event: KeyboardEvent): void {
    const buttons = this.buttons();
    const index = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const targetIndices: Record<string, number> = {
      ArrowDown: index + 1, ArrowRight: index + 1, ArrowUp: index - 1, ArrowLeft: index - 1,
      Home: 0, End: buttons.length - 1,
    };
    const targetIndex = targetIndices[event.key];
    if (event.key === "Escape") this.close();
    else if (targetIndex !== undefined) buttons.at(targetIndex % buttons.length)?.focus();
    if (event.key !== "Tab" && event.key !== "Enter" && event.key !== " ") event.preventDefault();
    event.stopPropagation(); // otherwise the view would handle the key
  }

  private buttons(): HTMLButtonElement[] {
    return [...(this.root?.querySelectorAll<HTMLButtonElement>("button:not(:disabled)") ?? [])];
  }
}
