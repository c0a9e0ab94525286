"use strict";

// Tables are copied as Markdown, LaTeX or CSV, in the order that they are sorted in, and the report as its command.
const copying = (() => {
  const clean = (cell) => cell.textContent.replace(/\s+/g, " ").trim();
  const read = (table) => [table.tHead.rows[0], ...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => (
    { text: clean(cell), best: cell.classList.contains("best"), number: cell.classList.contains("number") })));

  const markdown = ([head, ...body]) => {
    const line = (cells) => `| ${cells.join(" | ")} |`;
    const cell = ({ text, best }) => (best ? `**${text}**` : text).replace(/[\\|`<]/g, "\\$&");
    return [line(head.map(cell)), line(head.map(({ number }) => (number ? "---:" : "---"))),
      ...body.map((row) => line(row.map(cell)))].join("\n");
  };

  const SPECIAL = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
  const latex = ([head, ...body]) => {
    const cell = ({ text, best }) => {
      const safe = text.replace(/[\\~^&%$#_{}]/g, (sign) => SPECIAL[sign] ?? `\\${sign}`).replace(/^\[/, "{[}");
      return best ? `\\textbf{${safe}}` : safe;
    };
    const line = (row) => `${row.map(cell).join(" & ")} \\\\`;
    return [`\\begin{tabular}{${head.map(({ number }) => (number ? "r" : "l")).join("")}}`, "\\toprule", line(head),
      "\\midrule", ...body.map(line), "\\bottomrule", "\\end{tabular}"].join("\n");
  };

  // No cell is a formula to a spreadsheet.
  const FORMULA = /^[\s']*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
  const NUMBER = /^[-+]?[\d.,]*(?: \[[-\d., ]+\])?$/;
  const csv = (rows) => rows.map((row) => row.map((text) => {
    const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
    return `"${safe.replaceAll("\"", "\"\"")}"`;
  }).join(",")).join("\r\n");

  const put = async (text, button) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const name = button.textContent;
    button.textContent = "copied";
    setTimeout(() => { button.textContent = name; }, 900);
  };

  const FORMS = { Markdown: markdown, LaTeX: latex, CSV: (rows) => csv(rows.map((row) => row.map(({ text }) => text))) };
  const add = (wide, command) => {
    const place = document.createElement("p");
    place.className = "copy";
    place.append("Copy as ");
    const offer = (name, text) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => put(text(), button));
      place.append(button, " ");
    };
    const table = wide.querySelector("table");
    for (const [name, form] of Object.entries(FORMS)) offer(name, () => form(read(table)));
    if (command) offer("command", () => command);
    wide.after(place);
  };
  document.querySelectorAll("figure > .wide").forEach((wide, at) =>
    add(wide, at ? "" : document.querySelector("main").dataset.command));
  return { add, csv };
})();
