// The start page: scenes and mechanisms as cards, a search, and a place to drop a file of one's own.
import { button, el, fill, iconButton } from "./element";
import { icon } from "./icons";
import type { Upload } from "./upload";
import type { GalleryEntry } from "../messages";
import type { Store } from "../store";

const HAS_KEYS = matchMedia("(hover: hover)"); // on a touch screen a focused field calls up its keyboard
const HEADLINES = { scene: "Scenes", gallery: "Mechanisms" } as const;

export class StartPage {
  readonly root = el("main", { class: "start", test: "start", attributes: { "aria-label": "Start page" } });
  private readonly search = el("input", {
    test: "search",
    label: "Search",
    attributes: { placeholder: "Search scenes and mechanisms" },
  });
  private readonly groups = el("div", { class: "start-groups" });
  private readonly back = iconButton("close", "Back to the mechanism", {
    test: "start-close",
    click: () => this.close(),
  });
  private readonly listeners: ((isOpen: boolean) => void)[] = [];

  constructor(
    private readonly store: Store,
    private readonly upload: Upload,
  ) {
    this.search.type = "search";
    this.search.addEventListener("input", () => this.paint());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.groups.querySelector<HTMLButtonElement>(".card:not([hidden])")?.click();
      if (event.key === "Escape" && this.search.value === "") this.close();
    });
    this.root.append(
      el(
        "div",
        { class: "start-inner" },
        this.back,
        el(
          "header",
          { class: "start-head" },
          el("h1", {}, "Touch any mechanism"),
          el("p", {}, "Drag a hand and the arm follows. Pin a foot and it stays. Close a loop and it keeps shut."),
          el("div", { class: "start-search" }, icon("search"), this.search),
        ),
        this.dropArea(),
        this.groups,
      ),
    );
    store.on("welcome", () => {
      this.paint();
      if (this.store.model === null) this.awaitName();
    });
    store.on("model", () => this.close());
    upload.onDone(() => this.close());
    this.paint();
  }

  get isOpen(): boolean {
    return !this.root.hidden;
  }

  open(): void {
    this.root.hidden = false;
    this.search.value = "";
    this.paint();
    for (const listener of this.listeners) listener(true);
    this.awaitName();
  }

  close(): void {
    if (this.store.model === null) return; // there is nothing behind it
    this.root.hidden = true;
    this.search.blur(); // keys mean the view again, at once
    for (const listener of this.listeners) listener(false);
  }

  onChange(listener: (isOpen: boolean) => void): void {
    this.listeners.push(listener);
  }

  /** What is typed now is what is searched for. */
  private awaitName(): void {
    if (HAS_KEYS.matches) this.search.focus({ preventScroll: true });
  }

  private dropArea(): HTMLElement {
    return el(
      "div",
      { class: "drop-area", test: "drop-area" },
      icon("file"),
      el("p", {}, "Drop a URDF, MJCF, SDF, JSON or zip here, or anywhere on this page."),
      this.upload.button(),
    );
  }

  private paint(): void {
    this.back.hidden = this.store.model === null;
    const entries = this.store.welcome?.entries ?? [];
    const wanted = this.search.value.trim().toLowerCase();
    const found = entries.filter((entry) =>
      `${entry.title} ${entry.name} ${entry.about} ${entry.group}`.toLowerCase().includes(wanted),
    );
    const groups = new Map<string, GalleryEntry[]>();
    for (const entry of found) {
      const headline = entry.group || HEADLINES[entry.kind];
      groups.set(headline, [...(groups.get(headline) ?? []), entry]);
    }
    const sections = [...groups].map(([headline, list]) =>
      el(
        "section",
        {},
        el("h2", {}, headline),
        el("div", { class: "cards" }, ...list.map((entry) => this.card(entry))),
      ),
    );
    const nothing =
      entries.length > 0 && el("p", { class: "quiet" }, `Nothing here is called "${this.search.value.trim()}".`);
    const waiting = entries.length === 0 && el("p", { class: "quiet" }, "Waiting for the studio …");
    fill(this.groups, ...(sections.length > 0 ? sections : [nothing, waiting]));
  }

  private card(entry: GalleryEntry): HTMLElement {
    const frame = el("span", { class: "card-picture" });
    const picture = el("img", {
      attributes: { alt: "", loading: "lazy", decoding: "async", width: "320", height: "200" },
    });
    picture.addEventListener("error", () => fill(frame, icon(entry.kind === "scene" ? "scene" : "joints")));
    if (entry.picture) picture.src = entry.picture;
    frame.append(entry.picture ? picture : icon(entry.kind === "scene" ? "scene" : "joints"));
    const made = button("", { class: "card", test: `open-${entry.kind}-${entry.name}`, title: entry.about });
    fill(made, frame, el("strong", {}, entry.title || entry.name), el("span", { class: "card-about" }, entry.about));
    made.addEventListener("click", () => void this.openEntry(entry, made));
    return made;
  }

  private async openEntry(entry: GalleryEntry, card: HTMLElement): Promise<void> {
    card.classList.add("is-busy");
    const isDone = await this.store.ask({ do: entry.kind === "scene" ? "OpenScene" : "OpenGallery", name: entry.name });
    card.classList.remove("is-busy");
    if (isDone) this.close();
  }
}
