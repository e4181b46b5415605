// Screenshots, and loss of the graphics context.
import type { Store } from "../store";

export function toPng(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((done, failed) =>
    canvas.toBlob(
      (blob) => (blob ? done(blob) : failed(new Error("the browser cannot write the picture"))),
      "image/png",
    ),
  );
}

/** Tells the user when the graphics context is lost, and calls `again` when it is restored. */
export function watchContextLoss(canvas: HTMLCanvasElement, store: Store, again: () => void): void {
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault(); // else it is not restored
    const text =
      "The graphics context was lost. It is restored automatically; if not, reload the page.";
    store.emit("message", { kind: "warning", text });
  });
  canvas.addEventListener("webglcontextrestored", again);
}
