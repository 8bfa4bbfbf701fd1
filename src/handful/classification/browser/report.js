// The page of a report: it shows a labelled batch, and nothing on it can be changed.

import { byId } from "./elements.js";
import { draw } from "./drawing.js";
import { VIEWS, filter, listenToGroups, listenToSearch } from "./filter.js";
import { additions } from "./additions.js";
import { startAbout } from "./about.js";
import { icon } from "./colours.js";
import { listenToKeys } from "./keys.js";
import { openFirst, startList, startRows } from "./list.js";
import { openMap, startMap } from "./map_box.js";
import { startPanel } from "./panel.js";
import { startSide } from "./side.js";
import { adopt } from "./state.js";

adopt(JSON.parse(byId("data").textContent ?? ""));
const firstView = VIEWS.find(({ test, order }) => order().some(test));
if (firstView !== undefined) filter.show = firstView.key;
additions.icon = icon;
startSide();
startAbout();
startList();
startPanel();
startMap();
startRows();
listenToGroups();
listenToSearch(openFirst);
listenToKeys(() => ({ m: openMap }));
draw();
document.documentElement.dataset.ready = "yes";
