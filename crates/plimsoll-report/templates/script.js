"use strict";
// Niceties only: everything is readable without.
addEventListener("beforeprint", () => {
  for (const d of document.querySelectorAll("details:not([open])")) {
    d.open = true;
    d.dataset.forPrint = "";
  }
});
addEventListener("afterprint", () => {
  for (const d of document.querySelectorAll("details[data-for-print]")) {
    d.open = false;
    delete d.dataset.forPrint;
  }
});
// The contents lead into what is folded.
addEventListener("hashchange", () => {
  const folded = document.getElementById(location.hash.slice(1))?.closest("details");
  if (folded) folded.open = true;
});
function addCopyButtons() {
  for (const box of document.querySelectorAll(".command")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(box.querySelector("code").textContent).then(() => {
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      }, () => { button.remove(); });
    });
    box.append(button);
  }
}
addCopyButtons();
