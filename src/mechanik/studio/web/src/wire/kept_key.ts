// The key of the session that this tab had: loaded again, or come back to, it asks for the same one.
const KEPT = "mechanik.session";

export function keptKey(): string {
  try {
    return sessionStorage.getItem(KEPT) ?? "";
  } catch {
    return ""; // a page inside another may be denied it
  }
}

export function keepKey(key: string): void {
  try {
    sessionStorage.setItem(KEPT, key);
  } catch {
    // then it has a new session when it is loaded again
  }
}
