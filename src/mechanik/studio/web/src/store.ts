// What the page knows: the last of every event, the last frame, what is selected, how things are drawn.
import type {
  ContactsChanged, Collisions, ComparisonChanged, Controls, DofsChanged, Alternatives, GoalInfo, Goals, History, Kernels, Model, ObstacleInfo,
  Recording, Scene, VisibilityChanged, Solving, SessionEvent, Welcome, StatusText,
} from "./messages";
import type { Frame } from "./wire/frame";
import { Wire, type Listener } from "./wire/wire";

export type Selection =
  | { kind: "none" }
  | { kind: "link"; link: number }
  | { kind: "goal"; goal: number } // GoalInfo.number
  | { kind: "freedom"; freedom: number }
  | { kind: "obstacle"; obstacle: string }; // ObstacleInfo.name

export interface Display {
  theme: "light" | "dark";
  bodies: boolean;
  skeleton: boolean; // lines between frames
  markers: boolean; // a marker for each freedom, with its limits
  collisions: boolean;
  closures: boolean;
  labels: boolean;
  grid: boolean;
  shadows: boolean;
  drawThrough: boolean; // skeleton, markers and goals are seen through bodies
  path: boolean; // the path that goals' points have walked
  markerScale: number;
}

export interface Changes {
  welcome: Welcome;
  model: Model;
  freedoms: DofsChanged;
  shown: VisibilityChanged;
  goals: Goals;
  solving: Solving;
  words: StatusText;
  ghosts: Alternatives;
  comparison: ComparisonChanged;
  kernels: Kernels;
  obstacles: ObstacleInfo[]; // others, or one of them elsewhere
  collisions: Collisions;
  clashes: ContactsChanged | null; // null: of another model, and nothing is known of this one
  scene: Scene;
  controls: Controls;
  recording: Recording;
  history: History;
  frame: Frame; // of the main layer
  layer: Frame; // of a compared method
  selection: Selection;
  display: Display;
  connected: boolean;
  message: { kind: "info" | "warning" | "error"; text: string };
  download: { address: string; name: string };
}

type Listeners = { [K in keyof Changes]?: ((value: Changes[K]) => void)[] };

const KEPT = "mechanik.display";
const USUAL: Display = {
  theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
  bodies: true, skeleton: false, markers: true, collisions: false, closures: true, labels: false, grid: true,
  shadows: true, drawThrough: true, path: false, markerScale: 1,
};

export class Store implements Listener {
  readonly wire = new Wire(this);
  welcome: Welcome | null = null;
  model: Model | null = null;
  goals: GoalInfo[] = [];
  order = -1;
  solving: Solving | null = null;
  words: StatusText | null = null;
  ghosts: Alternatives | null = null;
  comparison: ComparisonChanged | null = null;
  kernels: Kernels | null = null;
  obstacles: ObstacleInfo[] = [];
  collisions: Collisions | null = null;
  clashes: ContactsChanged | null = null;
  scene: Scene | null = null;
  recording: Recording | null = null;
  history: History | null = null;
  frame: Frame | null = null;
  layers = new Map<number, Frame>();
  selection: Selection = { kind: "none" };
  display: Display = readDisplay();
  isConnected = false;
  private readonly listeners: Listeners = {};

  on<K extends keyof Changes>(what: K, listener: (value: Changes[K]) => void): void {
    const list = (this.listeners[what] ?? []) as ((value: Changes[K]) => void)[];
    list.push(listener);
    (this.listeners as Record<K, typeof list>)[what] = list;
  }

  emit<K extends keyof Changes>(what: K, value: Changes[K]): void {
    for (const listener of this.listeners[what] ?? []) listener(value);
  }

  select(selection: Selection): void {
    this.selection = selection;
    this.emit("selection", selection);
  }

  show(change: Partial<Display>): void {
    this.display = { ...this.display, ...change };
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.display));
    } catch {
      // a browser that keeps nothing still draws
    }
    this.emit("display", this.display);
  }

  /** Ask the session; a refusal is shown to the person. Returns whether it was done. */
  async ask(request: Parameters<Wire["ask"]>[0]): Promise<boolean> {
    try {
      await this.wire.ask(request);
      return true;
    } catch (why) {
      this.emit("message", { kind: "error", text: why instanceof Error ? why.message : String(why) });
      return false;
    }
  }

  goal(number: number): GoalInfo | undefined {
    return this.goals.find((goal) => goal.number === number);
  }

  obstacle(name: string): ObstacleInfo | undefined {
    return this.obstacles.find((one) => one.name === name);
  }

  moved(frame: Frame): void {
    if (frame.revision !== this.model?.revision) return;
    if (frame.layer !== 0) {
      this.layers.set(frame.layer, frame);
      this.emit("layer", frame);
      return;
    }
    this.frame = frame;
    this.emit("frame", frame);
  }

  connected(isConnected: boolean): void {
    this.isConnected = isConnected;
    this.emit("connected", isConnected);
  }

  told(event: SessionEvent): void {
    switch (event.is) {
      case "Welcome":
        // the session that this page shows has ended meanwhile: begin anew rather than show what nobody knows
        if (this.welcome && this.welcome.session !== event.session) location.reload();
        this.welcome = event;
        return this.emit("welcome", event);
      case "Model":
        this.model = event;
        this.frame = null;
        this.layers.clear();
        this.ghosts = this.clashes = null;
        this.obstacles = [];
        this.select({ kind: "none" });
        return this.emit("model", event);
      case "DofsChanged":
        if (this.model) this.model = { ...this.model, dofs: event.dofs };
        return this.emit("freedoms", event);
      case "VisibilityChanged":
        this.model?.links.forEach((link, k) => (link.visible = event.visible[k] ?? true));
        return this.emit("shown", event);
      case "Goals": {
        this.goals = event.goals;
        this.order = event.order;
        const chosen = this.selection;
        if (chosen.kind === "goal" && !this.goal(chosen.goal)) this.select({ kind: "none" });
        return this.emit("goals", event);
      }
      case "Solving":
        this.solving = event;
        return this.emit("solving", event);
      case "StatusText":
        this.words = event;
        return this.emit("words", event);
      case "Alternatives":
        this.ghosts = event;
        return this.emit("ghosts", event);
      case "ComparisonChanged":
        this.comparison = event;
        return this.emit("comparison", event);
      case "Kernels":
        this.kernels = event;
        return this.emit("kernels", event);
      case "Obstacles": {
        this.obstacles = event.obstacles;
        const chosen = this.selection;
        if (chosen.kind === "obstacle" && !this.obstacle(chosen.obstacle)) this.select({ kind: "none" });
        return this.emit("obstacles", this.obstacles);
      }
      case "ObstacleMoved": {
        const { obstacle } = event;
        this.obstacles = this.obstacles.map((one) => (one.name === obstacle.name ? obstacle : one));
        return this.emit("obstacles", this.obstacles);
      }
      case "Collisions":
        this.collisions = event;
        return this.emit("collisions", event);
      case "ContactsChanged":
        if (event.revision !== this.model?.revision) return;
        this.clashes = event;
        return this.emit("clashes", event);
      case "Scene":
        this.scene = event;
        return this.emit("scene", event);
      case "Controls":
        for (const control of this.scene?.controls ?? []) control.value = event.values[control.name] ?? control.value;
        return this.emit("controls", event);
      case "Recording":
        this.recording = event;
        return this.emit("recording", event);
      case "History":
        this.history = event;
        return this.emit("history", event);
      case "Download":
        return this.emit("download", event);
      case "Notice":
        return this.emit("message", event);
      case "RequestRefused":
        if (event.id < 0) this.emit("message", { kind: "error", text: event.message });
        return;
      case "RequestDone":
        return;
    }
  }
}

function readDisplay(): Display {
  try {
    return { ...USUAL, ...(JSON.parse(localStorage.getItem(KEPT) ?? "{}") as Partial<Display>) };
  } catch {
    return USUAL;
  }
}
