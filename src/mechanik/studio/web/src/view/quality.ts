// Render quality: the finest level that the machine can draw fast enough. A reduced quality is not increased again, to
// avoid flicker.
import type { WebGLRenderer } from "three";

interface Level {
  ratio: number; // maximum number of pixels per CSS pixel
  shadows: boolean;
}

/** Levels from the finest to the coarsest. */
const LEVELS: Level[] = [
  { ratio: 2, shadows: true },
  { ratio: 1, shadows: true },
  { ratio: 1, shadows: false },
  { ratio: 0.75, shadows: false },
  { ratio: 0.6, shadows: false },
];
const MAX_DRAW_MS = 18; // maximum of the median draw time; with other work, about 40 frames per second
const MEASURE_INTERVAL = 2; // at most every second drawn frame is measured
const MEDIAN_SAMPLES = 9;
const MAX_MEASURED_MS = 500; // longer times are shader compilation or a sleeping tab

export class RenderQuality {
  /** Whether the level is not changed any more, for tests and pictures of the documentation. */
  isFixed = false;
  private level = 0; // index in LEVELS
  private drawCount = 0;
  private isMeasuring = false;
  private readonly drawDurations: number[] = []; // ms
  private readonly drawStarts: number[] = []; // ms

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
  get finestRatio(): number {
    return ratioOf(LEVELS[0]!);
  }

  get shadows(): boolean {
    return LEVELS[this.level]!.shadows;
  }

  /** Median time of the last measured frames, ms, from the first command to the last pixel; 0: nothing measured. */
  get drawTime(): number {
    const durations = [...this.drawDurations].sort((a, b) => a - b);
    return durations[durations.length >> 1] ?? 0;
  }

  /** Frames drawn in the last second. */
  get framesPerSecond(): number {
    const startTime = performance.now() - 1000;
    return this.drawStarts.filter((time) => time > startTime).length;
  }

  /** Sets the pixels per CSS pixel. */
  drawAt(ratio: number): void {
    if (this.renderer.getPixelRatio() !== ratio) this.renderer.setPixelRatio(ratio);
  }

  /** Draws, and for some frames measures the time until all pixels are drawn. */
  measure(draw: () => void): void {
    const start = performance.now();
    this.drawAt(this.ratio);
    draw();
    this.drawStarts.push(start);
    if (this.drawStarts.length > 240) this.drawStarts.splice(0, 120);
    if (!this.isMeasuring && ++this.drawCount % MEASURE_INTERVAL === 0) this.measureGpu(start);
  }

  /** Polls until the graphics commands are done, since waiting would block the page. */
  private measureGpu(start: number): void {
    const gl = this.renderer.getContext() as WebGL2RenderingContext;
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (fence === null) return;
    gl.flush();
    this.isMeasuring = true;
    const poll = () => {
      const duration = performance.now() - start;
      if (duration < MAX_MEASURED_MS && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
        setTimeout(poll, 1);
        return;
      }
      gl.deleteSync(fence);
      this.isMeasuring = false;
      if (duration < MAX_MEASURED_MS) this.addSample(duration);
    };
    setTimeout(poll, 1);
  }

  private addSample(duration: number): void {
    this.drawDurations.push(duration);
    if (this.drawDurations.length < MEDIAN_SAMPLES) return;
    const level = LEVELS[this.level]!;
    const nextLevel = LEVELS.findIndex(
      (coarserLevel, k) =>
        k > this.level && (ratioOf(coarserLevel) < ratioOf(level) || coarserLevel.shadows !== level.shadows),
    );
    if (this.drawTime > MAX_DRAW_MS && nextLevel > 0 && !this.isFixed) {
      this.level = nextLevel;
      this.drawDurations.length = 0;
      this.onChange();
    } else this.drawDurations.shift();
  }
}

function ratioOf(level: Level): number {
  return Math.min(window.devicePixelRatio, level.ratio);
}
