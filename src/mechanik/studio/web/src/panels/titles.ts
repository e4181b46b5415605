// What stands at the top: the scene, the mechanism as the start page calls it, or its own name.
import type { Model } from "../messages";
import type { Store } from "../store";

export function titleOf({ scene, model, welcome }: Store): string {
  return scene?.title || (model ? modelTitle(model, welcome?.entries ?? []) : "");
}

/** Mechanisms of the gallery come under plain names; the start page has better ones. */
export function modelTitle(model: Model, entries: { kind: string; name: string; title: string }[]): string {
  const entry = entries.find(({ kind, name }) => kind === "gallery" && name.replaceAll("_", " ") === model.title);
  return entry?.title || model.title || model.name;
}
