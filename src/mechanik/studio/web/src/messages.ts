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

export interface StartJointDrag {
  do: "StartJointDrag";
  dof: number;
}

export interface SetDofValue {
  do: "SetDofValue";
  dof: number;
  value: number;
}

export interface SetJointRotation {
  do: "SetJointRotation";
  dof: number;
  rotation: [number, number, number];
}

export interface SetLimits {
  do: "SetLimits";
  dof: number;
  lower: number | null;
  upper: number | null;
}

export interface SetLocked {
  do: "SetLocked";
  dof: number;
  locked: boolean;
}

export interface SetRest {
  do: "SetRest";
  dof: number;
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

export interface StartGoalDrag {
  do: "StartGoalDrag";
  goal: number;
}

export interface StartLinkDrag {
  do: "StartLinkDrag";
  link: string;
  at: [number, number, number];
}

export interface EndDrag {
  do: "EndDrag";
  cancel?: boolean;
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

export interface SingleStep {
  do: "SingleStep";
}

export interface SetCollisions {
  do: "SetCollisions";
  mode: "off" | "show" | "avoid";
  clearance?: number;
}

export interface ShowAlternatives {
  do: "ShowAlternatives";
  max_count: number;
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

export interface StartObstacleDrag {
  do: "StartObstacleDrag";
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
  is_dragging?: boolean;
}

export interface Undo {
  do: "Undo";
}

export interface Redo {
  do: "Redo";
}

export interface StartPageEntry {
  kind: "gallery" | "scene";
  name: string;
  title: string;
  about: string;
  picture: string;
  group: string;
}

export interface OptionInfo {
  name: string;
  kind: "number" | "integer" | "switch" | "choice" | "text";
  default: number | boolean | string | null;
  choices: string[];
  about: string;
}

export interface MethodInfo {
  name: string;
  title: string;
  options: OptionInfo[];
}

export interface GoalSizeInfo {
  name: string;
  quantity: "length" | "angle";
  default: number;
}

export interface GoalKindInfo {
  kind: "point" | "pose" | "orientation" | "axis" | "hinge" | "surface" | "on_line" | "on_plane" | "look_at" | "distance" | "in_box" | "in_cone" | "in_band" | "centre_of_mass" | "on_terrain";
  title: string;
  label: string;
  about: string;
  symbol: "cross" | "axes" | "rings" | "arrow" | "hinge" | "disc" | "line" | "plane" | "eye" | "sphere" | "box" | "cone" | "band" | "mass" | "foot";
  at: "point" | "direction" | "unused";
  uses_rotation: boolean;
  has_free_directions: boolean;
  sizes: GoalSizeInfo[];
  link_line: "unreached" | "always" | "plumb" | "none";
  needs: "" | "mass" | "terrain";
}

export interface Welcome {
  is: "Welcome";
  version: string;
  session: string;
  return_key: string;
  entries: StartPageEntry[];
  methods: MethodInfo[];
  goal_kinds: GoalKindInfo[];
  largest_upload: number;
  is_shared: boolean;
}

export interface ShapeInfo {
  kind: "box" | "sphere" | "cylinder" | "capsule" | "mesh";
  sizes: number[];
  pose: [number, number, number, number, number, number, number];
  rgba: [number, number, number, number] | null;
  mesh: string | null;
  extension: string;
  dependencies: Record<string, string>;
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
  dofs: number[];
}

export interface DofInfo {
  name: string;
  joint: number;
  kind: "translation" | "rotation" | "spherical";
  axis: [number, number, number];
  value: number;
  lower: number | null;
  upper: number | null;
  rest: number | null;
  locked: boolean;
  mimics: number;
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
  dofs: DofInfo[];
  closures: ClosureInfo[];
  configurations: string[];
  about: string[];
  centre: [number, number, number];
  radius: number;
  view_from: [number, number, number];
  has_mass: boolean;
  source_kind: "" | "dh" | "arm_2d" | "arm_3d" | "json" | "urdf";
  source: string;
  resets_view: boolean;
}

export interface DofsChanged {
  is: "DofsChanged";
  dofs: DofInfo[];
}

export interface VisibilityChanged {
  is: "VisibilityChanged";
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
  is_link_drag: boolean;
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
  message: string;
}

export interface StatusText {
  is: "StatusText";
  status: string;
  text: string;
  readouts: string[];
}

export interface Alternatives {
  is: "Alternatives";
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
  message: string;
}

export interface ComparisonChanged {
  is: "ComparisonChanged";
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

export interface ContactsChanged {
  is: "ContactsChanged";
  revision: number;
  links: number[];
  obstacles: string[];
  reason: string;
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

export interface RequestDone {
  is: "RequestDone";
  id: number;
}

export interface RequestRefused {
  is: "RequestRefused";
  id: number;
  message: string;
}

export interface Notice {
  is: "Notice";
  kind: "info" | "warning";
  text: string;
}

export type PageRequest =
  | OpenGallery
  | OpenScene
  | EditModel
  | ShowLinks
  | StartJointDrag
  | SetDofValue
  | SetJointRotation
  | SetLimits
  | SetLocked
  | SetRest
  | GoTo
  | AddGoal
  | ChangeGoal
  | MoveGoal
  | RemoveGoal
  | StartGoalDrag
  | StartLinkDrag
  | EndDrag
  | SetSolver
  | SetRunning
  | SingleStep
  | SetCollisions
  | ShowAlternatives
  | Compare
  | AddObstacle
  | MoveObstacle
  | ResizeObstacle
  | RemoveObstacle
  | StartObstacleDrag
  | RecordMotion
  | Play
  | Seek
  | Export
  | SetControl
  | Undo
  | Redo;
export type SessionEvent =
  | Welcome
  | Model
  | DofsChanged
  | VisibilityChanged
  | Goals
  | Solving
  | StatusText
  | Alternatives
  | ComparisonChanged
  | Kernels
  | Obstacles
  | ObstacleMoved
  | Collisions
  | ContactsChanged
  | Scene
  | Controls
  | Recording
  | Download
  | History
  | RequestDone
  | RequestRefused
  | Notice;

export const HEADER_INDEX = { kind: 0, revision: 1, order: 2, sequence: 3, tag: 4, layer: 5, status: 6, is_at_rest: 7, iterations: 8, seconds: 9, solves_per_second: 10, goal_error: 11, links: 12, values: 13, goals: 14, closures: 15 } as const;
export const STATUSES = ["CONVERGED", "CLOSEST", "STALLED", "TIMEOUT", "NOT_CLOSED", "STOPPED", "DIVERGED", "PAUSED", "IDLE", "PROBLEM", "IN_COLLISION"] as const;
export const STATE = 1;
export const DRAG_GOAL = 2;
export const DRAG_DOF = 3;
export const DRAG_OBSTACLE = 4;
export const LINK_DRAG_GOAL = 0;
export const HEADER_SIZE = 16;
export const DRAG_SIZE = 10;
