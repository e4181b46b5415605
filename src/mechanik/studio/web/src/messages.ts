// Written by `python -m mechanik.studio.messages.typescript` from the schema in Python: do not edit.

export interface OpenGallery {
  do: "OpenGallery";
  name: string;
}

export interface OpenScene {
  do: "OpenScene";
  name: string;
}

export interface EditModel {
  do: "EditModel";
  kind: "dh" | "arm_2d" | "arm_3d" | "json" | "urdf";
  text: string;
}

export interface ShowLinks {
  do: "ShowLinks";
  links: string[];
  visible: boolean;
}

export interface GrabFreedom {
  do: "GrabFreedom";
  freedom: number;
}

export interface SetFreedom {
  do: "SetFreedom";
  freedom: number;
  value: number;
}

export interface SetTurn {
  do: "SetTurn";
  freedom: number;
  turn: [number, number, number];
}

export interface SetLimits {
  do: "SetLimits";
  freedom: number;
  lower: number | null;
  upper: number | null;
}

export interface SetLocked {
  do: "SetLocked";
  freedom: number;
  locked: boolean;
}

export interface SetRest {
  do: "SetRest";
  freedom: number;
  value: number | null;
}

export interface GoTo {
  do: "GoTo";
  configuration: string;
}

export interface AddGoal {
  do: "AddGoal";
  kind: "point" | "pose" | "orientation" | "axis" | "hinge" | "surface" | "on_line" | "on_plane" | "look_at" | "distance" | "in_box" | "in_cone" | "in_band" | "centre_of_mass" | "on_terrain";
  link: string;
  at?: [number, number, number];
  pose?: [number, number, number, number, number, number, number] | null;
  pinned?: boolean;
}

export interface ChangeGoal {
  do: "ChangeGoal";
  goal: number;
  kind?: "point" | "pose" | "orientation" | "axis" | "hinge" | "surface" | "on_line" | "on_plane" | "look_at" | "distance" | "in_box" | "in_cone" | "in_band" | "centre_of_mass" | "on_terrain" | null;
  link?: string | null;
  at?: [number, number, number] | null;
  weight?: number | null;
  level?: number | null;
  enabled?: boolean | null;
  pinned?: boolean | null;
  sizes?: [number, number, number] | null;
  free?: ("X" | "Y" | "Z" | "EX" | "EY" | "EZ")[] | null;
}

export interface MoveGoal {
  do: "MoveGoal";
  goal: number;
  pose: [number, number, number, number, number, number, number];
}

export interface RemoveGoal {
  do: "RemoveGoal";
  goal: number;
}

export interface GrabGoal {
  do: "GrabGoal";
  goal: number;
}

export interface PullLink {
  do: "PullLink";
  link: string;
  at: [number, number, number];
}

export interface Release {
  do: "Release";
  puts_back?: boolean;
}

export interface SetSolver {
  do: "SetSolver";
  solver: string;
  options: Record<string, number | boolean | string | null>;
}

export interface SetRunning {
  do: "SetRunning";
  running: boolean;
}

export interface OneStep {
  do: "OneStep";
}

export interface SetCollisions {
  do: "SetCollisions";
  mode: "off" | "show" | "avoid";
  clearance?: number;
}

export interface ShowGhosts {
  do: "ShowGhosts";
  most: number;
}

export interface Compare {
  do: "Compare";
  solvers: string[];
}

export interface AddObstacle {
  do: "AddObstacle";
  kind: "box" | "sphere" | "capsule";
  pose?: [number, number, number, number, number, number, number] | null;
}

export interface MoveObstacle {
  do: "MoveObstacle";
  obstacle: string;
  pose: [number, number, number, number, number, number, number];
}

export interface ResizeObstacle {
  do: "ResizeObstacle";
  obstacle: string;
  sizes: number[];
}

export interface RemoveObstacle {
  do: "RemoveObstacle";
  obstacle: string;
}

export interface GrabObstacle {
  do: "GrabObstacle";
  obstacle: string;
}

export interface RecordMotion {
  do: "RecordMotion";
  on: boolean;
}

export interface Play {
  do: "Play";
  on: boolean;
  speed?: number;
  looped?: boolean;
}

export interface Seek {
  do: "Seek";
  time: number;
}

export interface Export {
  do: "Export";
  kind: "json" | "csv" | "npz" | "bvh" | "glb" | "html" | "mechanism" | "urdf";
}

export interface SetControl {
  do: "SetControl";
  name: string;
  value: number | boolean | string;
  is_held?: boolean;
}

export interface Undo {
  do: "Undo";
}

export interface Redo {
  do: "Redo";
}

export interface GalleryEntry {
  kind: "gallery" | "scene";
  name: string;
  title: string;
  about: string;
  picture: string;
  group: string;
}

export interface OptionInfo {
  name: string;
  kind: "number" | "whole" | "switch" | "choice" | "text";
  default: number | boolean | string | null;
  choices: string[];
  about: string;
}

export interface MethodInfo {
  name: string;
  title: string;
  options: OptionInfo[];
}

export interface Welcome {
  is: "Welcome";
  version: string;
  session: string;
  return_key: string;
  entries: GalleryEntry[];
  methods: MethodInfo[];
  largest_upload: number;
  is_shared: boolean;
}

export interface ShapeInfo {
  kind: "box" | "sphere" | "cylinder" | "capsule" | "mesh";
  sizes: number[];
  pose: [number, number, number, number, number, number, number];
  rgba: [number, number, number, number] | null;
  mesh: string | null;
  ending: string;
  beside: Record<string, string>;
}

export interface LinkInfo {
  name: string;
  parent: number;
  visuals: ShapeInfo[];
  collisions: ShapeInfo[];
  visible: boolean;
}

export interface JointInfo {
  name: string;
  kind: string;
  parent: number;
  child: number;
  pose: [number, number, number, number, number, number, number];
  freedoms: number[];
}

export interface FreedomInfo {
  name: string;
  joint: number;
  kind: "slide" | "turn" | "ball";
  axis: [number, number, number];
  value: number;
  lower: number | null;
  upper: number | null;
  rest: number | null;
  locked: boolean;
  leader: number;
}

export interface ClosureInfo {
  name: string;
  kind: string;
  link_a: number;
  pose_a: [number, number, number, number, number, number, number];
  link_b: number;
  pose_b: [number, number, number, number, number, number, number];
}

export interface Model {
  is: "Model";
  revision: number;
  name: string;
  title: string;
  links: LinkInfo[];
  joints: JointInfo[];
  freedoms: FreedomInfo[];
  closures: ClosureInfo[];
  configurations: string[];
  about: string[];
  centre: [number, number, number];
  radius: number;
  view_from: [number, number, number];
  weighs: boolean;
  source_kind: "" | "dh" | "arm_2d" | "arm_3d" | "json" | "urdf";
  source: string;
  resets_view: boolean;
}

export interface Freedoms {
  is: "Freedoms";
  freedoms: FreedomInfo[];
}

export interface Shown {
  is: "Shown";
  visible: boolean[];
}

export interface GoalInfo {
  number: number;
  name: string;
  kind: "point" | "pose" | "orientation" | "axis" | "hinge" | "surface" | "on_line" | "on_plane" | "look_at" | "distance" | "in_box" | "in_cone" | "in_band" | "centre_of_mass" | "on_terrain";
  link: number;
  at: [number, number, number];
  pose: [number, number, number, number, number, number, number];
  weight: number;
  level: number;
  enabled: boolean;
  pinned: boolean;
  sizes: [number, number, number];
  free: ("X" | "Y" | "Z" | "EX" | "EY" | "EZ")[];
  is_pull: boolean;
}

export interface Goals {
  is: "Goals";
  order: number;
  goals: GoalInfo[];
}

export interface Solving {
  is: "Solving";
  running: boolean;
  solver: string;
  options: Record<string, number | boolean | string | null>;
  said: string;
}

export interface Words {
  is: "Words";
  status: string;
  text: string;
  read_out: string[];
}

export interface Ghosts {
  is: "Ghosts";
  poses: number[][];
  text: string;
}

export interface CompareRow {
  solver: string;
  title: string;
  layer: number;
  status: string;
  error: number;
  iterations: number;
  microseconds: number;
  solved: number;
  refusal: string;
  said: string;
}

export interface Comparison {
  is: "Comparison";
  rows: CompareRow[];
}

export interface Kernels {
  is: "Kernels";
  state: "ready" | "compiling" | "not compiled";
  ready: number;
  count: number;
  remedy: string;
}

export interface ObstacleInfo {
  name: string;
  kind: "box" | "sphere" | "cylinder" | "capsule" | "half-space" | "height field" | "mesh";
  pose: [number, number, number, number, number, number, number];
  shape: ShapeInfo;
}

export interface Obstacles {
  is: "Obstacles";
  obstacles: ObstacleInfo[];
}

export interface ObstacleMoved {
  is: "ObstacleMoved";
  obstacle: ObstacleInfo;
}

export interface Collisions {
  is: "Collisions";
  mode: "off" | "show" | "avoid";
  clearance: number;
}

export interface Clashes {
  is: "Clashes";
  revision: number;
  links: number[];
  obstacles: string[];
  why: string;
}

export interface ControlInfo {
  name: string;
  title: string;
  kind: "slider" | "switch" | "choice" | "button" | "text" | "number";
  value: number | boolean | string;
  low: number;
  high: number;
  step: number;
  choices: string[];
  group: string;
  about: string;
}

export interface CurveInfo {
  name: string;
  points: number[];
  rgba: [number, number, number, number];
  closed: boolean;
}

export interface TerrainInfo {
  columns: number;
  rows: number;
  cell: number;
  origin: [number, number];
  heights: number[];
}

export interface Scene {
  is: "Scene";
  name: string;
  title: string;
  about: string;
  controls: ControlInfo[];
  curves: CurveInfo[];
  terrain: TerrainInfo | null;
  shows_collisions: boolean;
}

export interface Controls {
  is: "Controls";
  values: Record<string, number | boolean | string>;
}

export interface Recording {
  is: "Recording";
  state: "empty" | "recording" | "ready" | "playing";
  frames: number;
  duration: number;
  time: number;
}

export interface Download {
  is: "Download";
  address: string;
  name: string;
}

export interface History {
  is: "History";
  undo: string;
  redo: string;
}

export interface Done {
  is: "Done";
  id: number;
}

export interface Refused {
  is: "Refused";
  id: number;
  message: string;
}

export interface Notice {
  is: "Notice";
  kind: "info" | "warning";
  text: string;
}

export type Asked =
  | OpenGallery
  | OpenScene
  | EditModel
  | ShowLinks
  | GrabFreedom
  | SetFreedom
  | SetTurn
  | SetLimits
  | SetLocked
  | SetRest
  | GoTo
  | AddGoal
  | ChangeGoal
  | MoveGoal
  | RemoveGoal
  | GrabGoal
  | PullLink
  | Release
  | SetSolver
  | SetRunning
  | OneStep
  | SetCollisions
  | ShowGhosts
  | Compare
  | AddObstacle
  | MoveObstacle
  | ResizeObstacle
  | RemoveObstacle
  | GrabObstacle
  | RecordMotion
  | Play
  | Seek
  | Export
  | SetControl
  | Undo
  | Redo;
export type Told =
  | Welcome
  | Model
  | Freedoms
  | Shown
  | Goals
  | Solving
  | Words
  | Ghosts
  | Comparison
  | Kernels
  | Obstacles
  | ObstacleMoved
  | Collisions
  | Clashes
  | Scene
  | Controls
  | Recording
  | Download
  | History
  | Done
  | Refused
  | Notice;

export const HEADER_PLACES = { kind: 0, revision: 1, order: 2, sequence: 3, tag: 4, layer: 5, status: 6, is_at_rest: 7, iterations: 8, seconds: 9, solves_per_second: 10, residual: 11, links: 12, values: 13, goals: 14, closures: 15 } as const;
export const STATUSES = ["CONVERGED", "CLOSEST", "STALLED", "TIMEOUT", "OPEN", "STOPPED", "DIVERGED", "PAUSED", "IDLE", "PROBLEM", "IN_COLLISION"] as const;
export const STATE = 1;
export const HAND_GOAL = 2;
export const HAND_FREEDOM = 3;
export const HAND_OBSTACLE = 4;
export const PULL = 0;
export const HEADER = 16;
export const HAND_NUMBERS = 10;
