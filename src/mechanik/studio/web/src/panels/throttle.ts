// Throttled and debounced functions.

export const READABLE_MS = 1000 / 15; // users can read about 15 updates per second

/** A function that runs `callback` soon, at most once per `interval` ms; calls in between are merged. */
export function throttled(callback: () => void, interval = READABLE_MS): () => void {
  let timer = 0;
  let lastRun = -Infinity;
  return () => {
    if (timer !== 0) return;
    const wait = Math.max(0, lastRun + interval - performance.now());
    timer = window.setTimeout(() => {
      timer = 0;
      lastRun = performance.now();
      callback();
    }, wait);
  };
}

/** A function that runs `callback` when it was not called for `delay` ms. */
export function debounced<A extends unknown[]>(callback: (...args: A) => void, delay: number): (...args: A) => void {
  let timer = 0;
  return (...args) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => callback(...args), delay);
  };
}
