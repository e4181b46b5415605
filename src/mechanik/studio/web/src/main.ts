// Connects the parts: the store has the state, the view draws, the controller handles pointers and keys, panels show
// numbers.
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
    /** The page's own state, for measurements and for people who like the console. */
    mechanik: { store: Store; view: View; controller: InteractionController; panels: Panels };
  }
}
window.mechanik = { store, view, controller, panels };
