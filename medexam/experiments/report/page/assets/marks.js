"use strict";

// Marks and comments of the reader's own. They stay in this browser, where it keeps anything for a file, and are saved
// as a sheet with the columns of `medexam audit`, which imports it: a code says run, question and what was answered.
page.marks = (() => {
  const { element } = page;
  const ASPECTS = ["correctness", "completeness"];
  const COLUMNS = ["code", "question", "reference", "answer", ...ASPECTS, "comment", "run_folder"];
  const STORE = `medexam marks ${document.title}`;
  let rows = new Map();
  try {
    rows = new Map(JSON.parse(localStorage.getItem(STORE) ?? "[]"));
  } catch {
    rows = new Map();
  }
  const save = element("button", { type: "button" });
  const count = () => {
    save.textContent = `Save ${rows.size} mark${rows.size === 1 ? "" : "s"}`;
    save.hidden = !rows.size;
  };
  count();

  save.addEventListener("click", () => {
    const sheet = copying.csv([COLUMNS, ...[...rows.values()].map((row) => COLUMNS.map((name) => row[name] ?? ""))]);
    const link = element("a", { href: URL.createObjectURL(new Blob(["\ufeff", sheet, "\r\n"], { type: "text/csv" })),
      download: "marks.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  const textOf = (item, answer) => {
    const wording = item.wordings[answer.wording];
    const options = wording.options ?? [];
    const option = (printed) => options.filter(([number]) => number === printed).map((each) => each.join(". ")).join("");
    return {
      question: [wording.clinical_case, wording.stem, ...options.map((each) => each.join(". "))].filter(Boolean).join("\n"),
      reference: option(wording.gold) || String(wording.gold ?? ""),
      answer: page.replyOf(answer) ?? (option(answer.answer) || String(answer.answer ?? "")),
    };
  };

  // The controls for what one run answered to one question.
  const controls = (item, run, answer) => {
    const code = `${run.id}/${item.key}/${answer.digest ?? ""}`;
    const change = (field, value) => {
      const row = { code, run_folder: run.folder, ...textOf(item, answer), ...rows.get(code), [field]: value };
      if ([...ASPECTS, "comment"].some((each) => row[each])) rows.set(code, row);
      else rows.delete(code);
      count();
      try {
        localStorage.setItem(STORE, JSON.stringify([...rows]));
      } catch {
        return;
      }
    };
    const known = rows.get(code) ?? {};
    const selects = ASPECTS.map((aspect) => {
      const select = element("select", {}, ...["", 1, 2, 3, 4, 5].map((mark) =>
        element("option", { value: mark, textContent: mark || "-" })));
      select.value = known[aspect] ?? "";
      select.addEventListener("change", () => change(aspect, select.value));
      return element("label", {}, `${aspect} `, select);
    });
    const comment = element("input", { value: known.comment ?? "", placeholder: "comment", "aria-label": "Comment" });
    comment.addEventListener("input", () => change("comment", comment.value));
    return element("p", { className: "own" }, "Your marks, 1 to 5: ", ...selects, comment);
  };

  return { controls, save };
})();
