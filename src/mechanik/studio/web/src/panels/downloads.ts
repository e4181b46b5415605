// Files for the person: from the server, or made by the page itself.
import { el } from "./element";
import type { Store } from "../store";
import { restoreAccess } from "../wire/access";

export function saveFromServer(store: Store): void {
  // a link that is refused would be saved as a file with the refusal in it
  store.on("download", ({ address, name }) => void restoreAccess().then(() => save(address, name)));
}

export function saveBlob(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  save(address, name);
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000); // long enough for any browser to have taken it
}

function save(address: string, name: string): void {
  const link = el("a", { attributes: { href: address, download: name } });
  document.body.append(link);
  link.click();
  link.remove();
}
