// Work that follows frames, at a rate that eyes can read: at most so often, the last always, and only what is seen.

export const READABLE = 1000 / 15; // ms

/** A function that runs `work` soon, at most once in `every` ms; calls in between are one. */
export function paced(work: () => void, every = READABLE): () => void {
  let timer = 0;
  let last = -Infinity;
  return () => {
    if (timer !== 0) return;
    const wait = Math.max(0, last + every - performance.now());
    timer = window.setTimeout(() => {
      timer = 0;
      last = performance.now();
      work();
    }, wait);
  };
}

/** A function that runs `work` when it was not called for `after` ms. */
export function settled<A extends unknown[]>(work: (...what: A) => void, after: number): (...what: A) => void {
  let timer = 0;
  return (...what) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => work(...what), after);
  };
}
