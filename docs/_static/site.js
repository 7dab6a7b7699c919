// What the theme leaves to be desired for the keyboard and for screen readers.
"use strict";

function reachable() {
  // A region that scrolls can be scrolled by keyboard.
  const regions = document.querySelectorAll("pre, .table-wrapper, div.cell_output, div.output");
  for (const each of regions) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "Site");
  document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
  // Sphinx lays out the lines of a signature as a list of definitions, which it is not.
  for (const each of document.querySelectorAll("dt.sig dl, dt.sig dl > dd")) {
    each.setAttribute("role", "presentation");
  }
  reachable();
});
window.addEventListener("load", reachable);
window.addEventListener("resize", reachable);
