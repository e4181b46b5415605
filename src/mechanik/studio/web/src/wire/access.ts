// Access to the server when the browser has lost its cookie, as it does when its network process starts anew.
const PATIENCE = 5000; // ms for the answer, so that a server that hangs does not stop the tries to reconnect

let returnKey = ""; // in memory alone: it ends with this page

export function keepReturnKey(key: string): void {
  returnKey = key;
}

/** Ask for the cookie again; whether the server has given it. */
export async function restoreAccess(): Promise<boolean> {
  if (returnKey === "") return false;
  try {
    const answer = await fetch(new URL("return", location.href), {
      method: "POST",
      headers: { Authorization: `Bearer ${returnKey}` },
      signal: AbortSignal.timeout(PATIENCE),
    });
    return answer.ok;
  } catch {
    return false; // the server does not answer
  }
}

/** `fetch`, once more with the cookie restored if the server refuses. */
export async function fetchWithAccess(address: string): Promise<Response> {
  const answer = await fetch(address);
  return answer.status === 403 && (await restoreAccess()) ? fetch(address) : answer;
}
