"use strict";

// One question with everything that the runs made of it.
page.detail = (() => {
  const { OUTCOMES, element, mark } = page;
  const OPEN_RUNS = 3;
  // Fields of a wording that stand elsewhere than in the list of further facts.
  const SHOWN = new Set(["language", "gold", "exam", "stem", "clinical_case", "options", "image", "shown", "others"]);

  const words = (className, text) => element("p", { className: `data ${className}`, dir: "auto", textContent: text });

  const number = (value, digits = 3) => (value === null || value === undefined ? "-" : value.toFixed(digits));

  const block = (title, text) => [element("h5", { textContent: title }),
    element("pre", { className: "data", dir: "auto", textContent: text })];

  const options = (wording, choices) => element("ol", { className: "options" }, ...wording.options.map(([printed, text]) => {
    const isGold = printed === wording.gold || (wording.others ?? []).includes(printed);
    const chosen = choices.filter((choice) => choice.answer === printed);
    return element("li", { className: isGold ? "gold" : "" },
      element("span", { className: "printed", textContent: `${printed}.` }),
      element("span", { className: "data", dir: "auto", textContent: text }),
      element("span", { className: "chips" },
        isGold ? element("strong", { className: "chip right", textContent: "\u2713 right answer" }) : null,
        ...chosen.map((choice) => element("span", { className: "chip", textContent: choice.name }))));
  }));

  const wordingPart = (wording, at, item, runs, several) => {
    const choices = item.answers.flatMap((answer, run) =>
      (answer !== null && answer.wording === at ? [{ name: runs[run], answer: answer.answer }] : []));
    const part = element("section", { className: "wording", lang: wording.language });
    if (several) part.append(element("h4", { textContent: `Asked in ${wording.language}`, lang: "en" }));
    if (wording.clinical_case) part.append(words("case", wording.clinical_case));
    if (wording.stem !== undefined) part.append(words("stem", wording.stem));
    if (item.picture && at === 0) {
      part.append(element("img", { className: "asked", src: item.picture, alt: `Picture ${wording.image ?? ""}` }));
    } else if (wording.image && !item.picture) part.append(words("quiet", `Refers to a picture that is not in this page: ${wording.image}`));
    for (const [title, text] of wording.shown ?? []) part.append(...block(title, text));
    if (wording.options) {
      part.append(options(wording, choices));
    } else if (wording.stem === undefined) {
      const gold = wording.gold === null ? "The right answer is not at hand either." : `Right answer: ${wording.gold}.`;
      part.append(words("quiet", `The words of this question are not at hand. ${gold}`));
    }
    for (const [name, value] of Object.entries(wording)) {
      if (SHOWN.has(name)) continue;
      const text = typeof value === "string" ? value : JSON.stringify(value);
      part.append(words("quiet", `${name.replaceAll("_", " ")}: ${text}`));
    }
    return part;
  };

  const row = (tag, cells) => element("tr", {}, ...cells.map((text, at) =>
    element(tag, { className: at ? "number" : "", textContent: text })));

  // Shares of the probability, as a softmax of the scores gives them.
  const scoresTable = (answer, gold) => {
    const known = answer.scores.filter(([, score]) => score !== null);
    const best = Math.max(...known.map(([, score]) => score));
    const whole = known.reduce((sum, [, score]) => sum + Math.exp(score - best), 0);
    const body = element("tbody", {}, ...answer.scores.map(([printed, score]) => {
      const share = score === null ? null : Math.exp(score - best) / whole;
      const made = row("td", [`${printed}${printed === gold ? " \u2713" : ""}`, number(score),
        share === null ? "-" : `${(100 * share).toFixed(1)} %`]);
      made.className = printed === answer.answer ? "best" : "";
      const bar = element("td", { className: "share" }, element("span"));
      bar.firstChild.style.width = `${100 * (share ?? 0)}%`;
      made.append(bar);
      return made;
    }));
    const head = row("th", ["Option", "Score", "Share"]);
    head.append(element("td"));
    const unit = [answer.score_unit, answer.score_norm && `norm ${answer.score_norm}`].filter(Boolean).join(", ");
    return [element("h5", { textContent: `Option scores${unit ? ` (${unit})` : ""}` }),
      element("table", { className: "small" }, element("thead", {}, head), body)];
  };

  const passagesTable = (answer) => {
    if (!answer.passages.length) return [element("p", { className: "quiet", textContent: "No passage was found." })];
    const body = element("tbody", {}, ...answer.passages.map(([id, source, score, kept]) => element("tr", {},
      element("td", { className: "data", textContent: id }), element("td", { className: "data", textContent: source }),
      element("td", { className: "number", textContent: number(score) }),
      kept === undefined ? null : element("td", { textContent: kept ? "kept" : "dropped" }))));
    const head = element("tr", {}, ...["Passage", "Source"].map((text) => element("th", { textContent: text })),
      element("th", { className: "number", textContent: "Score" }),
      answer.passages.some((each) => each.length > 3) ? element("th", { textContent: "Verdict" }) : null);
    const cut = answer.passages_cut
      ? element("p", { className: "quiet", textContent: `${answer.passages_cut} characters were cut to fit the context.` })
      : null;
    return [element("h5", { textContent: "Passages, most relevant first" }),
      element("table", { className: "small" }, element("thead", {}, head), body), cut];
  };

  // What the model looked up itself, a row for each query.
  const roundsTable = (rounds) => {
    const cells = (tag, texts) => element("tr", {}, ...texts.map((text) =>
      element(tag, { className: "data", dir: "auto", textContent: text ?? "" })));
    const rows = rounds.flatMap((queries, at) => queries.map(([query, answer, passages]) =>
      cells("td", [`${at + 1}`, query, answer ?? "-", passages.join(", ")])));
    if (!rows.length) return [element("p", { className: "quiet", textContent: "The model wrote no query." })];
    return [element("h5", { textContent: "What the model looked up" }), element("table", { className: "small" },
      element("thead", {}, cells("th", ["Round", "Query", "Answer from the passages", "Passages"])),
      element("tbody", {}, ...rows))];
  };

  const facts = (answer) => {
    const found = (answer.measures ?? []).map(([name, value]) => `${name} ${value}`);
    if (answer.cited !== undefined) found.push(answer.cited ? `cites passage ${answer.cited}` : "cites no passage");
    if (answer.supported !== undefined) found.push(`the passages ${answer.supported ? "" : "do not "}support the answer`);
    if (answer.finish_reason) found.push(`finished by ${answer.finish_reason}`);
    if (answer.prompt_tokens !== undefined) found.push(`${answer.prompt_tokens} prompt tokens`);
    if (answer.completion_tokens !== undefined) found.push(`${answer.completion_tokens} completion tokens`);
    if (answer.thinking_tokens) found.push(`${answer.thinking_tokens} of them thinking`);
    if (answer.waiting_s !== undefined) {
      found.push(`${number(answer.latency_s - answer.waiting_s, 2)} s answering, ${number(answer.waiting_s, 2)} s waiting before`);
    } else if (answer.latency_s !== undefined) found.push(`${number(answer.latency_s, 2)} s, waiting included`);
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
      const last = sent.map(([role]) => role).lastIndexOf("user");
      const earlier = sent.slice(0, Math.max(last, 0)).map((turn) => turnPart(turn, false));
      if (earlier.length) {
        made.push(element("details", { className: "earlier" }, element("summary", { textContent:
          earlier.length === 1 ? "1 turn before" : `${earlier.length} turns before` }), ...earlier));
      }
      made.push(...sent.slice(Math.max(last, 0)).map((turn) => turnPart(turn, false)));
    }
    if (call.reply !== undefined) made.push(turnPart(["assistant", call.reply], true));
    return made;
  });

  const runPart = (name, letter, answer, gold, turns, isOpen, item, owner) => {
    const { name: outcome } = OUTCOMES[letter];
    const said = answer.answer === undefined ? "" : `${answer.answer}, `;
    const why = answer.reason ? ` (${answer.reason.replaceAll("_", " ")})` : "";
    const summary = element("summary", {}, mark(letter),
      element("span", { className: "name", textContent: name }),
      element("span", { className: "said", textContent: `${said}${outcome}${why}` }));
    const inside = element("div", { className: "inside" });
    if (facts(answer)) inside.append(element("p", { className: "quiet", textContent: facts(answer) }));
    if (answer.failure) inside.append(...block("Failure", answer.failure));
    if (answer.text !== undefined) inside.append(...block("Answer", answer.text));
    if (answer.calls) inside.append(...callParts(answer.calls, turns));
    if (answer.rationale) inside.append(...block("Rationale", answer.rationale));
    if (answer.reply !== undefined) inside.append(...block("Reply", answer.reply));
    if (answer.scores) inside.append(...scoresTable(answer, gold));
    if (answer.rounds) inside.append(...roundsTable(answer.rounds));
    if (answer.passages) inside.append(...passagesTable(answer).filter(Boolean));
    if (answer.status === "answered") inside.append(page.marks.controls(item, owner, answer));
    if (!inside.childElementCount) {
      return element("div", { className: "run plain" }, ...summary.childNodes);
    }
    return element("details", { className: "run", open: isOpen }, summary, inside);
  };

  // `item` is the question's entry in its part, `turns` the part's prompts, `letters` its outcome in each run.
  return (item, turns, letters, index, place) => {
    const { runs } = index;
    const made = element("article", {});
    const exam = item.wordings[0].exam;
    made.append(element("h3", { className: "data", textContent: item.key }),
      element("p", { className: "quiet data", textContent: [place, exam].filter(Boolean).join(" \u00b7 ") }));
    item.wordings.forEach((wording, at) =>
      made.append(wordingPart(wording, at, item, runs, item.wordings.length > 1)));
    const shown = item.answers.flatMap((answer, run) => (answer === null ? [] : [run]));
    made.append(element("h4", { textContent: shown.length === 1 ? "Answer" : `Answers of ${shown.length} runs` }));
    const beside = page.beside(item, runs);
    if (beside) made.append(beside);
    for (const run of shown) {
      const answer = item.answers[run];
      const gold = item.wordings[answer.wording].gold;
      made.append(runPart(runs[run], letters[run], answer, gold, turns,
        shown.length <= OPEN_RUNS || run === shown[0], item, { id: index.run_ids[run], folder: index.run_folders[run] }));
    }
    return made;
  };
})();
