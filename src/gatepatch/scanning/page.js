"use strict";
// All text of a gate is put in with textContent or as a text node: it is somebody else's code.
(() => {
  const STEP = 60;
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);

  const gates = data.rows.map((row) => {
    const gate = Object.fromEntries(data.fields.map((name, index) => [name, row[index]]));
    gate.hay = [gate.path, gate.within, gate.text, gate.calls.join(" "), gate.compiled,
      gate.unknown.join(" "), gate.otherwise].join("\n").toLowerCase();
    return gate;
  });

  function make(tag, name, ...children) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...children);
    return element;
  }

  function matrix(gate) {
    const box = make("div", "matrix");
    box.setAttribute("role", "img");
    const told = [];
    [...gate.verdict].forEach((letter, index) => {
      const [answer, symbol, meaning] = data.answers[letter];
      const arch = data.archs[index];
      const cell = make("span", `cell ${answer}${arch === data.sm ? " asked" : ""}`, symbol);
      cell.title = `${arch}: ${answer} (${meaning})`;
      told.push(`${arch} ${answer}`);
      box.append(cell);
    });
    box.setAttribute("aria-label", told.join(", "));
    return box;
  }

  function when(gate) {
    const details = make("details", "", make("summary", "", "when it admits"));
    details.addEventListener("toggle", () => {
      if (details.querySelector("dl")) return;
      const list = make("dl", "");
      for (const [words, archs] of Object.entries(gate.words)) {
        list.append(make("dt", "", archs), make("dd", "", words));
      }
      details.append(list);
    });
    return details;
  }

  // The first line stands where the condition began, the others where the file has them.
  function dedented(text) {
    const [first, ...rest] = text.split("\n");
    const indents = rest.filter((line) => line.trim()).map((line) => line.search(/\S/));
    const cut = Math.max(0, Math.min(...indents) - 4);
    return [first, ...rest.map((line) => line.slice(cut))].join("\n");
  }

  function guards(gate) {
    const parts = [data.effects[gate.effect]];
    if (gate.lines > 1) parts.push(`${gate.lines} lines`);
    if (gate.calls.length) parts.push(gate.calls.join(", "));
    if (gate.otherwise) parts.push(`else ${gate.otherwise}`);
    return make("p", "", parts.join("; "));
  }

  function draw(gate) {
    const what = make("div", "what");
    const head = make("p", "");
    if (gate.out) head.append(make("span", "badge out", `leaves ${data.sm} out`));
    if (gate.unknown.length) head.append(make("span", "badge unknown", "not known"));
    if (gate.tree !== "own") head.append(make("span", "badge", gate.tree));
    const within = gate.within ? ` in ${gate.within}` : "";
    const kind = make("span", "", `${gate.kind}${within}`);
    kind.title = data.kinds[gate.kind];
    head.append(make("span", "line", `line ${gate.line}: `), kind);
    what.append(head, make("code", "", dedented(gate.text)), guards(gate));
    if (gate.compiled) what.append(make("p", "", `nothing compiled: ${gate.compiled}`));
    for (const reason of gate.unknown) what.append(make("p", "", `not known: ${reason}`));
    if (gate.rejects) what.append(make("p", "", "turns away where the condition holds"));
    if (Object.keys(gate.words).some((word) => word !== "yes" && word !== "no")) {
      what.append(when(gate));
    }
    return make("article", "row gate", what, matrix(gate));
  }

  let shown = gates;
  let drawn = 0;

  function more() {
    const part = document.createDocumentFragment();
    for (const gate of shown.slice(drawn, drawn + STEP)) {
      const before = drawn ? shown[drawn - 1] : null;
      if (!before || before.path !== gate.path || before.distribution !== gate.distribution) {
        part.append(make("h3", "", gate.path, make("small", "", `  ${gate.distribution}`)));
      }
      part.append(draw(gate));
      drawn += 1;
    }
    $("gates").append(part);
    $("more").hidden = drawn >= shown.length;
    $("more").textContent = `show more (${drawn} of ${shown.length})`;
    // Only a button that is newly watched is told of where it is already in view.
    watcher.disconnect();
    if (!$("more").hidden) watcher.observe($("more"));
  }

  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) more();
  }, { rootMargin: "1200px" });

  const CHOICES = ["show", "distribution", "kind", "effect", "tree"];
  const FIELDS = ["text", ...CHOICES];

  function answers(gate, name, value) {
    if (name !== "show") return !value || gate[name] === value;
    return value === "all" || (value === "out" ? gate.out : gate.unknown.length > 0);
  }

  // Each choice says how many gates it would leave, the other choices being as they are.
  function recount(found, wanted) {
    for (const name of CHOICES) {
      const others = CHOICES.filter((other) => other !== name);
      const left = found.filter((gate) => others.every((o) => answers(gate, o, wanted[o])));
      for (const option of $(name).options) {
        const number = left.filter((gate) => answers(gate, name, option.value)).length;
        option.textContent = `${option.dataset.words} (${number.toLocaleString("en")})`;
      }
    }
  }

  function filter() {
    const wanted = Object.fromEntries(FIELDS.map((name) => [name, $(name).value]));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = gates.filter((gate) => words.every((word) => gate.hay.includes(word)));
    shown = found.filter((gate) => CHOICES.every((name) => answers(gate, name, wanted[name])));
    recount(found, wanted);
    drawn = 0;
    $("gates").replaceChildren();
    const [some, all] = [shown.length, gates.length].map((n) => n.toLocaleString("en"));
    $("count").textContent = `${some} of ${all} gates`;
    $("none").hidden = shown.length > 0;
    more();
    const told = FIELDS.filter((name) => wanted[name] !== $(name).dataset.plain)
      .map((name) => [name, wanted[name]]);
    try {
      history.replaceState(null, "", told.length ? `#${new URLSearchParams(told)}` : "#");
    } catch { /* a browser may refuse it for a file; the filter works without */ }
  }

  function restore() {
    const told = new URLSearchParams(location.hash.slice(1));
    for (const name of FIELDS) {
      const plain = $(name).dataset.plain;
      $(name).value = told.get(name) ?? plain;
      if ($(name).value === "" && plain) $(name).value = plain; // no such choice
    }
  }

  let waiting = 0;
  $("filter").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  $("filter").addEventListener("submit", (event) => event.preventDefault());
  $("filter").addEventListener("reset", () => setTimeout(filter));
  $("more").addEventListener("click", more);
  window.addEventListener("hashchange", () => { restore(); filter(); });

  restore();
  filter();
})();
