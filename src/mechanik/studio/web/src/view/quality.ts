// How finely it is drawn: as finely as the machine keeps up with. Steps go down only, so that nothing flickers.
import type { WebGLRenderer } from "three";

interface Step {
  ratio: number; // most pixels a CSS pixel
  shadows: boolean;
}

const STEPS: Step[] = [
  { ratio: 2, shadows: true },
  { ratio: 1, shadows: true },
  { ratio: 1, shadows: false },
  { ratio: 0.75, shadows: false },
  { ratio: 0.6, shadows: false },
];
const TOO_SLOW = 18; // ms a draw: with what else there is to do, below 40 a second
const EVERY = 2; // draws from one measured to the next
const WINDOW = 9; // measured draws of which the median decides
const HICCUP = 500; // ms; shaders that are being built or a sleeping tab say nothing about drawing

export class Quality {
  /** Keep what it is: for pictures that are worth waiting for. */
  isFixed = false;
  private step = 0;
  private draws = 0;
  private isMeasuring = false;
  private readonly times: number[] = [];
  private readonly stamps: number[] = [];

  /** changed: called after a step down; the window has to be drawn again. */
  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly changed: () => void,
  ) {}

  /** Pixels a CSS pixel, while things move. */
  get ratio(): number {
    return ratioOf(STEPS[this.step]!);
  }

  /** Pixels a CSS pixel, where time does not matter. */
  get finest(): number {
    return ratioOf(STEPS[0]!);
  }

  get shadows(): boolean {
    return STEPS[this.step]!.shadows;
  }

  /** Median of the last measured draws, ms, from the first command to the last pixel; 0 before there are any. */
  get drawTime(): number {
    return this.times.length === 0 ? 0 : [...this.times].sort((a, b) => a - b)[this.times.length >> 1]!;
  }

  /** Draws within the last second. */
  get framesPerSecond(): number {
    const since = performance.now() - 1000;
    return this.stamps.filter((stamp) => stamp > since).length;
  }

  /** From now on with so many pixels a CSS pixel. */
  drawAt(ratio: number): void {
    if (this.renderer.getPixelRatio() !== ratio) this.renderer.setPixelRatio(ratio);
  }

  /** Draw, and now and then measure how long it took until the pixels stood. */
  measure(draw: () => void): void {
    const start = performance.now();
    this.drawAt(this.ratio);
    draw();
    this.stamps.push(start);
    if (this.stamps.length > 240) this.stamps.splice(0, 120);
    if (!this.isMeasuring && ++this.draws % EVERY === 0) this.watch(start);
  }

  /** Ask again and again whether the commands are done; waiting for them would hold up the page. */
  private watch(start: number): void {
    const gl = this.renderer.getContext() as WebGL2RenderingContext;
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (fence === null) return;
    gl.flush();
    this.isMeasuring = true;
    const ask = () => {
      const time = performance.now() - start;
      if (time < HICCUP && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
        setTimeout(ask, 1);
        return;
      }
      gl.deleteSync(fence);
      this.isMeasuring = false;
      if (time < HICCUP) this.took(time);
    };
    setTimeout(ask, 1);
  }

  private took(time: number): void {
    this.times.push(time);
    if (this.times.length < WINDOW) return;
    const now = STEPS[this.step]!;
    const next = STEPS.findIndex(
      (step, k) => k > this.step && (ratioOf(step) < ratioOf(now) || step.shadows !== now.shadows),
    );
    if (this.drawTime > TOO_SLOW && next > 0 && !this.isFixed) {
      this.step = next;
      this.times.length = 0;
      this.changed();
    } else this.times.shift();
  }
}

function ratioOf(step: Step): number {
  return Math.min(window.devicePixelRatio, step.ratio);
}
