// Restores access to the server after the browser has lost the cookie (Chromium: a restart of its network process).
const TIMEOUT_MS = 5000; // a server that does not respond must not block reconnecting

let returnKey = ""; // only in memory, so that it is lost when the page is closed

export function setReturnKey(key: string): void {
  returnKey = key;
}

/** Requests the cookie again; returns whether the server has set the cookie. */
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
    return false; // the server does not respond
  }
}

/** Calls `fetch`; if the server denies access (status 403), restores the cookie and calls `fetch` again. */
export async function fetchWithAccess(address: string): Promise<Response> {
  const response = await fetch(address);
  return response.status === 403 && (await restoreAccess()) ? fetch(address) : response;
}
