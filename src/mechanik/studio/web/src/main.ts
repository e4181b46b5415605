// Ties the parts together: the store knows, the view draws, hands touch, panels show numbers.
import { Hands } from "./hands/hands";
import { Panels } from "./panels/panels";
import { Store } from "./store";
import { View } from "./view/view";
import "./style.css";

const store = new Store();
const view = new View(document.querySelector<HTMLElement>("#view")!, store);
const hands = new Hands(view, store);
const panels = new Panels(document.body, view, hands, store);
hands.on("help", () => panels.openHelp());
hands.onEscape(() => panels.closeAll());
store.wire.open();

declare global {
  interface Window {
    /** The page's own state, for measurements and for people who like the console. */
    mechanik: { store: Store; view: View; hands: Hands; panels: Panels };
  }
}
window.mechanik = { store, view, hands, panels };
