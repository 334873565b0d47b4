"use strict";
// Sorts by the column whose heading is pressed, best first, and the other way round when pressed
// again. Cells have their rank; what has none stays last.
function sortableBoard() {
  const table = document.getElementById("board");
  const headings = [...table.tHead.rows[0].cells];
  const press = (heading, column) => {
    const first = heading.dataset.first;
    const turned = heading.getAttribute("aria-sort") === first;
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", turned === (first === "ascending") ? "descending" : "ascending");
    const rank = (row) => row.cells[column].dataset.rank;
    const order = (a, b) => {
      const [one, other] = [rank(a), rank(b)];
      if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
      return turned ? other - one : one - other;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => press(heading, column));
    heading.append(button);
  });
}
sortableBoard();
