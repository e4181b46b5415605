// State of the page: what events and frames of the session have set, the selection and the display settings.
import type {
  Alternatives, Collisions, ComparisonChanged, ContactsChanged, Controls, DofsChanged, GoalInfo, GoalKindInfo, Goals,
  History, Kernels, Model, ObstacleInfo, Recording, Scene, SessionEvent, Solving, StatusText, VisibilityChanged,
  Welcome,
} from "./messages";
import type { StateFrame } from "./connection/state_frame";
import { Connection, type ConnectionListener } from "./connection/connection";

export type Selection =
  | { kind: "none" }
  | { kind: "link"; link: number }
  | { kind: "goal"; goal: number } // GoalInfo.number
  | { kind: "dof"; dof: number }
  | { kind: "obstacle"; obstacle: string }; // ObstacleInfo.name

/** Display settings, stored in the browser. */
export interface Display {
  theme: "light" | "dark";
  bodies: boolean;
  skeleton: boolean; // lines from the origins of links to their joints and closures
  markers: boolean; // one marker per dof, with its limits
  collisions: boolean; // collision shapes
  closures: boolean;
  labels: boolean;
  grid: boolean;
  shadows: boolean;
  drawThrough: boolean; // skeleton, markers, closures and goals are drawn through bodies
  path: boolean; // trails of the points of goals
  markerScale: number; // size of markers as a multiple of the default size
}

/** Changes of the store by name, with the value that listeners receive. */
export interface Changes {
  welcome: Welcome;
  model: Model;
  dofs: DofsChanged;
  visibility: VisibilityChanged;
  goals: Goals;
  solving: Solving;
  statusText: StatusText;
  alternatives: Alternatives;
  comparison: ComparisonChanged;
  kernels: Kernels;
  obstacles: ObstacleInfo[]; // a new list, or one obstacle has moved
  collisions: Collisions;
  contacts: ContactsChanged;
  scene: Scene;
  controls: Controls;
  recording: Recording;
  history: History;
  frame: StateFrame; // frame of the main solver
  layer: StateFrame; // frame of a compared method
  selection: Selection;
  display: Display;
  connected: boolean;
  message: { kind: "info" | "warning" | "error"; text: string };
  download: { address: string; name: string };
}

type Listeners = { [K in keyof Changes]?: ((value: Changes[K]) => void)[] };

const STORAGE_KEY = "mechanik.display";
const DEFAULT_DISPLAY: Display = {
  theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
  bodies: true, skeleton: false, markers: true, collisions: false, closures: true, labels: false, grid: true,
  shadows: true, drawThrough: true, path: false, markerScale: 1,
};

export class Store implements ConnectionListener {
  readonly connection = new Connection(this);
  welcome: Welcome | null = null;
  model: Model | null = null;
  goals: GoalInfo[] = [];
  order = -1; // `Goals.order` of the list of goals; frames with the same order list the same goals
  solving: Solving | null = null;
  statusText: StatusText | null = null;
  alternatives: Alternatives | null = null;
  comparison: ComparisonChanged | null = null;
  kernels: Kernels | null = null;
  obstacles: ObstacleInfo[] = [];
  collisions: Collisions | null = null;
  contacts: ContactsChanged | null = null; // null: no event about contacts since the model was loaded
  scene: Scene | null = null;
  recording: Recording | null = null;
  history: History | null = null;
  frame: StateFrame | null = null;
  layers = new Map<number, StateFrame>(); // last frame of each compared method, by layer
  selection: Selection = { kind: "none" };
  display: Display = readDisplay();
  isConnected = false;
  private readonly listeners: Listeners = {};

  on<K extends keyof Changes>(change: K, listener: (value: Changes[K]) => void): void {
    const callbacks = (this.listeners[change] ?? []) as ((value: Changes[K]) => void)[];
    callbacks.push(listener);
    (this.listeners as Record<K, typeof callbacks>)[change] = callbacks;
  }

  emit<K extends keyof Changes>(change: K, value: Changes[K]): void {
    for (const listener of this.listeners[change] ?? []) listener(value);
  }

  select(selection: Selection): void {
    this.selection = selection;
    this.emit("selection", selection);
  }

  setDisplay(change: Partial<Display>): void {
    this.display = { ...this.display, ...change };
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(this.display));
    } catch {
      // without storage the settings are lost when the page is reloaded
    }
    this.emit("display", this.display);
  }

  /** Sends a request and returns whether it was carried out; if it was rejected, the reason is shown to the user. */
  async request(request: Parameters<Connection["request"]>[0]): Promise<boolean> {
    try {
      await this.connection.request(request);
      return true;
    } catch (error) {
      this.emit("message", { kind: "error", text: error instanceof Error ? error.message : String(error) });
      return false;
    }
  }

  goal(number: number): GoalInfo | undefined {
    return this.goals.find((goal) => goal.number === number);
  }

  /** Description of a goal kind; the server sends all kinds before the first goal. */
  goalKind(kind: GoalInfo["kind"]): GoalKindInfo {
    const info = this.welcome?.goal_kinds.find((candidate) => candidate.kind === kind);
    if (info === undefined) throw new Error(`the server has sent no description of the goal kind '${kind}'`);
    return info;
  }

  obstacle(name: string): ObstacleInfo | undefined {
    return this.obstacles.find((obstacle) => obstacle.name === name);
  }

  onFrame(frame: StateFrame): void {
    if (frame.revision !== this.model?.revision) return;
    if (frame.layer !== 0) {
      this.layers.set(frame.layer, frame);
      this.emit("layer", frame);
      return;
    }
    this.frame = frame;
    this.emit("frame", frame);
  }

  onConnected(isConnected: boolean): void {
    this.isConnected = isConnected;
    this.emit("connected", isConnected);
  }

  onEvent(event: SessionEvent): void {
    switch (event.is) {
      case "Welcome":
        // another session: the session of this page has ended, so the old state must not be shown any more
        if (this.welcome && this.welcome.session !== event.session) location.reload();
        this.welcome = event;
        return this.emit("welcome", event);
      case "Model":
        this.model = event;
        this.frame = null;
        this.layers.clear();
        this.alternatives = this.contacts = null;
        this.obstacles = [];
        this.select({ kind: "none" });
        return this.emit("model", event);
      case "DofsChanged":
        if (this.model) this.model = { ...this.model, dofs: event.dofs };
        return this.emit("dofs", event);
      case "VisibilityChanged":
        this.model?.links.forEach((link, k) => (link.visible = event.visible[k] ?? true));
        return this.emit("visibility", event);
      case "Goals": {
        this.goals = event.goals;
        this.order = event.order;
        const selection = this.selection;
        if (selection.kind === "goal" && !this.goal(selection.goal)) this.select({ kind: "none" });
        return this.emit("goals", event);
      }
      case "Solving":
        this.solving = event;
        return this.emit("solving", event);
      case "StatusText":
        this.statusText = event;
        return this.emit("statusText", event);
      case "Alternatives":
        this.alternatives = event;
        return this.emit("alternatives", event);
      case "ComparisonChanged":
        this.comparison = event;
        return this.emit("comparison", event);
      case "Kernels":
        this.kernels = event;
        return this.emit("kernels", event);
      case "Obstacles": {
        this.obstacles = event.obstacles;
        const selection = this.selection;
        if (selection.kind === "obstacle" && !this.obstacle(selection.obstacle)) this.select({ kind: "none" });
        return this.emit("obstacles", this.obstacles);
      }
      case "ObstacleMoved": {
        const { obstacle } = event;
        this.obstacles = this.obstacles.map((previous) => (previous.name === obstacle.name ? obstacle : previous));
        return this.emit("obstacles", this.obstacles);
      }
      case "Collisions":
        this.collisions = event;
        return this.emit("collisions", event);
      case "ContactsChanged":
        if (event.revision !== this.model?.revision) return;
        this.contacts = event;
        return this.emit("contacts", event);
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
    return { ...DEFAULT_DISPLAY, ...(JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") as Partial<Display>) };
  } catch {
    return DEFAULT_DISPLAY;
  }
}
