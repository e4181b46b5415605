// Throttled and debounced functions.

export const READABLE_MS = 1000 / 15; // 15 updates per second; users could not read more

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

/** A function that runs `callback` `delay` ms after its last call, with the arguments of this call. */
export function debounced<A extends unknown[]>(callback: (...args: A) => void, delay: number): (...args: A) => void {
  let timer = 0;
  return (...args) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => callback(...args), delay);
  };
}
