"use strict";

// The runs against a baseline that the reader chooses, on the questions that every run has scored. It counts as
// `medexam compare` does: an unanswered question is not right, p is McNemar's exact test, two-sided, after Holm.
page.against = (index) => {
  const { element } = page;
  const names = index.runs;
  const rows = [...document.querySelectorAll("#scores figure:first-of-type .sortable tbody tr")];
  const SCORED = "rwu";
  const places = index.keys.map((_, at) => at).filter((at) => index.outcomes.every((of) => SCORED.includes(of[at])));
  if (names.length < 2 || !places.length) return;

  const logFactorial = [0];
  for (let n = 1; n <= places.length; n += 1) logFactorial.push(logFactorial[n - 1] + Math.log(n));
  const mcnemar = (lost, gained) => {
    const n = lost + gained;
    let tail = 0;
    for (let k = 0; k <= Math.min(lost, gained); k += 1) {
      tail += Math.exp(logFactorial[n] - logFactorial[k] - logFactorial[n - k] - n * Math.LN2);
    }
    return Math.min(1, 2 * tail);
  };

  const holm = (found) => {
    const sorted = [...found].sort((a, b) => a.p - b.p);
    let highest = 0;
    sorted.forEach((each, rank) => {
      highest = Math.max(highest, Math.min(1, each.p * (sorted.length - rank)));
      each.adjusted = highest;
    });
  };

  const compare = (baseline) => {
    const found = names.map((name, run) => {
      let [lost, gained] = [0, 0];
      for (const at of places) {
        const [before, now] = [index.outcomes[baseline][at] === "r", index.outcomes[run][at] === "r"];
        if (before && !now) lost += 1;
        if (!before && now) gained += 1;
      }
      return { name, run, lost, gained, p: mcnemar(lost, gained) };
    }).filter(({ run }) => run !== baseline);
    holm(found);
    return found;
  };

  const body = element("tbody");
  const show = (baseline) => {
    body.replaceChildren(...compare(baseline).map(({ name, lost, gained, adjusted }) => {
      const points = (100 * (gained - lost)) / places.length;
      const texts = [name, `${points >= 0 ? "+" : ""}${points.toFixed(1)}`, gained, lost,
        adjusted < 0.001 ? "<0.001" : adjusted.toFixed(3)];
      return element("tr", {}, ...texts.map((text, at) => element("td", { textContent: text,
        className: [at ? "number" : "", at === 1 && adjusted < 0.05 ? "best" : ""].join(" ") })));
    }));
    rows.forEach((row, run) => row.cells[0].classList.toggle("base", run === baseline));
  };

  const select = element("select", {}, ...names.map((name, run) => element("option", { value: run, textContent: name })));
  select.addEventListener("change", () => show(Number(select.value)));
  const heads = ["Run", "Difference, pp", "Gained", "Lost", "p"].map((text, at) =>
    element("th", { textContent: text, scope: "col", className: at ? "number" : "" }));
  const place = document.getElementById("against");
  const wide = element("div", { className: "wide", tabIndex: 0, role: "group", "aria-label": "Against the baseline" },
    element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
  place.append(
    element("label", { className: "baseline" }, element("span", { textContent: "Against the baseline" }), select),
    wide,
    element("p", { className: "quiet", textContent: `Accuracy in percentage points on the ${places.length.toLocaleString("en")} `
      + "questions that every run has scored; gained and lost: questions. p: McNemar's exact test, adjusted by Holm's "
      + "method. Bold: p < 0.05." }));
  copying.add(wide);
  place.hidden = false;
  show(0);
};
