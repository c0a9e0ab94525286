"use strict";

// The browser of single questions: filters, a list that holds only the rows in sight, and the question that is chosen.
(() => {
  const { OUTCOMES, element, mark } = page;
  const ROW = 52;
  const SPARE = 6;
  const AGREEMENTS = {
    "": "any",
    flipped: "flipped: some right, some not",
    all: "right in every run",
    none: "right in no run",
  };
  const root = document.getElementById("browser");
  let index;
  let stems = null;
  let folded = null;
  let replies = null;
  let filtering = 0;
  let shown = [];
  let chosen = -1;
  let asked = 0;
  const controls = {};

  const fold = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const letters = (at) => index.outcomes.map((outcomes) => outcomes[at]);
  const values = (at) => index.facets.map((facet) => facet.values[facet.of[at]] ?? "");
  const place = (at) => {
    const printed = index.numbers[at] === null ? "" : `question ${index.numbers[at]}`;
    return [...values(at), printed].filter((part) => part !== "").join(" \u00b7 ");
  };

  const agrees = (at, wanted) => {
    const found = letters(at).filter((letter) => "rwu".includes(letter));
    const right = found.filter((letter) => letter === "r").length;
    if (wanted === "flipped") return right > 0 && right < found.length;
    return found.length > 0 && right === (wanted === "all" ? found.length : 0);
  };

  // The words of all replies and prompts, a text a question.
  const readReplies = async () => {
    const found = [];
    for (const part of index.starts.keys()) {
      const { items, turns } = await page.open(`part-${part}`);
      for (const item of items) {
        const answers = item.answers.filter(Boolean);
        const calls = answers.flatMap((answer) => answer.calls ?? []);
        const prompts = [...new Set(calls.flatMap((call) => call.turns))].map((place) => turns[place][1]);
        const written = answers.flatMap(({ reply, rationale, text }) => [reply, rationale, text]);
        found.push(fold([...written, ...calls.map((call) => call.reply), ...prompts].filter(Boolean).join(" ")));
      }
    }
    return found;
  };

  const filter = async () => {
    filtering += 1;
    const mine = filtering;
    const query = fold(controls.search.value).split(/\s+/).filter(Boolean);
    if (query.length && folded === null) {
      folded = (await page.open("stems")).map((text, at) => fold(`${text} ${index.keys[at]}`));
    }
    const isDeep = controls.deep.checked && query.length > 0;
    if (isDeep) {
      controls.count.textContent = "reading replies";
      replies ??= readReplies();
    }
    const deep = isDeep ? await replies : null;
    if (mine !== filtering) return;
    const wantedValues = controls.facets.map((select) => select.value);
    const agreement = controls.agreement ? controls.agreement.value : "";
    const outcomes = controls.outcomes.map((select) => select.value);
    const current = shown[chosen];
    shown = index.keys.map((_, at) => at).filter((at) => values(at).every((value, facet) => !wantedValues[facet]
      || String(value) === wantedValues[facet])
      && outcomes.every((wanted, run) => !wanted || wanted.includes(index.outcomes[run][at]))
      && (!agreement || agrees(at, agreement))
      && query.every((word) => folded[at].includes(word) || (deep !== null && deep[at].includes(word))));
    if (controls.order?.value === "flipped") {
      const isFlipped = new Set(shown.filter((at) => agrees(at, "flipped")));
      shown = [...isFlipped, ...shown.filter((at) => !isFlipped.has(at))];
    }
    chosen = shown.indexOf(current);
    const whole = index.keys.length.toLocaleString("en");
    controls.count.textContent = `${shown.length.toLocaleString("en")} of ${whole} questions`;
    controls.list.scrollTop = chosen < 0 ? 0 : Math.max(0, (chosen - 2) * ROW);
    draw();
  };

  const rowOf = (position) => {
    const at = shown[position];
    const found = letters(at);
    const said = found.map((letter, run) => `${index.runs[run]} ${OUTCOMES[letter].name}`).join(", ");
    const stem = stems === null ? "" : stems[at].split("\n")[0];
    const row = element("div", { id: `row-${position}`, className: "row", role: "option",
      "aria-selected": String(position === chosen), "aria-posinset": position + 1, "aria-setsize": shown.length },
      element("span", { className: "marks" }, ...found.map((letter, run) => mark(letter, index.runs[run]))),
      element("span", { className: "place", textContent: place(at) || index.keys[at] }),
      element("span", { className: "excerpt data", dir: "auto", textContent: stem || index.keys[at] }),
      element("span", { className: "unseen", textContent: said }));
    row.style.top = `${position * ROW}px`;
    row.addEventListener("click", () => choose(position));
    return row;
  };

  const draw = () => {
    const { list, space } = controls;
    space.style.height = `${shown.length * ROW}px`;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
    const rows = [];
    for (let position = first; position < last; position += 1) rows.push(rowOf(position));
    space.replaceChildren(...rows);
    if (chosen >= first && chosen < last) list.setAttribute("aria-activedescendant", `row-${chosen}`);
    else list.removeAttribute("aria-activedescendant");
  };

  const partOf = (at) => {
    let low = 0;
    let high = index.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (index.starts[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  const choose = async (position, { quietly = false } = {}) => {
    if (position < 0 || position >= shown.length) return;
    chosen = position;
    const at = shown[position];
    const { list } = controls;
    if (position * ROW < list.scrollTop) list.scrollTop = position * ROW;
    const below = (position + 1) * ROW - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
    draw();
    asked += 1;
    const mine = asked;
    const part = partOf(at);
    const { items, turns } = await page.open(`part-${part}`);
    if (mine !== asked) return;
    controls.detail.replaceChildren(page.detail(items[at - index.starts[part]], turns, letters(at), index, place(at)));
    controls.detail.scrollTop = 0;
    controls.previous.disabled = position === 0;
    controls.next.disabled = position === shown.length - 1;
    if (!quietly) remember(index.keys[at]);
  };

  // The address names the question, so that it can be found again; some browsers refuse that for a file.
  const remember = (key) => {
    try {
      history.replaceState(null, "", `#question=${encodeURIComponent(key)}`);
    } catch {
      return;
    }
  };

  const select = (label, choices) => {
    const made = element("select", {}, ...choices.map(([value, text]) => element("option", { value, textContent: text })));
    made.addEventListener("change", filter);
    return [made, element("label", {}, element("span", { textContent: label }), made)];
  };

  const buildFilters = () => {
    const any = [["", "any"]];
    const plain = (values) => any.concat(values.map((value) => [String(value), String(value)]));
    const labels = [];
    controls.facets = index.facets.map((facet) => {
      const [made, labelled] = select(facet.name, plain(facet.values));
      labels.push(labelled);
      return made;
    });
    if (index.runs.length > 1) {
      const [made, labelled] = select("Runs", Object.entries(AGREEMENTS));
      controls.agreement = made;
      const [order, ordered] = select("Order", [["flipped", "flipped first"], ["exam", "as in the exams"]]);
      controls.order = order;
      labels.push(labelled, ordered);
    }
    controls.outcomes = index.runs.map((name, run) => {
      const found = [...new Set(index.outcomes[run])];
      const choices = any.concat(Object.keys(OUTCOMES).filter((letter) => found.includes(letter)).map((letter) =>
        [letter, OUTCOMES[letter].name]));
      if (found.includes("w") && found.includes("u")) choices.push(["wu", "wrong or unanswered"]);
      const [made, labelled] = select(name, choices);
      labels.push(labelled);
      return made;
    });
    const reset = button("Clear filters", () => {
      const selects = [...controls.facets, controls.agreement, ...controls.outcomes];
      for (const control of selects.filter(Boolean)) control.value = "";
      controls.search.value = "";
      controls.deep.checked = false;
      filter();
    });
    const wide = matchMedia("(min-width: 760px)").matches;
    return element("details", { className: "filters", open: wide && index.runs.length <= 3 },
      element("summary", { textContent: "Filters" }), element("div", { className: "grid" }, ...labels), reset);
  };

  const button = (text, act, properties = {}) => {
    const made = element("button", { type: "button", textContent: text, ...properties });
    made.addEventListener("click", act);
    return made;
  };

  // What stays in sight while a question is read: search, count, the way to the next question, filters and signs.
  const buildBar = () => {
    controls.search = element("input", { type: "search", placeholder: "words of the stem, or a key" });
    let waiting;
    controls.search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(filter, 120);
    });
    controls.deep = element("input", { type: "checkbox" });
    controls.deep.addEventListener("change", filter);
    controls.count = element("output", { className: "count", "aria-live": "polite" });
    controls.previous = button("\u2190 Previous", () => choose(chosen - 1), { disabled: true });
    controls.next = button("Next \u2192", () => choose(chosen + 1), { disabled: true });
    const help = button("?", () => controls.help.showModal(), { "aria-label": "Keys", title: "Keys" });
    const found = new Set(index.outcomes.flatMap((outcomes) => [...new Set(outcomes)]));
    const legend = element("span", { className: "legend" }, ...Object.keys(OUTCOMES).filter((letter) => found.has(letter)
      && letter !== "-").map((letter) => element("span", {}, mark(letter), ` ${OUTCOMES[letter].name}`)));
    return element("div", { className: "bar", role: "search" },
      element("div", { className: "walk" },
        element("label", { className: "grow" }, element("span", { className: "unseen", textContent: "Search" }), controls.search),
        element("label", { className: "deep" }, controls.deep, " replies and prompts too"),
        controls.count, controls.previous, controls.next, help),
      element("div", { className: "under" }, buildFilters(), legend, page.marks.save));
  };

  const HELP = [["\u2191 \u2193, k j", "previous and next question"], ["Page Up, Page Down", "ten questions back and on"],
    ["Home, End", "first and last question"], ["/", "search"], ["Escape", "leave a field"], ["?", "these keys"]];

  const buildHelp = () => {
    controls.help = element("dialog", { "aria-label": "Keys" }, element("h3", { textContent: "Keys" }),
      element("dl", {}, ...HELP.flatMap(([keys, what]) =>
        [element("dt", { textContent: keys }), element("dd", { textContent: what })])),
      button("Close", () => controls.help.close()));
    return controls.help;
  };

  // Letters work wherever the focus is, but never while something is typed or the list of keys is open.
  const onKey = (event) => {
    const typing = /^(?:INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
    if (event.ctrlKey || event.metaKey || event.altKey || controls.help.open) return;
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const walk = (position) => {
      choose(position);
      controls.list.parentElement.parentElement.scrollIntoView({ block: "nearest" });
    };
    const acts = { j: () => walk(chosen + 1), k: () => walk(Math.max(0, chosen - 1)),
      "/": () => controls.search.focus(), "?": () => controls.help.showModal() };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  };

  const KEYS = {
    ArrowDown: (at) => at + 1,
    ArrowUp: (at) => Math.max(0, at - 1),
    PageDown: (at) => Math.min(shown.length - 1, at + 10),
    PageUp: (at) => Math.max(0, at - 10),
    Home: () => 0,
    End: () => shown.length - 1,
  };

  const buildPanes = () => {
    controls.space = element("div", { className: "space" });
    controls.list = element("div", { className: "list", tabIndex: 0, role: "listbox", "aria-label": "Questions" },
      controls.space);
    let waiting = false;
    controls.list.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    });
    controls.list.addEventListener("keydown", (event) => {
      const move = KEYS[event.key];
      if (!move) return;
      event.preventDefault();
      choose(move(chosen));
    });
    controls.detail = element("div", { className: "detail", role: "region", "aria-label": "Question", tabIndex: 0 });
    const heads = element("div", { className: "heads", "aria-hidden": "true" }, ...index.runs.map((name) =>
      element("span", { textContent: name, title: name })));
    return element("div", { className: "panes" }, element("div", { className: "side" }, heads, controls.list), controls.detail);
  };

  const shortened = () => (index.longest_text === null ? [] : [element("p", { className: "quiet",
    textContent: `Replies of more than ${index.longest_text.toLocaleString("en")} characters lose their middle here, so `
      + "that the page stays small; predictions.jsonl has them whole." })]);

  const follow = () => {
    const found = /^#question=(.+)$/.exec(location.hash);
    const position = found ? shown.indexOf(index.keys.indexOf(decodeURIComponent(found[1]))) : -1;
    if (position < 0) return false;
    document.getElementById("questions").scrollIntoView();
    choose(position, { quietly: true });
    return true;
  };

  const start = async () => {
    if (typeof DecompressionStream === "undefined") {
      root.append(element("p", { className: "warnings",
        textContent: "Single questions need a browser of 2023 or later (DecompressionStream)." }));
      root.hidden = false;
      return;
    }
    index = await page.open("index");
    page.against(index);
    root.append(...shortened(), buildBar(), buildPanes(), buildHelp());
    document.addEventListener("keydown", onKey);
    root.hidden = false;
    await filter();
    addEventListener("hashchange", follow);
    addEventListener("resize", draw);
    if (!follow()) await choose(0, { quietly: true });
    stems = await page.open("stems");
    draw();
  };

  document.addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(start)));
})();
