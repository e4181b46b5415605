// Downloads: files from the server and files made by the page.
import { el } from "./element";
import type { Store } from "../store";
import { restoreAccess } from "../connection/access";

export function saveFromServer(store: Store): void {
  // without access, the refusal would be saved as the file
  store.on("download", ({ address, name }) => void restoreAccess().then(() => save(address, name)));
}

export function saveBlob(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  save(address, name);
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000); // long enough for all browsers
}

function save(address: string, name: string): void {
  const link = el("a", { attributes: { href: address, download: name } });
  document.body.append(link);
  link.click();
  link.remove();
}
