// The session key of this tab, stored so that a reloaded page gets the same session.
const STORAGE_KEY = "mechanik.session";

export function storedKey(): string {
  try {
    return sessionStorage.getItem(STORAGE_KEY) ?? "";
  } catch {
    return ""; // a browser may deny storage to a page in a frame
  }
}

export function storeKey(key: string): void {
  try {
    sessionStorage.setItem(STORAGE_KEY, key);
  } catch {
    // without storage a reloaded page gets a new session
  }
}
