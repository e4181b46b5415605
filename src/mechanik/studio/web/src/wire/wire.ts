// The connection to the session: requests with answers, events, state frames, and hands of which one is on its way.
import { DRAG_DOF, DRAG_GOAL, DRAG_SIZE, DRAG_OBSTACLE, type PageRequest, type SessionEvent } from "../messages";
import { keepReturnKey, restoreAccess } from "./access";
import { readFrame, type Frame } from "./frame";
import { keepKey, keptKey } from "./kept_key";

const TRIES = 20; // a second apart, to have the session again after the connection was lost
const PATIENCE = 250; // ms after which a hand that was not answered is given up, so that a lost one blocks nothing

export interface Listener {
  told(event: SessionEvent): void;
  moved(frame: Frame): void;
  connected(isConnected: boolean): void;
}

export class Wire {
  /** Round trips of hands, ms, newest last; for the status line and for measurements. */
  readonly trips: number[] = [];
  private socket: WebSocket | null = null;
  private readonly waiting = new Map<number, { done: () => void; refused: (why: Error) => void }>();
  private nextId = 1;
  private tag = 0;
  private inFlight: { tag: number; sent: number } | null = null;
  private newest: number[] | null = null;
  private timer = 0;
  private session = keptKey();
  private triesLeft = 0;

  constructor(private readonly listener: Listener) {}

  open(): void {
    const address = new URL("ws", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.search = this.session === "" ? "" : `session=${encodeURIComponent(this.session)}`;
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.listener.connected(true);
    socket.onclose = () => this.closed();
    socket.onmessage = (message: MessageEvent<ArrayBuffer | string>) => {
      if (typeof message.data === "string") this.told(JSON.parse(message.data) as SessionEvent);
      else this.framed(message.data);
    };
    this.socket = socket;
  }

  /** Ask for something; the promise is kept when it is done, and broken with the reason when it is refused. */
  ask(request: PageRequest): Promise<void> {
    const id = this.nextId++;
    if (this.socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("the studio is not connected"));
    this.socket.send(JSON.stringify({ ...request, id }));
    return new Promise((done, refused) => this.waiting.set(id, { done, refused }));
  }

  /** Where the hand holds a goal (pose: x y z qw qx qy qz). One is on its way at a time, and the newest wins. */
  holdGoal(goal: number, pose: readonly number[]): void {
    this.hold(DRAG_GOAL, goal, pose);
  }

  /** Where the hand holds a freedom: m or rad, or the three numbers of a ball's rotation vector. */
  holdFreedom(freedom: number, ...numbers: readonly number[]): void {
    this.hold(DRAG_DOF, freedom, numbers);
  }

  /** Where the hand holds an obstacle; place: among all when it was taken. */
  holdObstacle(place: number, pose: readonly number[]): void {
    this.hold(DRAG_OBSTACLE, place, pose);
  }

  /** Tag of the last hand that was sent; a state whose tag is as high has seen it. */
  get lastTag(): number {
    return this.tag;
  }

  private hold(kind: number, number: number, numbers: readonly number[]): void {
    this.newest = [kind, 0, number, ...numbers];
    this.sendHand();
  }

  /** Send the newest hand now, also if one is on its way: the last of a drag must not be lost. */
  flush(): void {
    this.inFlight = null;
    this.sendHand();
  }

  private sendHand(): void {
    if (this.newest === null || this.inFlight !== null || this.socket?.readyState !== WebSocket.OPEN) return;
    const numbers = new Float64Array(DRAG_SIZE);
    numbers.set(this.newest);
    numbers[1] = ++this.tag;
    this.newest = null;
    this.inFlight = { tag: this.tag, sent: performance.now() };
    this.socket.send(numbers);
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.flush(), PATIENCE);
  }

  private framed(bytes: ArrayBuffer): void {
    const frame = readFrame(bytes);
    if (frame === null) return;
    if (frame.layer === 0 && this.inFlight !== null && frame.tag >= this.inFlight.tag) {
      this.trips.push(Math.max(0, performance.now() - this.inFlight.sent));
      if (this.trips.length > 1000) this.trips.splice(0, 500);
      this.inFlight = null;
      this.sendHand();
    }
    this.listener.moved(frame);
  }

  private told(event: SessionEvent): void {
    if (event.is === "Welcome") {
      this.session = event.session;
      keepKey(event.session);
      keepReturnKey(event.return_key);
      this.triesLeft = TRIES;
    }
    if (event.is === "RequestDone" || event.is === "RequestRefused") {
      const waiting = this.waiting.get(event.id);
      this.waiting.delete(event.id);
      if (event.is === "RequestDone") waiting?.done();
      else waiting?.refused(new Error(event.message));
    }
    this.listener.told(event);
  }

  private closed(): void {
    for (const { refused } of this.waiting.values()) refused(new Error("the connection was lost"));
    this.waiting.clear();
    this.inFlight = null;
    this.newest = null;
    this.listener.connected(false);
    if (this.triesLeft-- > 0) window.setTimeout(() => void this.openAgain(), 1000);
  }

  /** What has cut the connection may have taken the cookie along, and a refused websocket does not say why. */
  private async openAgain(): Promise<void> {
    await restoreAccess();
    this.open();
  }
}
