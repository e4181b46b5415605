// Screenshots, and handling of a lost graphics context.
import type { Store } from "../store";

export function toPng(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("the browser cannot create the PNG file"))),
      "image/png",
    ),
  );
}

/** Shows a message when the graphics context is lost, and calls `redraw` when it is restored. */
export function watchContextLoss(canvas: HTMLCanvasElement, store: Store, redraw: () => void): void {
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault(); // otherwise the context is not restored
    const text =
      "The graphics context was lost. The browser usually restores it; if not, reload the page.";
    store.emit("message", { kind: "warning", text });
  });
  canvas.addEventListener("webglcontextrestored", redraw);
}
