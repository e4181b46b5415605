// Downloads of files from the server and of files that the page creates.
import { el } from "./element";
import type { Store } from "../store";
import { restoreAccess } from "../connection/access";

/** Saves each file that the session offers for download. */
export function saveFromServer(store: Store): void {
  // without access, the error message of the server would be saved as the file
  store.on("download", ({ address, name }) => void restoreAccess().then(() => save(address, name)));
}

export function saveBlob(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  save(address, name);
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000); // 60 s: the download has started in all browsers
}

function save(address: string, name: string): void {
  const link = el("a", { attributes: { href: address, download: name } });
  document.body.append(link);
  link.click();
  link.remove();
}
