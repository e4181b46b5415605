// Connection to the session: requests with replies, events, state frames and drag updates.
import { DRAG_DOF, DRAG_GOAL, DRAG_SIZE, DRAG_OBSTACLE, type PageRequest, type SessionEvent } from "../messages";
import { setReturnKey, restoreAccess } from "./access";
import { readStateFrame, type StateFrame } from "./state_frame";
import { storeKey, storedKey } from "./session_key";

const MAX_RECONNECTS = 20; // at least one second apart
// time after which the next drag update is sent even without a reply: a lost update must not block the drag
const DRAG_TIMEOUT_MS = 250;
const NOT_CONNECTED = "The studio is not connected, so nothing was changed. Try again when it is connected.";
const CONNECTION_LOST = "The connection was lost before the studio replied. When it is connected, check the result.";

export interface ConnectionListener {
  onEvent(event: SessionEvent): void;
  onFrame(frame: StateFrame): void;
  onConnected(isConnected: boolean): void;
}

export class Connection {
  /** Times from a drag update to the state that includes it, ms, newest last. */
  readonly latencies: number[] = [];
  private socket: WebSocket | null = null;
  private readonly pending = new Map<number, { resolve: () => void; reject: (reason: Error) => void }>();
  private nextId = 1;
  private tag = 0;
  private inFlight: { tag: number; sentTime: number } | null = null; // the update without a reply; sentTime: ms
  private unsent: number[] | null = null; // the newest update, if it is not sent yet
  private dragTimer = 0;
  private session = storedKey();
  private reconnectsLeft = 0;

  constructor(private readonly listener: ConnectionListener) {}

  open(): void {
    const address = new URL("ws", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.search = this.session === "" ? "" : `session=${encodeURIComponent(this.session)}`;
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.listener.onConnected(true);
    socket.onclose = () => this.onClose();
    socket.onmessage = (message: MessageEvent<ArrayBuffer | string>) => {
      if (typeof message.data === "string") this.receiveEvent(JSON.parse(message.data) as SessionEvent);
      else this.receiveFrame(message.data);
    };
    this.socket = socket;
  }

  /** Sends a request. The promise resolves when it was carried out, and rejects with the reason if it was not. */
  request(request: PageRequest): Promise<void> {
    const id = this.nextId++;
    if (this.socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error(NOT_CONNECTED));
    this.socket.send(JSON.stringify({ ...request, id }));
    return new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }));
  }

  /**
   * Sends the pose of a dragged goal (x y z qw qx qy qz). While a drag update waits for its state, only the newest
   * further update is kept; it is sent when the state arrives, or after DRAG_TIMEOUT_MS.
   */
  dragGoal(goal: number, pose: readonly number[]): void {
    this.drag(DRAG_GOAL, goal, pose);
  }

  /** Sends the value of a dragged dof, m or rad; for a spherical joint the rotation vector (three numbers, rad). */
  dragDof(dof: number, ...values: readonly number[]): void {
    this.drag(DRAG_DOF, dof, values);
  }

  /** Sends the pose of a dragged obstacle; index: index of the obstacle at the start of the drag. */
  dragObstacle(index: number, pose: readonly number[]): void {
    this.drag(DRAG_OBSTACLE, index, pose);
  }

  /** Tag of the last sent drag update; a state with this tag or a higher tag includes the update. */
  get lastTag(): number {
    return this.tag;
  }

  /** target: number of a goal, or index of a dof or an obstacle; values: pose, or value of the dof. */
  private drag(kind: number, target: number, values: readonly number[]): void {
    this.unsent = [kind, 0, target, ...values];
    this.sendDrag();
  }

  /** Sends the newest drag update even if another is in flight, so that the last update of a drag is not lost. */
  flush(): void {
    this.inFlight = null;
    this.sendDrag();
  }

  private sendDrag(): void {
    if (this.unsent === null || this.inFlight !== null || this.socket?.readyState !== WebSocket.OPEN) return;
    const numbers = new Float64Array(DRAG_SIZE);
    numbers.set(this.unsent);
    numbers[1] = ++this.tag;
    this.unsent = null;
    this.inFlight = { tag: this.tag, sentTime: performance.now() };
    this.socket.send(numbers);
    window.clearTimeout(this.dragTimer);
    this.dragTimer = window.setTimeout(() => this.flush(), DRAG_TIMEOUT_MS);
  }

  private receiveFrame(bytes: ArrayBuffer): void {
    const frame = readStateFrame(bytes);
    if (frame === null) return;
    if (frame.layer === 0 && this.inFlight !== null && frame.tag >= this.inFlight.tag) {
      this.latencies.push(Math.max(0, performance.now() - this.inFlight.sentTime));
      if (this.latencies.length > 1000) this.latencies.splice(0, 500);
      this.inFlight = null;
      this.sendDrag();
    }
    this.listener.onFrame(frame);
  }

  private receiveEvent(event: SessionEvent): void {
    if (event.is === "Welcome") {
      this.session = event.session;
      storeKey(event.session);
      setReturnKey(event.return_key);
      this.reconnectsLeft = MAX_RECONNECTS;
    }
    if (event.is === "RequestDone" || event.is === "RequestRefused") {
      const pendingRequest = this.pending.get(event.id);
      this.pending.delete(event.id);
      if (event.is === "RequestDone") pendingRequest?.resolve();
      else pendingRequest?.reject(new Error(event.message));
    }
    this.listener.onEvent(event);
  }

  private onClose(): void {
    for (const { reject } of this.pending.values()) reject(new Error(CONNECTION_LOST));
    this.pending.clear();
    this.inFlight = null;
    this.unsent = null;
    this.listener.onConnected(false);
    if (this.reconnectsLeft-- > 0) window.setTimeout(() => void this.reopen(), 1000);
  }

  /** Restores the cookie, which may be lost, and connects. A websocket without access would report no reason. */
  private async reopen(): Promise<void> {
    await restoreAccess();
    this.open();
  }
}
