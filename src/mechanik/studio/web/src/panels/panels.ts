// All that stands around the view: bars, side, start page, messages. Each part listens to the store by itself.
import { Banner } from "./banner";
import { ComparePanel } from "./compare_panel";
import { saveFromServer } from "./downloads";
import { el } from "./element";
import { GoalsPanel } from "./goals_panel";
import { Help } from "./help";
import { JointsPanel } from "./joints_panel";
import { ModelPanel } from "./model_panel";
import { ReadOut } from "./read_out";
import { RecordPanel } from "./record_panel";
import { ScenePanel } from "./scene_panel";
import { Side } from "./side";
import { SolvePanel } from "./solve_panel";
import { StartPage } from "./start_page";
import { StatusBar } from "./status_bar";
import { Toasts } from "./toasts";
import { TopBar } from "./top_bar";
import { Units } from "./units";
import { Upload } from "./upload";
import type { Hands } from "../hands/hands";
import type { Store } from "../store";
import type { View } from "../view/view";

const NARROW = matchMedia("(max-width: 900px)");

export class Panels {
  readonly side = new Side();
  readonly start: StartPage;
  private readonly help = new Help();
  private readonly top: TopBar;
  private readonly toasts: Toasts;

  constructor(
    private readonly body: HTMLElement,
    private readonly view: View,
    hands: Hands,
    private readonly store: Store,
  ) {
    const units = new Units();
    const upload = new Upload(store);
    this.start = new StartPage(store, upload);
    this.toasts = new Toasts(store);
    this.top = new TopBar(view, hands, store, { openStart: () => this.turnStart(), openHelp: () => this.openHelp() });
    this.side.add("scene", "Scene", "scene", new ScenePanel(store));
    this.side.add("solve", "Solve", "solve", new SolvePanel(store, units));
    this.side.add("joints", "Joints", "joints", new JointsPanel(store, units));
    this.side.add("goals", "Goals", "goals", new GoalsPanel(store, units));
    this.side.add("model", "Model", "model", new ModelPanel(store, upload));
    this.side.add("compare", "Compare", "compare", new ComparePanel(store));
    this.side.add("record", "Record", "record", new RecordPanel(store, view));
    this.side.offer("scene", false);
    saveFromServer(store);

    const over = el("div", { class: "over-view" }, new ReadOut(store).root, this.toasts.root);
    body.append(
      this.top.root,
      this.side.root,
      new StatusBar(store).root,
      over,
      this.start.root,
      upload.progress,
      new Banner(store).root,
      this.help.root,
      upload.curtain,
    );
    view.cover.add(this.side.body); // in narrow windows
    this.start.onChange((isOpen) => this.coverView(isOpen));
    this.coverView(true);
    store.on("display", () => this.paint());
    store.on("scene", ({ name }) => this.sceneCame(name));
    store.on("model", (model) => {
      if (model.resets_view && this.side.current === "" && !NARROW.matches) this.side.show("solve");
    });
    this.paint();
  }

  openHelp(): void {
    this.help.open();
  }

  openStart(): void {
    this.start.open();
  }

  /** Closes what is open on top; whether there was something. */
  closeAll(): boolean {
    const wasHelp = this.help.isOpen;
    this.help.close();
    const wasMenu = this.top.display.close();
    const wasStart = this.start.isOpen && this.store.model !== null;
    if (wasStart) this.start.close();
    return wasHelp || wasMenu || wasStart || this.toasts.closeAll();
  }

  private turnStart(): void {
    if (this.start.isOpen) this.start.close();
    else this.start.open();
  }

  /** What the start page hides cannot be reached by Tab either. */
  private coverView(isCovered: boolean): void {
    this.body.classList.toggle("has-start", isCovered);
    this.view.canvas.inert = isCovered;
  }

  private sceneCame(name: string): void {
    const isNew = name !== "" && this.lastScene !== name;
    this.lastScene = name;
    this.side.offer("scene", name !== "");
    if (isNew && !NARROW.matches) this.side.show("scene");
  }

  private lastScene = "";

  private paint(): void {
    this.body.ownerDocument.documentElement.dataset["theme"] = this.store.display.theme;
  }
}
