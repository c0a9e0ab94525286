"use strict";

// The page's script: tables that sort and are copied, runs against a baseline, and the browser of single questions.
// Text from exams and models goes into the page as text and never as markup.
(() => {
  const element = (tag, properties = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };
  const button = (text, act, properties = {}) => {
    const made = element("button", { type: "button", textContent: text, ...properties });
    made.addEventListener("click", act);
    return made;
  };
  const svg = (tag, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const later = (act, wait) => {
    let waiting;
    return () => {
      clearTimeout(waiting);
      waiting = setTimeout(act, wait);
    };
  };
  const english = (number) => number.toLocaleString("en");
  const collator = new Intl.Collator("en", { numeric: true });

  // The address holds what a reader chose, so that it can be found again and passed on; a place alone is no choice.
  const readAddress = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  let address = readAddress();
  const remember = (name, value) => {
    if (value) address.set(name, value);
    else address.delete(name);
    try {
      history.replaceState(null, "", `#${address}`);
    } catch {
      return; // some browsers refuse that for a file
    }
  };

  // Tables

  const numberOf = (cell) => {
    if (cell.dataset.value) return Number(cell.dataset.value);
    const found = /[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?/i.exec(cell.textContent);
    return found ? Number(found[0].replaceAll(",", "")) - (cell.textContent.trim().startsWith("<") ? 1e-9 : 0) : null;
  };

  const ORDERS = { number: ["descending", "ascending"], word: ["ascending", "descending"] };
  const compare = (at, kind, direction) => (a, b) => {
    if (kind === "word") return direction * collator.compare(a.cells[at].textContent, b.cells[at].textContent);
    const [first, second] = [numberOf(a.cells[at]), numberOf(b.cells[at])];
    if (first === null || second === null) return (first === null) - (second === null);
    return direction * (first - second);
  };

  // Numbers sort from the highest first, words from A first, the third click restores; no number stands last either way.
  const sortable = (table, name) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) return;
    const headers = [...table.tHead.rows[0].cells];
    const sort = (at, order) => {
      headers.forEach((header, column) => header.setAttribute("aria-sort", column === at && order ? order : "none"));
      const kind = headers[at].classList.contains("number") ? "number" : "word";
      const sorted = order ? [...rows].sort(compare(at, kind, order === "ascending" ? 1 : -1)) : rows;
      table.tBodies[0].append(...sorted);
    };
    headers.forEach((header, at) => {
      const orders = ORDERS[header.classList.contains("number") ? "number" : "word"];
      const click = () => {
        const order = orders[orders.indexOf(header.getAttribute("aria-sort")) + 1];
        sort(at, order);
        remember(`sort.${name}`, order && `${at} ${order}`);
      };
      header.setAttribute("aria-sort", "none");
      header.replaceChildren(button(header.textContent, click));
    });
    const [at, order] = (address.get(`sort.${name}`) ?? "").split(" ");
    if (headers[at] && ["ascending", "descending"].includes(order)) sort(Number(at), order);
  };

  // Scores as points on a scale, with their intervals and the chance level in the column behind.
  const drawStrips = (table, column) => {
    const rows = [...table.tBodies[0].rows].map((row) => row.cells[column]);
    const isChance = table.tHead.rows[0].cells[column + 1]?.textContent === "Chance";
    const marks = rows.map((cell) => ({ cell, value: numberOf(cell), low: cell.dataset.low, high: cell.dataset.high,
      chance: isChance ? numberOf(cell.nextElementSibling) : null })).filter(({ value }) => value !== null);
    const all = marks.flatMap(({ value, low, high, chance }) => [value, low ?? value, high ?? value, chance ?? value]);
    const [least, most] = [Math.min(...all), Math.max(...all)];
    const steps = [1, 10, 100, 1000].flatMap((size) => [1, 2, 5].map((digit) => digit * size));
    const step = steps.find((each) => (most - least) / each <= 5) ?? most - least;
    const [first, last] = [Math.floor(least / step) * step, Math.ceil(most / step) * step];
    const place = (value) => `${((100 * (value - first)) / (last - first || step)).toFixed(2)}%`;
    const ticks = [];
    for (let tick = first; tick <= last; tick += step) ticks.push(tick);
    const line = (className, from, to, y1, y2) => svg("line", { class: className, x1: place(from), x2: place(to), y1, y2 });
    for (const { cell, value, low, high, chance } of marks) {
      cell.classList.add("charted");
      cell.prepend(svg("svg", { class: "scale", "aria-hidden": "true" },
        ...ticks.map((tick) => line("tick", tick, tick, 0, "100%")),
        ...(chance === null ? [] : [line("chance", chance, chance, 0, "100%")]),
        ...(low === undefined ? [] : [line("interval", low, high, "50%", "50%")]),
        svg("circle", { cx: place(value), cy: "50%", r: 5 })));
    }
    const foot = table.createTFoot().insertRow();
    foot.append(...[...rows[0].parentElement.cells].map(() => element("td")));
    foot.cells[column].append(svg("svg", { class: "scale", "aria-hidden": "true" }, ...ticks.map((tick) => {
      const label = svg("text", { x: place(tick), y: "1em" });
      label.textContent = tick;
      return label;
    })));
  };

  const put = async (text, from) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = element("textarea", { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      from.focus();
    }
    const name = from.textContent;
    from.textContent = "copied";
    setTimeout(() => { from.textContent = name; }, 900);
  };

  const textOf = (cell) => cell.textContent.replace(/\s+/g, " ").trim();
  const rowsOf = (table) => [table.tHead.rows[0], ...table.tBodies[0].rows].map((row) => [...row.cells]);

  const markdown = (table) => {
    const line = (cells) => `| ${cells.join(" | ")} |`;
    const write = (cell) => {
      const text = textOf(cell);
      return (cell.classList.contains("best") ? `**${text}**` : text).replace(/[\\|`<]/g, "\\$&");
    };
    const [head, ...body] = rowsOf(table);
    return [line(head.map(write)), line(head.map((cell) => (cell.classList.contains("number") ? "---:" : "---"))),
      ...body.map((row) => line(row.map(write)))].join("\n");
  };

  // A column a number: ends of intervals have columns of their own. No cell is a formula to a spreadsheet.
  const FORMULA = /^[\s']*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
  const NUMBER = /^[-+]?[\d.,]*$/;
  const csv = (rows) => rows.map((row) => row.map((text) => {
    const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
    return `"${safe.replaceAll("\"", "\"\"")}"`;
  }).join(",")).join("\r\n");
  const tableCsv = (table) => {
    const [head, ...body] = rowsOf(table);
    const parts = head.map((_, at) => (body.some((row) => row[at].dataset.low) ? ["value", "low", "high"] : ["value"]));
    const name = (cell, part) => textOf(cell) + (part === "value" ? "" : `_${part}`);
    const value = (cell, part) => cell.dataset[part] ?? (part === "value" ? textOf(cell) : "");
    return csv([head.map((cell, at) => parts[at].map((part) => name(cell, part))),
      ...body.map((row) => row.map((cell, at) => parts[at].map((part) => value(cell, part))))].map((row) => row.flat()));
  };

  const offerCopies = (wide, command) => {
    const table = wide.querySelector("table");
    const texts = { Markdown: () => markdown(table), CSV: () => tableCsv(table), ...(command && { command: () => command }) };
    wide.after(element("p", { className: "copy" }, "Copy as ", ...Object.entries(texts).flatMap(([name, text]) =>
      [button(name, (event) => put(text(), event.target)), " "])));
  };

  for (const table of document.querySelectorAll("table.strips")) {
    const column = table.querySelector("td[data-low]")?.cellIndex;
    if (column !== undefined) drawStrips(table, column);
  }
  for (const table of document.querySelectorAll("table.sortable")) sortable(table, table.closest("figure").id);
  document.querySelectorAll("figure > .wide").forEach((wide, at) =>
    offerCopies(wide, at ? "" : document.querySelector("main").dataset.command));

  // What is folded opens when the address or the printer asks for it, and tables say that they scroll.
  const openPlace = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", openPlace);
  openPlace();
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("#more details, .detail details")) folded.open = true;
  });
  const watcher = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const hint = target.parentElement.querySelector(".hint");
      if (hint) hint.hidden = target.scrollWidth <= target.clientWidth + 1;
    }
  });
  for (const wide of document.querySelectorAll(".wide")) watcher.observe(wide);

  // Runs against a baseline that the reader chooses, on the questions that every run has scored. It counts as
  // `medexam compare` does: an unanswered question is not right, p is McNemar's exact test, two-sided, after Holm.

  const showAgainst = ({ runs, every }) => {
    const outcomes = every ?? runs.map((run) => run.outcomes);
    const places = [...outcomes[0]].map((_, at) => at).filter((at) => outcomes.every((of) => "rwu".includes(of[at])));
    if (runs.length < 2 || !places.length) return;
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
    const pairs = (baseline) => {
      const found = runs.map(({ name }, run) => {
        let [lost, gained] = [0, 0];
        for (const at of places) {
          const [before, now] = [outcomes[baseline][at] === "r", outcomes[run][at] === "r"];
          if (before && !now) lost += 1;
          if (!before && now) gained += 1;
        }
        return { name, run, lost, gained, p: mcnemar(lost, gained) };
      }).filter(({ run }) => run !== baseline);
      for (const dataset of new Set(runs.map((run) => run.dataset))) {
        const family = found.filter(({ run }) => runs[run].dataset === dataset).sort((a, b) => a.p - b.p);
        let highest = 0;
        family.forEach((pair, rank) => {
          highest = Math.max(highest, Math.min(1, pair.p * (family.length - rank)));
          pair.adjusted = highest;
        });
      }
      return found;
    };
    const body = element("tbody");
    const show = (baseline) => body.replaceChildren(...pairs(baseline).map(({ name, lost, gained, adjusted }) => {
      const points = (100 * (gained - lost)) / places.length;
      const texts = [name, `${points >= 0 ? "+" : ""}${points.toFixed(1)}`, gained, lost,
        adjusted < 0.001 ? "<0.001" : adjusted.toFixed(3)];
      return element("tr", {}, ...texts.map((text, at) => element("td", { textContent: text,
        className: [at ? "number" : "", at === 1 && adjusted < 0.05 ? "best" : ""].join(" ").trim() })));
    }));
    const select = element("select", {}, ...runs.map(({ name }) => element("option", { textContent: name })));
    select.selectedIndex = Math.max(0, runs.findIndex(({ name }) => name === address.get("baseline")));
    select.addEventListener("change", () => {
      show(select.selectedIndex);
      remember("baseline", select.selectedIndex ? select.value : "");
    });
    const heads = ["Run", "Difference, pp", "Gained", "Lost", "p"].map((text, at) =>
      element("th", { textContent: text, scope: "col", className: at ? "number" : "" }));
    const wide = element("div", { className: "wide", tabIndex: 0, role: "group", "aria-label": "Against the baseline" },
      element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
    const place = document.getElementById("against");
    place.append(
      element("label", { className: "baseline" }, element("span", { textContent: "Against the baseline" }), select),
      wide,
      element("p", { className: "quiet", textContent: `Accuracy in percentage points on the ${english(places.length)} `
        + "questions that every run has scored; gained and lost: questions. p: McNemar's exact test, adjusted by Holm's "
        + "method over the runs of each data set and language. Bold: p < 0.05." }));
    offerCopies(wide, "");
    place.hidden = false;
    show(select.selectedIndex);
  };

  // One question with everything that the runs made of it

  const OUTCOMES = {
    r: { name: "right", sign: "\u2713" },
    w: { name: "wrong", sign: "\u2717" },
    u: { name: "unanswered", sign: "?" },
    f: { name: "failed", sign: "!" },
    m: { name: "not asked yet", sign: "\u2026" },
    a: { name: "answered", sign: "\u2022" },
    "-": { name: "not in this run", sign: "\u00a0" },
  };
  const mark = (outcome, run) => {
    const { name, sign } = OUTCOMES[outcome];
    return element("span", { className: `mark ${name.replaceAll(" ", "-")}`, title: run ? `${run}: ${name}` : name,
      textContent: sign, "aria-hidden": "true" });
  };
  const words = (className, text) => element("p", { className: `data ${className}`, dir: "auto", textContent: text });
  const rounded = (value, digits = 3) => (value === null || value === undefined ? "-" : value.toFixed(digits));
  const block = (title, text) => [element("h5", { textContent: title }),
    element("pre", { className: "data", dir: "auto", textContent: text })];
  const smallTable = (title, heads, rows) => [element("h5", { textContent: title }),
    element("table", { className: "small" },
      element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { textContent: text })))),
      element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((text) =>
        element("td", { className: "data", dir: "auto", textContent: text ?? "" }))))))];

  const replyOf = (answer) => {
    const replies = (answer?.calls ?? []).map((call) => call.reply).filter((reply) => reply !== undefined);
    return replies.join("\n\n") || answer?.reply || answer?.text || answer?.rationale || null;
  };

  // Marks and comments of the reader's own. They stay in this browser, where it keeps anything for a file, and are
  // saved as a sheet with the columns of `medexam audit`, which imports it: a code says run, question and answer.
  const ASPECTS = ["correctness", "completeness"];
  const COLUMNS = ["code", "question", "reference", "answer", ...ASPECTS, "comment", "run_folder"];
  const STORE = `medexam marks ${document.title}`;
  let ownMarks = new Map();
  try {
    ownMarks = new Map(JSON.parse(localStorage.getItem(STORE) ?? "[]"));
  } catch {
    ownMarks = new Map();
  }
  const saveMarks = button("", () => {
    const sheet = csv([COLUMNS, ...[...ownMarks.values()].map((row) => COLUMNS.map((name) => row[name] ?? ""))]);
    const link = element("a", { href: URL.createObjectURL(new Blob(["\ufeff", sheet, "\r\n"], { type: "text/csv" })),
      download: "marks.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  const countMarks = () => {
    saveMarks.textContent = `Save ${ownMarks.size} mark${ownMarks.size === 1 ? "" : "s"}`;
    saveMarks.hidden = !ownMarks.size;
  };
  countMarks();

  const markControls = (item, run, answer) => {
    const code = `${run.id}/${item.key}/${answer.digest ?? ""}`;
    const wording = item.wordings[answer.wording];
    const options = (wording.options ?? []).map((each) => each.join(". "));
    const option = (printed) => options.find((text) => text.startsWith(`${printed}. `)) ?? String(printed ?? "");
    const row = { code, run_folder: run.folder, reference: option(wording.gold), answer: replyOf(answer) ?? option(answer.answer),
      question: [wording.clinical_case, wording.stem, ...options].filter(Boolean).join("\n") };
    const change = (field, value) => {
      const changed = { ...row, ...ownMarks.get(code), [field]: value };
      if ([...ASPECTS, "comment"].some((each) => changed[each])) ownMarks.set(code, changed);
      else ownMarks.delete(code);
      countMarks();
      try {
        localStorage.setItem(STORE, JSON.stringify([...ownMarks]));
      } catch {
        return; // some browsers keep nothing for a file
      }
    };
    const stored = ownMarks.get(code) ?? {};
    const selects = ASPECTS.map((aspect) => {
      const select = element("select", {}, ...["", 1, 2, 3, 4, 5].map((value) =>
        element("option", { value, textContent: value || "-" })));
      select.value = stored[aspect] ?? "";
      select.addEventListener("change", () => change(aspect, select.value));
      return element("label", {}, `${aspect} `, select);
    });
    const comment = element("input", { value: stored.comment ?? "", placeholder: "comment", "aria-label": "Comment" });
    comment.addEventListener("input", () => change("comment", comment.value));
    return element("p", { className: "own" }, "Your marks, 1 to 5: ", ...selects, comment);
  };

  // Fields of a wording that stand elsewhere than in the list of further facts.
  const SHOWN = new Set(["language", "gold", "place", "stem", "clinical_case", "options", "image", "shown", "others"]);

  const optionList = (wording, choices) => element("ol", { className: "options" }, ...wording.options.map(([printed, text]) => {
    const isGold = printed === wording.gold || wording.others.includes(printed);
    return element("li", { className: isGold ? "gold" : "" },
      element("span", { className: "printed", textContent: `${printed}.` }),
      element("span", { className: "data", dir: "auto", textContent: text }),
      element("span", { className: "chips" },
        isGold ? element("strong", { className: "chip right", textContent: "\u2713 right answer" }) : null,
        ...choices.filter(({ answer }) => answer === printed).map(({ name }) =>
          element("span", { className: "chip", textContent: name }))));
  }));

  const wordingPart = (wording, at, item, runs) => {
    const part = element("section", { className: "wording", lang: wording.language });
    if (item.wordings.length > 1) part.append(element("h4", { textContent: `Asked in ${wording.language}`, lang: "en" }));
    if (wording.clinical_case) part.append(words("case", wording.clinical_case));
    if (wording.stem !== undefined) part.append(words("stem", wording.stem));
    if (item.picture && at === 0) {
      part.append(element("img", { className: "asked", src: item.picture, alt: `Picture ${wording.image ?? ""}` }));
    } else if (wording.image && !item.picture) part.append(words("quiet", `Refers to a picture that is not in this page: ${wording.image}`));
    for (const [title, text] of wording.shown ?? []) part.append(...block(title, text));
    if (wording.options) {
      part.append(optionList(wording, item.answers.flatMap((answer, run) =>
        (answer?.wording === at ? [{ name: runs[run].name, answer: answer.answer }] : []))));
    }
    for (const [name, value] of Object.entries(wording)) {
      if (SHOWN.has(name)) continue;
      part.append(words("quiet", `${name.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`));
    }
    return part;
  };

  // Shares of the probability, as a softmax of the scores gives them.
  const scoresTable = (answer, gold) => {
    const known = answer.scores.map(([, score]) => score).filter((score) => score !== null);
    const best = Math.max(...known);
    const whole = known.reduce((sum, score) => sum + Math.exp(score - best), 0);
    const unit = [answer.score_unit, answer.score_norm && `norm ${answer.score_norm}`].filter(Boolean).join(", ");
    const rows = answer.scores.map(([printed, score]) => [`${printed}${printed === gold ? " \u2713" : ""}`, rounded(score),
      score === null ? "-" : `${((100 * Math.exp(score - best)) / whole).toFixed(1)} %`]);
    return smallTable(`Option scores${unit ? ` (${unit})` : ""}`, ["Option", "Score", "Share"], rows);
  };

  const passagesTable = ({ passages, passages_cut: cut }) => {
    if (!passages.length) return [words("quiet", "No passage was found.")];
    const judged = passages.some((each) => each.length > 3);
    return [...smallTable("Passages, most relevant first", ["Passage", "Source", "Score", ...(judged ? ["Verdict"] : [])],
      passages.map(([id, source, score, kept]) => [id, source, rounded(score), ...(judged ? [kept ? "kept" : "dropped"] : [])])),
    ...(cut ? [words("quiet", `${cut} characters were cut to fit the context.`)] : [])];
  };

  // What the model looked up itself, a row for each query.
  const roundsTable = (rounds) => {
    const rows = rounds.flatMap((queries, at) => queries.map(([query, answer, passages]) =>
      [`${at + 1}`, query, answer ?? "-", passages.join(", ")]));
    return rows.length ? smallTable("What the model looked up", ["Round", "Query", "Answer from the passages", "Passages"], rows)
      : [words("quiet", "The model wrote no query.")];
  };

  const facts = (answer) => {
    const found = (answer.measures ?? []).map(([name, value]) => `${name} ${value}`);
    if (answer.cited !== undefined) found.push(answer.cited ? `cites passage ${answer.cited}` : "cites no passage");
    if (answer.supported !== undefined) found.push(`the passages ${answer.supported ? "" : "do not "}support the answer`);
    if (answer.finish_reason) found.push(`finished by ${answer.finish_reason}`);
    if (answer.prompt_tokens !== undefined) found.push(`${answer.prompt_tokens} prompt tokens`);
    if (answer.completion_tokens !== undefined) found.push(`${answer.completion_tokens} completion tokens`);
    if (answer.thinking_tokens) found.push(`${answer.thinking_tokens} of them thinking`);
    if (answer.latency_s !== undefined) found.push(`${rounded(answer.latency_s, 2)} s, waiting included`);
    return found.join(" \u00b7 ");
  };

  const ROLES = { system: "System", user: "User", assistant: "Assistant", developer: "Developer", tool: "Tool" };
  const turnPart = ([role, text], received) => element("div", { className: `turn ${role}${received ? " received" : ""}` },
    element("span", { className: "role", textContent: received ? "Reply" : ROLES[role] ?? role }),
    element("div", { className: "data", dir: "auto", textContent: text }));

  // What was sent and received in each call, as chat turns. Of a long prompt the last turn of the user stands open.
  const callParts = (calls, turns) => calls.flatMap((call, at) => {
    const made = [];
    const again = at > 0 && String(call.turns) === String(calls[at - 1].turns);
    if (calls.length > 1) {
      made.push(element("h5", { textContent: `Call ${at + 1} of ${calls.length}${again ? ", the same prompt" : ""}` }));
    }
    if (!again) {
      const sent = call.turns.map((place) => turns[place]);
      const last = Math.max(sent.map(([role]) => role).lastIndexOf("user"), 0);
      const earlier = sent.slice(0, last).map((turn) => turnPart(turn, false));
      if (earlier.length) {
        made.push(element("details", { className: "earlier" }, element("summary", { textContent:
          earlier.length === 1 ? "1 turn before" : `${earlier.length} turns before` }), ...earlier));
      }
      made.push(...sent.slice(last).map((turn) => turnPart(turn, false)));
    }
    if (call.reply !== undefined) made.push(turnPart(["assistant", call.reply], true));
    return made;
  });

  const runPart = (run, letter, item, answer, turns, isOpen) => {
    const why = answer.reason ? ` (${answer.reason.replaceAll("_", " ")})` : "";
    const summary = element("summary", {}, mark(letter), element("span", { className: "name", textContent: run.name }),
      element("span", { className: "said", textContent:
        `${answer.answer === undefined ? "" : `${answer.answer}, `}${OUTCOMES[letter].name}${why}` }));
    const inside = element("div", { className: "inside" });
    if (facts(answer)) inside.append(words("quiet", facts(answer)));
    if (answer.failure) inside.append(...block("Failure", answer.failure));
    if (answer.text !== undefined) inside.append(...block("Answer", answer.text));
    if (answer.calls) inside.append(...callParts(answer.calls, turns));
    if (answer.rationale) inside.append(...block("Rationale", answer.rationale));
    if (answer.reply !== undefined) inside.append(...block("Reply", answer.reply));
    if (answer.scores) inside.append(...scoresTable(answer, item.wordings[answer.wording].gold));
    if (answer.rounds) inside.append(...roundsTable(answer.rounds));
    if (answer.passages) inside.append(...passagesTable(answer));
    if (answer.status === "answered") inside.append(markControls(item, run, answer));
    if (!inside.childElementCount) return element("div", { className: "run plain" }, ...summary.childNodes);
    return element("details", { className: "run", open: isOpen }, summary, inside);
  };

  // All replies to one question in columns; words that the first one does not hold are marked.
  let areColumnsOpen = false;
  const columnsPart = (item, runs) => {
    const replies = item.answers.flatMap((answer, run) => (replyOf(answer) === null ? [] : [[runs[run].name, replyOf(answer)]]));
    if (replies.length < 2) return null;
    const first = new Set(replies[0][1].split(/\s+/));
    const column = ([name, reply], at) => element("div", {}, element("h5", { textContent: name }),
      element("div", { className: "data reply", dir: "auto" }, ...reply.split(/(\s+)/).map((word) =>
        (at === 0 || !word.trim() || first.has(word) ? word : element("mark", { textContent: word })))));
    const made = element("details", { className: "run beside", open: areColumnsOpen },
      element("summary", { textContent: `${replies.length} replies in columns; marked: what the first does not say` }),
      element("div", { className: "columns", tabIndex: 0, role: "group", "aria-label": "Replies" }, ...replies.map(column)));
    made.addEventListener("toggle", () => { areColumnsOpen = made.open; });
    return made;
  };

  const OPEN_RUNS = 3;
  const detail = (item, turns, runs, at, place) => {
    const asked = item.answers.flatMap((answer, run) => (answer === null ? [] : [run]));
    return element("article", {},
      element("h3", { className: "data", textContent: item.key }),
      words("quiet", [place, item.wordings[0].place.exam].filter(Boolean).join(" \u00b7 ")),
      ...item.wordings.map((wording, which) => wordingPart(wording, which, item, runs)),
      element("h4", { textContent: asked.length === 1 ? "Answer" : `Answers of ${asked.length} runs` }),
      columnsPart(item, runs),
      ...asked.map((run) => runPart(runs[run], runs[run].outcomes[at], item, item.answers[run], turns,
        asked.length <= OPEN_RUNS || run === asked[0])));
  };

  // The browser: filters, a list that holds only the rows in sight, and the question that is chosen

  const ROW = 52;
  const SPARE = 6;
  const AGREEMENTS = [["", "any"], ["flipped", "flipped: some right, some not"], ["all", "right in every run"],
    ["none", "right in no run"]];
  const fold = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

  const browse = ({ questions, turns, index: { runs, facets } }) => {
    const root = document.getElementById("browser");
    const letters = (at) => runs.map(({ outcomes }) => outcomes[at]);
    const place = (at) => [...facets.map(({ of }) => of[at]),
      questions[at].wordings[0].place.number && `question ${questions[at].wordings[0].place.number}`]
      .filter((part) => part !== null && part !== undefined && part !== "").join(" \u00b7 ");
    const agrees = (at, wanted) => {
      const scored = letters(at).filter((letter) => "rwu".includes(letter));
      const right = scored.filter((letter) => letter === "r").length;
      if (wanted === "flipped") return right > 0 && right < scored.length;
      return scored.length > 0 && right === (wanted === "all" ? scored.length : 0);
    };

    // What is searched: stems, cases, options and keys, and on request replies and prompts; read when it is needed.
    const shallow = questions.map(() => null);
    const deep = questions.map(() => null);
    const searched = (at, isDeep) => {
      const { key, wordings, answers } = questions[at];
      shallow[at] ??= fold([key, ...wordings.flatMap(({ clinical_case: told, stem, options }) =>
        [told, stem, ...(options ?? []).map(([, text]) => text)])].filter(Boolean).join("\n"));
      if (!isDeep) return shallow[at];
      const calls = answers.flatMap((answer) => answer?.calls ?? []);
      deep[at] ??= fold([...answers.map(replyOf), ...answers.map((answer) => answer?.rationale),
        ...[...new Set(calls.flatMap((call) => call.turns))].map((turn) => turns[turn][1])].filter(Boolean).join("\n"));
      return `${shallow[at]}\n${deep[at]}`;
    };

    let shown = [];
    let chosen = -1;
    const filters = [];
    const select = (name, label, choices, fits) => {
      const made = element("select", {}, ...choices.map(([value, text]) => element("option", { value, textContent: text })));
      made.addEventListener("change", () => {
        remember(name, made.value === choices[0][0] ? "" : made.value);
        filter();
      });
      filters.push({ name, made, fits, first: choices[0][0] });
      return element("label", {}, element("span", { textContent: label }), made);
    };
    const labels = facets.flatMap(({ name, of }) => {
      const values = [...new Set(of.filter((value) => value !== null).map(String))].sort(collator.compare);
      return values.length < 2 ? [] : [select(name, name, [["", "any"], ...values.map((value) => [value, value])],
        (value, at) => String(of[at]) === value)];
    });
    if (runs.length > 1) {
      labels.push(select("runs", "Runs", AGREEMENTS, (value, at) => agrees(at, value)),
        select("order", "Order", [["flipped", "flipped first"], ["exam", "as in the exams"]], () => true));
    }
    labels.push(...runs.map(({ name, outcomes }) => {
      const found = Object.keys(OUTCOMES).filter((letter) => outcomes.includes(letter));
      const both = found.includes("w") && found.includes("u") ? [["wu", "wrong or unanswered"]] : [];
      return select(`run.${name}`, name, [["", "any"], ...found.map((letter) => [letter, OUTCOMES[letter].name]), ...both],
        (value, at) => value.includes(outcomes[at]));
    }));

    const search = element("input", { type: "search", placeholder: "words of the question, or a key" });
    search.addEventListener("input", later(() => {
      remember("search", search.value);
      filter();
    }, 120));
    const isDeep = element("input", { type: "checkbox" });
    isDeep.addEventListener("change", () => {
      remember("deep", isDeep.checked ? "1" : "");
      filter();
    });
    const count = element("output", { className: "count", "aria-live": "polite" });
    const previous = button("\u2190 Previous", () => choose(chosen - 1), { disabled: true });
    const next = button("Next \u2192", () => choose(chosen + 1), { disabled: true });
    const reset = button("Clear filters", () => {
      for (const name of [...filters.map((each) => each.name), "search", "deep"]) remember(name, "");
      readFilters();
      filter();
    });
    const space = element("div", { className: "space" });
    const list = element("div", { className: "list", tabIndex: 0, role: "listbox", "aria-label": "Questions" }, space);
    const pane = element("div", { className: "detail", role: "region", "aria-label": "Question", tabIndex: 0 });
    const panes = element("div", { className: "panes" }, element("div", { className: "side" },
      element("div", { className: "heads", "aria-hidden": "true" }, ...runs.map(({ name }) =>
        element("span", { textContent: name, title: name }))), list), pane);
    const found = new Set(runs.flatMap(({ outcomes }) => [...new Set(outcomes)]));
    const legend = element("span", { className: "legend" }, ...Object.keys(OUTCOMES).filter((letter) => found.has(letter)
      && letter !== "-").map((letter) => element("span", {}, mark(letter), ` ${OUTCOMES[letter].name}`)));
    const isWide = matchMedia("(min-width: 760px)").matches;
    root.append(element("div", { className: "bar", role: "search" },
      element("div", { className: "walk" },
        element("label", { className: "grow" }, element("span", { className: "unseen", textContent: "Search" }), search),
        element("label", { className: "deep" }, isDeep, " replies and prompts too"), count, previous, next),
      element("div", { className: "under" },
        element("details", { className: "filters", open: isWide && runs.length <= 3 },
          element("summary", { textContent: "Filters" }), element("div", { className: "grid" }, ...labels), reset),
        legend, saveMarks)), panes,
    element("p", { className: "quiet", textContent: "Keys: j and k go to the next and the previous question, / searches." }));

    const readFilters = () => {
      for (const { name, made, first } of filters) {
        made.value = address.get(name) ?? first;
        if (made.selectedIndex < 0) made.value = first;
      }
      search.value = address.get("search") ?? "";
      isDeep.checked = address.has("deep");
    };

    const filter = () => {
      const query = fold(search.value).split(/\s+/).filter(Boolean);
      const set = filters.filter(({ made, first }) => made.value !== first);
      const key = address.get("question");
      shown = questions.map((_, at) => at).filter((at) => set.every(({ made, fits }) => fits(made.value, at))
        && query.every((word) => searched(at, isDeep.checked).includes(word)));
      if (filters.find(({ name }) => name === "order")?.made.value === "flipped") {
        const flipped = new Set(shown.filter((at) => agrees(at, "flipped")));
        shown = [...flipped, ...shown.filter((at) => !flipped.has(at))];
      }
      count.textContent = `${english(shown.length)} of ${english(questions.length)} questions`;
      chosen = Math.max(0, shown.findIndex((at) => questions[at].key === key));
      list.scrollTop = Math.max(0, (chosen - 2) * ROW);
      if (shown.length) choose(chosen, { quietly: true });
      else {
        draw();
        pane.replaceChildren(words("quiet", "No question fits the search and the filters."));
        previous.disabled = next.disabled = true;
      }
    };

    const rowOf = (position) => {
      const at = shown[position];
      const { key, wordings } = questions[at];
      const row = element("div", { id: `row-${position}`, className: "row", role: "option",
        "aria-selected": String(position === chosen), "aria-posinset": position + 1, "aria-setsize": shown.length },
        element("span", { className: "marks" }, ...letters(at).map((letter, run) => mark(letter, runs[run].name))),
        element("span", { className: "place", textContent: place(at) || key }),
        element("span", { className: "excerpt data", dir: "auto", textContent: wordings[0].stem ?? key }),
        element("span", { className: "unseen", textContent:
          letters(at).map((letter, run) => `${runs[run].name} ${OUTCOMES[letter].name}`).join(", ") }));
      row.style.top = `${position * ROW}px`;
      row.addEventListener("click", () => choose(position));
      return row;
    };

    const draw = () => {
      space.style.height = `${shown.length * ROW}px`;
      const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
      const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
      const rows = [];
      for (let position = first; position < last; position += 1) rows.push(rowOf(position));
      space.replaceChildren(...rows);
      if (chosen >= first && chosen < last) list.setAttribute("aria-activedescendant", `row-${chosen}`);
      else list.removeAttribute("aria-activedescendant");
    };

    const choose = (position, { quietly = false } = {}) => {
      if (position < 0 || position >= shown.length) return;
      chosen = position;
      const at = shown[position];
      if (position * ROW < list.scrollTop) list.scrollTop = position * ROW;
      list.scrollTop = Math.max(list.scrollTop, (position + 1) * ROW - list.clientHeight);
      draw();
      pane.replaceChildren(detail(questions[at], turns, runs, at, place(at)));
      pane.scrollTop = 0;
      previous.disabled = position === 0;
      next.disabled = position === shown.length - 1;
      if (!quietly) remember("question", questions[at].key);
    };

    const MOVES = {
      ArrowDown: (at) => at + 1,
      ArrowUp: (at) => Math.max(0, at - 1),
      PageDown: (at) => Math.min(shown.length - 1, at + 10),
      PageUp: (at) => Math.max(0, at - 10),
      Home: () => 0,
      End: () => shown.length - 1,
    };
    list.addEventListener("keydown", (event) => {
      if (!MOVES[event.key]) return;
      event.preventDefault();
      choose(MOVES[event.key](chosen));
    });
    list.addEventListener("scroll", () => requestAnimationFrame(draw));

    // Letters work wherever the focus is, but never while something is typed.
    const walk = (position) => {
      choose(position);
      panes.scrollIntoView({ block: "nearest" });
    };
    const ACTS = { j: () => walk(chosen + 1), k: () => walk(Math.max(0, chosen - 1)), "/": () => search.focus() };
    document.addEventListener("keydown", (event) => {
      const typing = /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
      if (typing && event.key === "Escape") event.target.blur();
      if (typing || event.ctrlKey || event.metaKey || event.altKey || !ACTS[event.key]) return;
      event.preventDefault();
      ACTS[event.key]();
    });

    const follow = () => {
      address = readAddress();
      readFilters();
      filter();
      if (address.has("question")) document.getElementById("questions").scrollIntoView();
    };
    root.hidden = false;
    follow();
    addEventListener("hashchange", follow);
    addEventListener("resize", draw);
  };

  const start = async () => {
    if (typeof DecompressionStream === "undefined") {
      document.getElementById("browser").replaceWith(element("p", { className: "warnings",
        textContent: "Single questions need a browser of 2023 or later (DecompressionStream)." }));
      return;
    }
    const binary = atob(document.getElementById("data").textContent);
    const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const data = JSON.parse(await new Response(stream).text());
    showAgainst(data.index);
    browse(data);
  };
  // The first screen is painted before the questions are unpacked.
  if (document.getElementById("data")) requestAnimationFrame(() => setTimeout(start));
})();
