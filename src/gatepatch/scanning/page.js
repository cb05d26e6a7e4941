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
    what.append(head, make("code", "", gate.text), guards(gate));
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
  }

  const FIELDS = ["text", "show", "distribution", "kind", "effect", "tree"];

  function matches(gate, wanted, words) {
    if (wanted.show === "out" && !gate.out) return false;
    if (wanted.show === "unknown" && !gate.unknown.length) return false;
    for (const name of ["distribution", "kind", "effect", "tree"]) {
      if (wanted[name] && gate[name] !== wanted[name]) return false;
    }
    return words.every((word) => gate.hay.includes(word));
  }

  function filter() {
    const wanted = Object.fromEntries(FIELDS.map((name) => [name, $(name).value]));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    shown = gates.filter((gate) => matches(gate, wanted, words));
    drawn = 0;
    $("gates").replaceChildren();
    $("count").textContent = `${shown.length} of ${gates.length} gates`;
    $("none").hidden = shown.length > 0;
    more();
    const told = FIELDS.filter((name) => wanted[name] !== $(name).dataset.plain)
      .map((name) => [name, wanted[name]]);
    try {
      history.replaceState(null, "", `#${new URLSearchParams(told)}`);
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
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && drawn < shown.length) more();
  }, { rootMargin: "1200px" }).observe($("more"));

  restore();
  filter();
})();
