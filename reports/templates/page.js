// Shows, filters and sorts what the page brought along. Every text goes in as text, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const ROWS = 60, CHARTS = 4, EXAMS = 24;
  const state = { lang: 0, sort: null, down: false, rows: ROWS, charts: CHARTS, open: new Set() };
  const form = $("filters");
  data.rows.forEach((row, at) => { row.at = at; });

  // ---- words --------------------------------------------------------------------------------------------------

  const say = (place) => {
    const text = data.says[place];
    return typeof text === "string" ? text : text[state.lang];
  };
  const word = (name) => say(data.words[name]);
  const counted = (name, number, total) =>
    say(data.counts[name]).replace("{number}", String(number)).replace("{total}", String(total));

  const make = (tag, attributes = {}, ...inside) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside.filter((part) => part !== null && part !== undefined));
    return element;
  };
  const draw = (tag, attributes = {}, ...inside) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  };
  const linked = (text, run) => {
    const known = run === null || run === undefined ? null : data.runs[run];
    return known && known.u ? make("a", { href: known.u, title: `${known.n} ${known.d}` }, text) : text;
  };
  const verdict = (place) => {
    const { s, k } = data.verdicts[place];
    return make("span", { class: `v ${k}` }, say(s));
  };

  // ---- filters ------------------------------------------------------------------------------------------------

  const uses = (name) => [...new Set(data.rows.map((row) => row[name]))];
  const choices = {
    v: () => uses("v").sort((a, b) => a - b).map((place) => [data.verdicts[place].c, say(data.verdicts[place].s)]),
    s: () => uses("s").sort().map((place) => [String(place), say(data.scopes[place])]),
    ...Object.fromEntries(["h", "e", "m"].map((name) => [name, () => uses(name).filter(Boolean).sort().map((v) => [v, v])])),
  };
  const fillChoices = () => {
    for (const [name, list] of Object.entries(choices)) {
      const select = form.elements[name], chosen = select.value;
      const options = [["", word("any")], ...list()].map(([value, text]) => make("option", { value }, text));
      select.replaceChildren(...options);
      select.value = chosen;
    }
  };
  const wanted = () => {
    const value = (name) => form.elements[name].value;
    const part = value("t").trim().toLowerCase(), tests = [];
    if (value("v")) tests.push((one) => data.verdicts[one.v].c === value("v"));
    for (const name of ["h", "e", "m"]) if (value(name)) tests.push((one) => one[name] === value(name));
    if (part) tests.push((one) => one.n.toLowerCase().includes(part));
    return (one) => tests.every((test) => test(one));
  };
  const wantedRow = () => {
    const fits = wanted(), scope = form.elements.s.value, all = form.elements.o.checked;
    return (row) => fits(row) && (!scope || String(row.s) === scope) && (all || !row.o);
  };

  // ---- table --------------------------------------------------------------------------------------------------

  const COLUMNS = [
    ["what", (row) => row.n], ["metric", (row) => say(row.k)], ["verdict", (row) => row.v],
    ["change", (row) => row.d[1]], ["interval", null], ["p", (row) => row.p[1]],
    ["before", (row) => row.b[1]], ["after", (row) => row.a[1]], ["runs", null], ["mde", (row) => row.q[1]],
  ];
  const title = (name) => (name === "p" ? "p" : word(name));
  const sorted = (rows) => {
    const key = state.sort && COLUMNS.find(([name]) => name === state.sort)[1];
    if (!key) return rows;
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const none = rows.filter((row) => key(row) === null), some = rows.filter((row) => key(row) !== null);
    some.sort((a, b) => (state.down ? order(key(b), key(a)) : order(key(a), key(b))));
    return [...some, ...none];
  };
  const showHead = () => {
    const cells = COLUMNS.map(([name, key]) => {
      if (!key) return make("th", { role: "columnheader", scope: "col" }, title(name));
      const order = state.sort === name ? (state.down ? "descending" : "ascending") : "none";
      const button = make("button", { type: "button", "data-sort": name }, title(name));
      return make("th", { role: "columnheader", scope: "col", "aria-sort": order }, button);
    });
    $("rows").tHead.rows[0].replaceChildren(...cells);
  };
  const showRow = (row) => {
    const place = row.at, isOpen = state.open.has(place);
    const button = make("button", {
      type: "button", "data-open": place, "aria-expanded": String(isOpen), "aria-label": `${word("details")}: ${row.n}`,
    }, isOpen ? "−" : "+");
    const last = (runs) => (runs.length ? runs[runs.length - 1][0] : null);
    const told = [
      row.n, say(row.k), verdict(row.v), say(row.d[0]), say(row.i), row.p[0],
      linked(row.b[0], row.b[1] === null ? null : last(row.B)), linked(row.a[0], row.a[1] === null ? null : last(row.C)),
      row.r, row.q[0],
    ];
    // Narrow windows show a row as a card (the roles keep it a row), each value with its heading.
    const cells = told.map((value, at) => make("td", at ? { role: "cell", class: at > 2 ? "num" : "", "data-h": title(COLUMNS[at][0]) } : { role: "cell" }, at ? null : button, value));
    const line = make("tr", { role: "row", "data-at": `row-${place}` }, ...cells);
    return isOpen ? [line, details(row)] : [line];
  };
  const details = (row) => {
    const list = make("dl");
    const tell = (name, parts) => { if (parts.length) list.append(make("dt", {}, word(name)), make("dd", {}, ...parts)); };
    const runs = (told) => told.flatMap(([run, text], at) => [at ? ", " : "", linked(data.runs[run].n, run), text ? ` (${text})` : ""]);
    tell("baseline_runs", runs(row.B));
    tell("candidate_runs", runs(row.C));
    if (row.im.some(Boolean)) tell("images", [row.im.filter(Boolean).join(" → ")]);
    tell("differs", row.t.map((note) => make("div", {}, say(note))));
    tell("notes", row.x.flatMap((note) => [make("div", {}, say(note))]));
    if (row.y !== null) tell("evidence", [say(row.y)]);
    const inside = [list];
    if (row.g !== null && row.g !== undefined) inside.push(chartsOf(data.curves[row.g]));
    return make("tr", { class: "more", role: "row" }, make("td", { role: "cell", colspan: COLUMNS.length }, ...inside));
  };
  const showRows = () => {
    const rows = sorted(data.rows.filter(wantedRow())), shown = rows.slice(0, state.rows);
    $("rows").tBodies[0].replaceChildren(...shown.flatMap(showRow));
    $("rows-count").textContent = rows.length ? counted("shown", shown.length, rows.length) : word("no_rows");
    $("more-rows").hidden = shown.length === rows.length;
  };

  // ---- charts -------------------------------------------------------------------------------------------------

  let WIDTH = 480;
  const HEIGHT = 260, LEFT = 58, RIGHT = 14, TOP = 14, BOTTOM = 42;
  const scale = (values, from, to, pad = 0.08) => {
    let low = Math.min(...values), high = Math.max(...values);
    const room = (high - low || Math.abs(high) || 1) * pad;
    low -= room; high += room;
    const place = (value) => from + ((value - low) / (high - low)) * (to - from);
    return { low, high, place };
  };
  const ticks = ({ low, high }, about = 5) => {
    const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), found = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push([value, value.toFixed(digits)]);
    return found;
  };
  const frame = (name) => draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": name });
  const axes = (svg, x, y, names, unit = "") => {
    for (const [value, text] of ticks(y)) {
      const at = y.place(value);
      svg.append(draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }),
        draw("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, text + unit));
    }
    if (x) for (const [value, text] of ticks(x)) {
      svg.append(draw("text", { x: x.place(value), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, text));
    }
    svg.append(draw("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, names[0]),
      draw("text", { x: 12, y: (TOP + HEIGHT - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TOP + HEIGHT - BOTTOM) / 2})` }, names[1]));
  };
  const spot = (text, run, x, y, ...marks) => {
    const known = run === null || run === undefined ? null : data.runs[run];
    const ring = draw("circle", { class: "ring", cx: x, cy: y, r: 11 });
    const inside = [...marks, ring];
    const attributes = { class: "spot", "aria-label": text, tabindex: -1, "data-tip": text };
    if (known && known.u) return draw("a", { ...attributes, href: known.u }, ...inside);
    return draw("g", { ...attributes, role: "img" }, ...inside);
  };
  const path = (places) => places.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const roving = (svg) => {
    const first = svg.querySelector(".spot");
    if (first) first.setAttribute("tabindex", 0);
    return svg;
  };
  const diamond = (x, y, size) => `M${x} ${y - size}L${x + size} ${y}L${x} ${y + size}L${x - size} ${y}Z`;

  const curveChart = (curve) => {
    const svg = frame(say(curve.w)), both = curve.pts.flatMap((point) => [point.b, point.a]).filter(Boolean);
    const ends = curve.pts.flatMap((point) => [point.l, point.u]).filter((end) => end !== null);
    const x = scale(both.map(([pace]) => pace), LEFT, WIDTH - RIGHT);
    const y = scale([...both.map(([, speed]) => speed), ...ends], HEIGHT - BOTTOM, TOP);
    axes(svg, x, y, [word("w_interactivity"), word("w_throughput")]);
    const at = ([pace, speed]) => [x.place(pace), y.place(speed)];
    const line = (side) => path(curve.pts.filter((point) => point[side]).map((point) => at(point[side])));
    svg.append(draw("path", { class: "before line dashed", d: line("b") }), draw("path", { class: "after line", d: line("a") }));
    for (const point of curve.pts) if (point.b) {
      const [px, py] = at(point.b);
      svg.append(spot(say(point.w), point.B, px, py, draw("circle", { class: "before hollow", cx: px, cy: py, r: 4 })));
    }
    for (const point of curve.pts) if (point.a) {
      const [px, py] = at(point.a), marks = [];
      if (point.l !== null && point.u !== null) marks.push(draw("line", { class: "after", x1: px, x2: px, y1: y.place(point.l), y2: y.place(point.u) }));
      marks.push(draw("path", { class: "after", d: diamond(px, py, 5) }));
      svg.append(draw("text", { x: px + 8, y: py - 7, "aria-hidden": "true" }, `c${point.c}`), spot(say(point.w), point.C, px, py, ...marks));
    }
    return roving(svg);
  };
  const frontChart = (front) => {
    const svg = frame(say(front.w)), sides = [front.before, front.after];
    const all = sides.flatMap((side) => [...side.line, ...side.pts.map((point) => point.p)]);
    const x = scale(all.map(([pace]) => pace), LEFT, WIDTH - RIGHT), y = scale(all.map(([, speed]) => speed), HEIGHT - BOTTOM, TOP);
    const at = ([pace, speed]) => [x.place(pace), y.place(speed)];
    if (front.both.length) {
      const [low, high] = front.both.map(x.place);
      svg.append(draw("rect", { class: "both", x: low, width: high - low, y: TOP, height: HEIGHT - BOTTOM - TOP }));
    }
    axes(svg, x, y, [word("w_interactivity"), word("w_throughput")]);
    svg.append(draw("path", { class: "before line dashed", d: path(front.before.line.map(at)) }), draw("path", { class: "after line", d: path(front.after.line.map(at)) }));
    for (const point of front.before.pts) {
      const [px, py] = at(point.p);
      svg.append(spot(say(point.w), null, px, py, draw("circle", { class: "before hollow", cx: px, cy: py, r: 4 })));
    }
    for (const point of front.after.pts) {
      const [px, py] = at(point.p);
      svg.append(spot(say(point.w), null, px, py, draw("path", { class: "after", d: diamond(px, py, 5) })));
    }
    return roving(svg);
  };
  const historyChart = (curve) => {
    const svg = frame(say(curve.hw)), runs = curve.his;
    const x = scale(runs.map((_, at) => at), LEFT + 6, WIDTH - RIGHT - 6, 0.02);
    const y = scale(runs.map((run) => run.l * 100).concat(99, 101), HEIGHT - BOTTOM, TOP);
    axes(svg, null, y, [word("w_started"), word("w_level")], "%");
    const place = (run, at) => [x.place(at), y.place(run.l * 100)];
    runs.forEach((run, at) => {
      if (run.b) svg.append(draw("line", { class: "bump dashed", x1: x.place(at), x2: x.place(at), y1: TOP, y2: HEIGHT - BOTTOM }));
    });
    svg.append(draw("path", { class: "before line", d: path(runs.map(place)) }));
    runs.forEach((run, at) => {
      const [px, py] = place(run, at);
      const sign = run.c ? draw("path", { class: "after", d: diamond(px, py, 6) }) : draw("circle", { class: "before", cx: px, cy: py, r: 3.5 });
      svg.append(spot(say(run.w), run.r, px, py, sign));
    });
    for (const [at, anchor] of [[0, "start"], [runs.length - 1, "end"]]) {
      svg.append(draw("text", { x: x.place(at), y: HEIGHT - BOTTOM + 16, "text-anchor": anchor }, runs[at].d));
    }
    return roving(svg);
  };
  const examChart = (exams) => {
    const width = Math.max(300, Math.min(720, $("charts").clientWidth - 28)), left = Math.min(300, width * 0.55);
    const height = TOP + BOTTOM + exams.length * 22, letters = Math.floor(left / 6.2);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": word("evals") });
    const values = exams.flatMap(({ y: [score, before, error, limit] }) => [score - (error || 0), score + (error || 0), before, limit]).filter((v) => v !== null);
    const x = scale(values, left, width - RIGHT, 0.06);
    for (const [value, text] of ticks(x, 4)) {
      svg.append(draw("line", { class: "grid", x1: x.place(value), x2: x.place(value), y1: TOP, y2: height - BOTTOM }),
        draw("text", { x: x.place(value), y: height - BOTTOM + 16, "text-anchor": "middle" }, text));
    }
    svg.append(draw("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle" }, word("w_score")));
    exams.forEach((exam, at) => {
      const [score, before, error, limit] = exam.y, y = TOP + at * 22 + 11, px = x.place(score), marks = [];
      svg.append(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, exam.n.length > letters ? `${exam.n.slice(0, letters - 1)}…` : exam.n));
      if (limit !== null) marks.push(draw("line", { class: "limit", x1: x.place(limit), x2: x.place(limit), y1: y - 9, y2: y + 9, "stroke-width": 2 }));
      if (before !== null) marks.push(draw("circle", { class: "before hollow", cx: x.place(before), cy: y, r: 4 }));
      if (error !== null) marks.push(draw("line", { class: "after", x1: x.place(score - error), x2: x.place(score + error), y1: y, y2: y }));
      marks.push(draw("path", { class: "after", d: diamond(px, y, 5) }));
      svg.append(spot(say(exam.w), exam.r, px, y, ...marks));
    });
    return roving(svg);
  };
  const SIGNS = {
    baseline: () => draw("circle", { class: "before hollow", cx: 12, cy: 6, r: 4 }),
    candidate: () => draw("path", { class: "after", d: diamond(12, 6, 5) }),
    interval: () => draw("line", { class: "after", x1: 12, x2: 12, y1: 0, y2: 12 }),
    error: () => draw("line", { class: "after", x1: 2, x2: 22, y1: 6, y2: 6 }),
    threshold: () => draw("line", { class: "limit", x1: 12, x2: 12, y1: 0, y2: 12, "stroke-width": 2 }),
    shared: () => draw("rect", { class: "both", x: 2, width: 20, y: 0, height: 12 }),
    bump: () => draw("line", { class: "bump dashed", x1: 12, x2: 12, y1: 0, y2: 12 }),
  };
  const legend = (...names) => make("div", { class: "legend" }, ...names.map((name) =>
    make("span", {}, draw("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" }, SIGNS[name]()), word(`w_${name}`))));
  const figure = (heading, svg, names) => make("figure", {}, heading, svg, legend(...names));
  const heading = (curve) => make("h3", {}, `${curve.n} `, verdict(curve.v));
  const chartsOf = (curve, head = null) => make("div", { class: "pair-of-charts" },
    ...(curve.pts.length ? [figure(head, curveChart(curve), ["baseline", "candidate", "interval"])] : []),
    ...(curve.his.length ? [figure(curve.pts.length ? null : head, historyChart(curve), ["candidate", "bump"])] : []));
  // Drawn at the size at which it is seen, so that its words are as large as the text.
  const measure = () => { WIDTH = Math.max(300, Math.min(480, $("charts").clientWidth - 28)); };
  const showCharts = () => {
    measure();
    const fits = wanted(), fronts = data.fronts.filter(fits), curves = data.curves.filter(fits), exams = data.exams.filter(fits).slice(0, EXAMS);
    const shown = curves.slice(0, state.charts).map((curve) => make("div", {}, chartsOf(curve, heading(curve))));
    const lines = fronts.slice(0, state.charts).map((front) => figure(heading(front), frontChart(front), ["baseline", "candidate", "shared"]));
    const scores = exams.length ? [figure(make("h3", {}, word("evals")), examChart(exams), ["baseline", "candidate", "error", "threshold"])] : [];
    $("charts").replaceChildren(...lines, ...shown, ...scores);
    const drawn = shown.length + lines.length, number = curves.length + fronts.length;
    $("charts-count").textContent = number || exams.length ? counted("charts_shown", drawn, number) : word("no_charts");
    $("more-charts").hidden = drawn === number;
  };

  // ---- tooltips -----------------------------------------------------------------------------------------------

  const tip = $("tip");
  const showTip = (target) => {
    tip.textContent = target.getAttribute("data-tip");
    tip.hidden = false;
    const box = target.querySelector(".ring").getBoundingClientRect(), own = tip.getBoundingClientRect();
    const above = box.top - own.height - 6;
    tip.style.left = `${Math.max(4, Math.min(box.left + box.width / 2 - own.width / 2, innerWidth - own.width - 4))}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  const tipped = (event) => event.target.closest && event.target.closest("[data-tip]");
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, (event) => { const on = tipped(event); if (on) showTip(on); else hideTip(); });
  document.addEventListener("focusout", hideTip);
  // The keyboard scrolls to what it focuses: its text follows, the mouse's goes.
  addEventListener("scroll", () => {
    const on = document.activeElement.closest("[data-tip]");
    if (on && !tip.hidden) showTip(on); else hideTip();
  }, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
    const on = tipped(event), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!on || !step) return;
    const spots = [...on.ownerSVGElement.querySelectorAll(".spot")];
    const next = spots[Math.max(0, Math.min(spots.length - 1, spots.indexOf(on) + step))];
    event.preventDefault();
    on.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  });

  // ---- what the reader does -----------------------------------------------------------------------------------

  const remember = () => {
    const kept = new URLSearchParams({ lang: data.langs[state.lang] });
    for (const name of ["v", "h", "e", "m", "s", "t"]) if (form.elements[name].value) kept.set(name, form.elements[name].value);
    if (form.elements.o.checked) kept.set("o", "1");
    history.replaceState(null, "", `#${kept}`);
  };
  const recall = () => {
    const kept = new URLSearchParams(location.hash.slice(1));
    const asked = data.langs.indexOf(kept.get("lang") || root.getAttribute("data-lang"));
    state.lang = Math.max(0, asked);
    return kept;
  };
  const showWords = () => {
    root.lang = data.tags[state.lang];
    document.title = say(data.title);
    root.setAttribute("data-lang", data.langs[state.lang]);
    for (const element of document.querySelectorAll("[data-w]")) element.textContent = word(element.getAttribute("data-w"));
    for (const button of document.querySelectorAll("[data-to]")) button.setAttribute("aria-pressed", String(button.getAttribute("data-to") === data.langs[state.lang]));
    $("languages").setAttribute("aria-label", word("language"));
    fillChoices();
    showHead();
  };
  const show = () => { showRows(); showCharts(); };
  // The place of the reader is the first thing with a name that reaches into the window: it keeps its distance to the top.
  const keepingPlace = (change) => {
    const seen = (element) => element.getClientRects().length > 0;
    const all = () => [...document.querySelectorAll("[data-at]")].filter(seen);
    const anchor = scrollY > 0 ? all().find((element) => element.getBoundingClientRect().bottom > 0) : null;
    const name = anchor && anchor.getAttribute("data-at"), top = anchor && anchor.getBoundingClientRect().top;
    change();
    const twin = name && all().find((element) => element.getAttribute("data-at") === name);
    if (twin) scrollBy({ top: twin.getBoundingClientRect().top - top, behavior: "instant" });
  };
  const filtered = () => { Object.assign(state, { rows: ROWS, charts: CHARTS }); show(); remember(); };

  $("languages").addEventListener("click", (event) => {
    const button = event.target.closest("[data-to]");
    if (!button) return;
    keepingPlace(() => { state.lang = data.langs.indexOf(button.getAttribute("data-to")); showWords(); show(); });
    remember();
  });
  form.addEventListener("change", filtered);
  form.elements.t.addEventListener("input", filtered);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filtered));
  $("rows").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const name = button.getAttribute("data-sort"), place = button.getAttribute("data-open");
    if (name) {
      Object.assign(state, { down: state.sort === name && !state.down, sort: name });
      showHead();
    } else if (!state.open.delete(Number(place))) state.open.add(Number(place));
    showRows();
    const again = $("rows").querySelector(name ? `[data-sort="${name}"]` : `[data-open="${place}"]`);
    if (again) again.focus();
  });
  $("more-rows").addEventListener("click", () => { state.rows += 10 * ROWS; showRows(); });
  $("more-charts").addEventListener("click", () => { state.charts += 2 * CHARTS; showCharts(); });

  let onScreen = ROWS;
  addEventListener("beforeprint", () => { onScreen = state.rows; state.rows = Infinity; showRows(); });
  addEventListener("afterprint", () => { state.rows = onScreen; showRows(); });

  const kept = recall();
  $("explore").hidden = false;
  measure();
  showWords();
  for (const name of ["v", "h", "e", "m", "s", "t"]) if (kept.has(name)) form.elements[name].value = kept.get(name);
  form.elements.o.checked = kept.has("o");
  show();
})();
