// The side: a rail of tabs, and the panel of the one that is open. The open tab taken again closes it.
import { el, press, type Traits } from "./element";
import { icon, type IconName } from "./icons";

export interface Panel {
  readonly root: HTMLElement;
  /** Called when the panel comes into sight: what was left out while it was hidden is done now. */
  shown?(): void;
}

interface Tab {
  name: string;
  panel: Panel;
  button: HTMLButtonElement;
  /** px; how far down its panel was read when it was left. */
  scroll: number;
}

export class Side {
  readonly root = el("aside", { class: "side", attributes: { "aria-label": "Panels" } });
  readonly body = el("div", { class: "side-body", role: "tabpanel", test: "side" });
  private readonly rail = el("nav", { class: "rail", role: "tablist", attributes: { "aria-label": "Panels" } });
  private readonly tabs: Tab[] = [];
  private open: Tab | null = null;

  constructor() {
    this.root.append(this.body, this.rail);
    this.rail.addEventListener("keydown", (event) => this.key(event));
    this.paint();
  }

  add(name: string, title: string, picture: IconName, panel: Panel): void {
    const traits: Traits = { class: "rail-tab", role: "tab", test: `tab-${name}`, click: () => this.toggle(name) };
    const button = el("button", traits, icon(picture), el("span", {}, title));
    button.type = "button";
    panel.root.classList.add("panel");
    panel.root.hidden = true;
    this.body.append(panel.root);
    this.rail.append(button);
    this.tabs.push({ name, panel, button, scroll: 0 });
  }

  /** Name of the open tab; empty if none is. */
  get current(): string {
    return this.open?.name ?? "";
  }

  isShown(name: string): boolean {
    return this.open?.name === name;
  }

  show(name: string): void {
    const tab = this.tabs.find((one) => one.name === name);
    if (!tab || tab === this.open) return;
    this.leave();
    this.open = tab;
    this.paint();
    this.body.scrollTop = tab.scroll;
    tab.panel.shown?.();
  }

  close(): void {
    this.leave();
    this.open = null;
    this.paint();
  }

  /** Takes a tab out of the rail, or puts it back. */
  offer(name: string, isThere: boolean): void {
    const tab = this.tabs.find((one) => one.name === name);
    if (!tab) return;
    tab.button.hidden = !isThere;
    if (!isThere && tab === this.open) this.show(this.tabs.find((one) => !one.button.hidden)?.name ?? "");
  }

  private toggle(name: string): void {
    if (this.isShown(name)) this.close();
    else this.show(name);
  }

  private leave(): void {
    if (this.open) this.open.scroll = this.body.scrollTop;
  }

  private paint(): void {
    this.root.classList.toggle("is-closed", this.open === null);
    for (const tab of this.tabs) {
      const isOpen = tab === this.open;
      tab.panel.root.hidden = !isOpen;
      press(tab.button, isOpen);
      tab.button.setAttribute("aria-selected", String(isOpen));
    }
  }

  private key(event: KeyboardEvent): void {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    const there = this.tabs.filter((one) => !one.button.hidden);
    const at = there.findIndex((one) => one.button === document.activeElement);
    there[(at + by + there.length) % there.length]?.button.focus();
    event.preventDefault();
  }
}
