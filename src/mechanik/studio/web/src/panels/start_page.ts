// Start page: cards of scenes and mechanisms, a search field, and an area to drop files.
import { button, el, fill, iconButton } from "./element";
import { icon } from "./icons";
import type { Upload } from "./upload";
import type { StartPageEntry } from "../messages";
import type { Store } from "../store";

// false on touch screens, where a focused field would open the keyboard
const CAN_HOVER = matchMedia("(hover: hover)");
const DEFAULT_HEADINGS = { scene: "Scenes", gallery: "Mechanisms" } as const;

export class StartPage {
  readonly root = el("main", { class: "start", test: "start", attributes: { "aria-label": "Start page" } });
  private readonly search = el("input", {
    test: "search",
    label: "Search",
    attributes: { placeholder: "Search scenes and mechanisms" },
  });
  private readonly groups = el("div", { class: "start-groups" });
  private readonly backButton = iconButton("close", "Back to the mechanism", {
    test: "start-close",
    click: () => this.close(),
  });
  private readonly listeners: ((isOpen: boolean) => void)[] = [];

  constructor(
    private readonly store: Store,
    private readonly upload: Upload,
  ) {
    this.search.type = "search";
    this.search.addEventListener("input", () => this.refresh());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.groups.querySelector<HTMLButtonElement>(".card:not([hidden])")?.click();
      if (event.key === "Escape" && this.search.value === "") this.close();
    });
    this.root.append(
      el(
        "div",
        { class: "start-inner" },
        this.backButton,
        el(
          "header",
          { class: "start-head" },
          el("h1", {}, "Inverse kinematics for any mechanism"),
          el("p", {}, "Drag a goal and the joints follow. Pin links in place. Loops stay closed."),
          el("div", { class: "start-search" }, icon("search"), this.search),
        ),
        this.dropArea(),
        this.groups,
      ),
    );
    store.on("welcome", () => {
      this.refresh();
      if (this.store.model === null) this.focusSearch();
    });
    store.on("model", () => this.close());
    upload.onDone(() => this.close());
    this.refresh();
  }

  get isOpen(): boolean {
    return !this.root.hidden;
  }

  open(): void {
    this.root.hidden = false;
    this.search.value = "";
    this.refresh();
    for (const listener of this.listeners) listener(true);
    this.focusSearch();
  }

  close(): void {
    if (this.store.model === null) return; // there is no mechanism to show
    this.root.hidden = true;
    this.search.blur(); // the view receives keys again
    for (const listener of this.listeners) listener(false);
  }

  onChange(listener: (isOpen: boolean) => void): void {
    this.listeners.push(listener);
  }

  /** Focuses the search field, so that typing searches. */
  private focusSearch(): void {
    if (CAN_HOVER.matches) this.search.focus({ preventScroll: true });
  }

  private dropArea(): HTMLElement {
    return el(
      "div",
      { class: "drop-area", test: "drop-area" },
      icon("file"),
      el("p", {}, "Drop a URDF, MJCF, SDF, JSON or zip file here or anywhere on this page."),
      this.upload.button(),
    );
  }

  private refresh(): void {
    this.backButton.hidden = this.store.model === null;
    const entries = this.store.welcome?.entries ?? [];
    const query = this.search.value.trim().toLowerCase();
    const matchingEntries = entries.filter((entry) =>
      `${entry.title} ${entry.name} ${entry.about} ${entry.group}`.toLowerCase().includes(query),
    );
    const groups = new Map<string, StartPageEntry[]>();
    for (const entry of matchingEntries) {
      const heading = entry.group || DEFAULT_HEADINGS[entry.kind];
      groups.set(heading, [...(groups.get(heading) ?? []), entry]);
    }
    const sections = [...groups].map(([heading, groupEntries]) =>
      el(
        "section",
        {},
        el("h2", {}, heading),
        el("div", { class: "cards" }, ...groupEntries.map((entry) => this.card(entry))),
      ),
    );
    const noMatchText =
      entries.length > 0 && el("p", { class: "quiet" }, `No scene or mechanism matches "${this.search.value.trim()}".`);
    const waitingText = entries.length === 0 && el("p", { class: "quiet" }, "Waiting for the server …");
    fill(this.groups, ...(sections.length > 0 ? sections : [noMatchText, waitingText]));
  }

  private card(entry: StartPageEntry): HTMLElement {
    const frame = el("span", { class: "card-picture" });
    const picture = el("img", {
      attributes: { alt: "", loading: "lazy", decoding: "async", width: "320", height: "200" },
    });
    picture.addEventListener("error", () => fill(frame, icon(entry.kind === "scene" ? "scene" : "joints")));
    if (entry.picture) picture.src = entry.picture;
    frame.append(entry.picture ? picture : icon(entry.kind === "scene" ? "scene" : "joints"));
    const card = button("", { class: "card", test: `open-${entry.kind}-${entry.name}`, title: entry.about });
    fill(card, frame, el("strong", {}, entry.title || entry.name), el("span", { class: "card-about" }, entry.about));
    card.addEventListener("click", () => void this.openEntry(entry, card));
    return card;
  }

  private async openEntry(entry: StartPageEntry, card: HTMLElement): Promise<void> {
    card.classList.add("is-busy");
    const isAccepted = await this.store.request(
      { do: entry.kind === "scene" ? "OpenScene" : "OpenGallery", name: entry.name },
    );
    card.classList.remove("is-busy");
    if (isAccepted) this.close();
  }
}
