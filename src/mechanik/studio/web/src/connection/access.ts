// Restores access to the server if the browser has lost its cookie, as it does when its network process restarts.
const TIMEOUT_MS = 5000; // so that a server that hangs does not block reconnecting

let returnKey = ""; // in memory only, valid as long as the page

export function setReturnKey(key: string): void {
  returnKey = key;
}

/** Requests the cookie again; returns whether the server has set it. */
export async function restoreAccess(): Promise<boolean> {
  if (returnKey === "") return false;
  try {
    const response = await fetch(new URL("return", location.href), {
      method: "POST",
      headers: { Authorization: `Bearer ${returnKey}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return response.ok;
  } catch {
    return false; // the server does not answer
  }
}

/** `fetch`, repeated with the cookie restored if the server refuses access. */
export async function fetchWithAccess(address: string): Promise<Response> {
  const response = await fetch(address);
  return response.status === 403 && (await restoreAccess()) ? fetch(address) : response;
}
