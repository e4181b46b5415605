// Sidebar with tabs and the panel of the open tab. A click on the open tab closes it.
import { el, press, type ElementOptions } from "./element";
import { icon, type IconName } from "./icons";

export interface Panel {
  readonly root: HTMLElement;
  /** Called when the panel becomes visible; shows updates that were skipped while it was hidden. */
  onShown?(): void;
}

interface Tab {
  name: string;
  panel: Panel;
  button: HTMLButtonElement;
  /** Scroll position when the tab was closed, px. */
  scroll: number;
}

export class Sidebar {
  readonly root = el("aside", { class: "side", attributes: { "aria-label": "Panels" } });
  readonly body = el("div", { class: "side-body", role: "tabpanel", test: "side" });
  private readonly rail = el("nav", { class: "rail", role: "tablist", attributes: { "aria-label": "Panels" } });
  private readonly tabs: Tab[] = [];
  private openTab: Tab | null = null;

  constructor() {
    this.root.append(this.body, this.rail);
    this.rail.addEventListener("keydown", (event) => this.onKey(event));
    this.refresh();
  }

  add(name: string, title: string, picture: IconName, panel: Panel): void {
    const options: ElementOptions = {
      class: "rail-tab",
      role: "tab",
      test: `tab-${name}`,
      click: () => this.toggle(name),
    };
    const button = el("button", options, icon(picture), el("span", {}, title));
    button.type = "button";
    panel.root.classList.add("panel");
    panel.root.hidden = true;
    this.body.append(panel.root);
    this.rail.append(button);
    this.tabs.push({ name, panel, button, scroll: 0 });
  }

  /** Name of the open tab; empty if none is open. */
  get current(): string {
    return this.openTab?.name ?? "";
  }

  isShown(name: string): boolean {
    return this.openTab?.name === name;
  }

  show(name: string): void {
    const tab = this.tabs.find((tab) => tab.name === name);
    if (!tab || tab === this.openTab) return;
    this.saveScroll();
    this.openTab = tab;
    this.refresh();
    this.body.scrollTop = tab.scroll;
    tab.panel.onShown?.();
  }

  close(): void {
    this.saveScroll();
    this.openTab = null;
    this.refresh();
  }

  /** Shows or hides a tab. */
  setAvailable(name: string, isAvailable: boolean): void {
    const tab = this.tabs.find((tab) => tab.name === name);
    if (!tab) return;
    tab.button.hidden = !isAvailable;
    if (!isAvailable && tab === this.openTab) this.show(this.tabs.find(({ button }) => !button.hidden)?.name ?? "");
  }

  private toggle(name: string): void {
    if (this.isShown(name)) this.close();
    else this.show(name);
  }

  private saveScroll(): void {
    if (this.openTab) this.openTab.scroll = this.body.scrollTop;
  }

  private refresh(): void {
    this.root.classList.toggle("is-closed", this.openTab === null);
    for (const tab of this.tabs) {
      const isOpen = tab === this.openTab;
      tab.panel.root.hidden = !isOpen;
      press(tab.button, isOpen);
      tab.button.setAttribute("aria-selected", String(isOpen));
    }
  }

  private onKey(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const availableTabs = this.tabs.filter(({ button }) => !button.hidden);
    const index = availableTabs.findIndex(({ button }) => button === document.activeElement);
    availableTabs[(index + step + availableTabs.length) % availableTabs.length]?.button.focus();
    event.preventDefault();
  }
}
