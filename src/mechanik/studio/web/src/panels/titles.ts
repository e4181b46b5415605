// Title of the page: title of the scene, of the gallery entry or of the mechanism.
import type { Model } from "../messages";
import type { Store } from "../store";

export function pageTitle({ scene, model, welcome }: Store): string {
  return scene?.title || (model ? modelTitle(model, welcome?.entries ?? []) : "");
}

/** Title of a model; a mechanism of the gallery has the title of its entry on the start page. */
export function modelTitle(model: Model, entries: { kind: string; name: string; title: string }[]): string {
  const entry = entries.find(({ kind, name }) => kind === "gallery" && name.replaceAll("_", " ") === model.title);
  return entry?.title || model.title || model.name;
}
