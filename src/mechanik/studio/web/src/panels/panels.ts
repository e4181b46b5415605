// Creates all elements around and over the view: bars, sidebar, start page, help and messages.
import { Banner } from "./banner";
import { ComparePanel } from "./compare_panel";
import { saveFromServer } from "./downloads";
import { el } from "./element";
import { GoalsPanel } from "./goals_panel";
import { Help } from "./help";
import { JointsPanel } from "./joints_panel";
import { ModelPanel } from "./model_panel";
import { Readouts } from "./readouts";
import { RecordPanel } from "./record_panel";
import { ScenePanel } from "./scene_panel";
import { Sidebar } from "./sidebar";
import { SolvePanel } from "./solve_panel";
import { StartPage } from "./start_page";
import { StatusBar } from "./status_bar";
import { Toasts } from "./toasts";
import { TopBar } from "./top_bar";
import { Units } from "./units";
import { Upload } from "./upload";
import type { InteractionController } from "../interaction/controller";
import type { Store } from "../store";
import type { View } from "../view/view";

const NARROW_WINDOW = matchMedia("(max-width: 900px)");

export class Panels {
  readonly sidebar = new Sidebar();
  readonly start: StartPage;
  private readonly help = new Help();
  private readonly top: TopBar;
  private readonly toasts: Toasts;
  private lastScene = ""; // name

  constructor(
    private readonly body: HTMLElement,
    private readonly view: View,
    controller: InteractionController,
    private readonly store: Store,
  ) {
    const units = new Units();
    const upload = new Upload(store);
    this.start = new StartPage(store, upload);
    this.toasts = new Toasts(store);
    this.top = new TopBar(
      view,
      controller,
      store,
      { openStart: () => this.toggleStart(), openHelp: () => this.openHelp() },
    );
    this.sidebar.add("scene", "Scene", "scene", new ScenePanel(store));
    this.sidebar.add("solve", "Solve", "solve", new SolvePanel(store, units));
    this.sidebar.add("joints", "Joints", "joints", new JointsPanel(store, units));
    this.sidebar.add("goals", "Goals", "goals", new GoalsPanel(store, units));
    this.sidebar.add("model", "Model", "model", new ModelPanel(store, upload));
    this.sidebar.add("compare", "Compare", "compare", new ComparePanel(store));
    this.sidebar.add("record", "Record", "record", new RecordPanel(store, view));
    this.sidebar.setAvailable("scene", false);
    saveFromServer(store);

    const overlay = el("div", { class: "over-view" }, new Readouts(store).root, this.toasts.root);
    body.append(
      this.top.root,
      this.sidebar.root,
      new StatusBar(store).root,
      overlay,
      this.start.root,
      upload.progress,
      new Banner(store).root,
      this.help.root,
      upload.dropOverlay,
    );
    view.safeArea.add(this.sidebar.body); // the sidebar covers a part of the view in narrow windows
    this.start.onChange((isOpen) => this.coverView(isOpen));
    this.coverView(true);
    store.on("display", () => this.applyTheme());
    store.on("scene", ({ name }) => this.onScene(name));
    store.on("model", (model) => {
      if (model.resets_view && this.sidebar.current === "" && !NARROW_WINDOW.matches) this.sidebar.show("solve");
    });
    this.applyTheme();
  }

  openHelp(): void {
    this.help.open();
  }

  openStart(): void {
    this.start.open();
  }

  /** Closes help, display menu and start page, or else the messages; returns whether anything was closed. */
  closeAll(): boolean {
    const wasHelpOpen = this.help.isOpen;
    this.help.close();
    const wasMenuOpen = this.top.display.close();
    const wasStartOpen = this.start.isOpen && this.store.model !== null;
    if (wasStartOpen) this.start.close();
    return wasHelpOpen || wasMenuOpen || wasStartOpen || this.toasts.closeAll();
  }

  private toggleStart(): void {
    if (this.start.isOpen) this.start.close();
    else this.start.open();
  }

  /** Sets whether the start page covers the view; Tab does not reach a covered view. */
  private coverView(isCovered: boolean): void {
    this.body.classList.toggle("has-start", isCovered);
    this.view.canvas.inert = isCovered;
  }

  private onScene(name: string): void {
    const isNew = name !== "" && this.lastScene !== name;
    this.lastScene = name;
    this.sidebar.setAvailable("scene", name !== "");
    if (isNew && !NARROW_WINDOW.matches) this.sidebar.show("scene");
  }

  private applyTheme(): void {
    this.body.ownerDocument.documentElement.dataset["theme"] = this.store.display.theme;
  }
}
