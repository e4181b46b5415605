// Render quality: the finest level that the machine can draw fast enough. The level never increases, to avoid flicker.
import type { WebGLRenderer } from "three";

interface Level {
  ratio: number; // maximum pixels per CSS pixel
  shadows: boolean;
}

const LEVELS: Level[] = [
  { ratio: 2, shadows: true },
  { ratio: 1, shadows: true },
  { ratio: 1, shadows: false },
  { ratio: 0.75, shadows: false },
  { ratio: 0.6, shadows: false },
];
const MAX_DRAW_MS = 18; // median time of a drawn frame; with other work, about 40 frames per second
const MEASURE_EVERY = 2; // every second drawn frame is measured
const MEDIAN_SAMPLES = 9;
const MAX_MEASURED_MS = 500; // longer times are shader compilation or a sleeping tab

export class RenderQuality {
  /** Whether the level is kept, for screenshots. */
  isFixed = false;
  private level = 0;
  private draws = 0;
  private isMeasuring = false;
  private readonly times: number[] = [];
  private readonly stamps: number[] = [];

  /** onChange: called after a change of the level; the view must be drawn again. */
  constructor(
    private readonly renderer: WebGLRenderer,
    private readonly onChange: () => void,
  ) {}

  /** Pixels per CSS pixel during motion. */
  get ratio(): number {
    return ratioOf(LEVELS[this.level]!);
  }

  /** Pixels per CSS pixel of the finest level. */
  get finest(): number {
    return ratioOf(LEVELS[0]!);
  }

  get shadows(): boolean {
    return LEVELS[this.level]!.shadows;
  }

  /** Median time of the last measured frames, ms, from the first command to the last pixel; 0: nothing measured. */
  get drawTime(): number {
    return this.times.length === 0 ? 0 : [...this.times].sort((a, b) => a - b)[this.times.length >> 1]!;
  }

  /** Frames drawn in the last second. */
  get framesPerSecond(): number {
    const since = performance.now() - 1000;
    return this.stamps.filter((stamp) => stamp > since).length;
  }

  /** Sets the pixels per CSS pixel. */
  drawAt(ratio: number): void {
    if (this.renderer.getPixelRatio() !== ratio) this.renderer.setPixelRatio(ratio);
  }

  /** Draws, and measures for some frames the time until all pixels are drawn. */
  measure(draw: () => void): void {
    const start = performance.now();
    this.drawAt(this.ratio);
    draw();
    this.stamps.push(start);
    if (this.stamps.length > 240) this.stamps.splice(0, 120);
    if (!this.isMeasuring && ++this.draws % MEASURE_EVERY === 0) this.measureGpu(start);
  }

  /** Polls until the graphics commands are done, since waiting would block the page. */
  private measureGpu(start: number): void {
    const gl = this.renderer.getContext() as WebGL2RenderingContext;
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (fence === null) return;
    gl.flush();
    this.isMeasuring = true;
    const poll = () => {
      const time = performance.now() - start;
      if (time < MAX_MEASURED_MS && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
        setTimeout(poll, 1);
        return;
      }
      gl.deleteSync(fence);
      this.isMeasuring = false;
      if (time < MAX_MEASURED_MS) this.addSample(time);
    };
    setTimeout(poll, 1);
  }

  private addSample(time: number): void {
    this.times.push(time);
    if (this.times.length < MEDIAN_SAMPLES) return;
    const current = LEVELS[this.level]!;
    const next = LEVELS.findIndex(
      (step, k) => k > this.level && (ratioOf(step) < ratioOf(current) || step.shadows !== current.shadows),
    );
    if (this.drawTime > MAX_DRAW_MS && next > 0 && !this.isFixed) {
      this.level = next;
      this.times.length = 0;
      this.onChange();
    } else this.times.shift();
  }
}

function ratioOf(step: Level): number {
  return Math.min(window.devicePixelRatio, step.ratio);
}
