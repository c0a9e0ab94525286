"use strict";

// Tables sort by their headers: a button in each, numbers from the highest first, words from A first, the third time
// the order that they came in. What has no number stands last either way.
(() => {
  const words = new Intl.Collator("en", { numeric: true });
  const NUMBER = /[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?/i;
  const NEXT = { number: { none: "descending", descending: "ascending", ascending: "none" },
    word: { none: "ascending", ascending: "descending", descending: "none" } };

  const readNumber = (text) => {
    const found = NUMBER.exec(text);
    if (!found) return null;
    const value = Number(found[0].replaceAll(",", ""));
    return text.startsWith("<") ? value - 1e-9 : value;
  };

  const compare = (kind, direction) => (a, b) => {
    if (kind === "word") return direction * words.compare(a.text, b.text);
    if (a.number === null || b.number === null) return (a.number === null) - (b.number === null);
    return direction * (a.number - b.number);
  };

  const sort = (table, rows, headers, at, kind) => {
    const order = NEXT[kind][headers[at].getAttribute("aria-sort")];
    headers.forEach((header, column) => header.setAttribute("aria-sort", column === at ? order : "none"));
    let sorted = rows;
    if (order !== "none") {
      const read = rows.map((row) => {
        const text = row.cells[at].textContent.trim();
        return { row, text, number: readNumber(text) };
      });
      sorted = read.sort(compare(kind, order === "ascending" ? 1 : -1)).map((each) => each.row);
    }
    table.tBodies[0].append(...sorted);
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) continue;
    const headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, at) => {
      const kind = header.classList.contains("number") ? "number" : "word";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = header.textContent;
      button.addEventListener("click", () => sort(table, rows, headers, at, kind));
      header.setAttribute("aria-sort", "none");
      header.replaceChildren(button);
    });
  }
})();
