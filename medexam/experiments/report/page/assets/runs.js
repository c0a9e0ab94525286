"use strict";

// The list of runs: only rows that hold every word are shown, and only shown ones are chosen together.
(() => {
  const rows = [...document.querySelectorAll("tbody tr")];
  const field = document.getElementById("filter");
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word));
      if (row.hidden) row.querySelector("input").checked = false;
    }
    document.querySelector(".count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} runs`;
  };
  field.addEventListener("input", filter);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  const all = document.getElementById("all");
  all.hidden = false;
  all.addEventListener("click", () => {
    for (const row of rows) row.querySelector("input").checked = !row.hidden;
  });
  filter();
})();
