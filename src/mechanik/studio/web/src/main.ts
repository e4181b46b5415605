// Entry point of the page: creates the store (state), the view (drawing), the controller (pointers and keys) and the
// panels.
import { InteractionController } from "./interaction/controller";
import { Panels } from "./panels/panels";
import { Store } from "./store";
import { View } from "./view/view";
import "./style.css";

const store = new Store();
const view = new View(document.querySelector<HTMLElement>("#view")!, store);
const controller = new InteractionController(view, store);
const panels = new Panels(document.body, view, controller, store);
controller.on("help", () => panels.openHelp());
controller.onEscape(() => panels.closeAll());
store.connection.open();

declare global {
  interface Window {
    /** Main objects of the page, for tests, measurements and the browser console. */
    mechanik: { store: Store; view: View; controller: InteractionController; panels: Panels };
  }
}
window.mechanik = { store, view, controller, panels };
