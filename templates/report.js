"use strict";
// The data are offsets of the plan's layouts; all that happens here is to add them up and to show what they say.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [blockM, blockN, blockK] = data.block;
  const tiles = Math.sqrt(data.blocks.length);
  const $ = (id) => document.getElementById(id);
  const state = { view: "warp", block: 0, m: 0, n: 0, k: 0, pinned: false, moment: 0 };

  // ---- Tables, filled once: element -> owner ---------------------------------------------------------------------
  function owners(rows, columns, thread_i, thread_j, value_i, value_j) {
    const table = new Array(rows * columns).fill(null);
    thread_i.forEach((i0, thread) => value_i.forEach((i1, i) => value_j.forEach((j1, j) => {
      table[(i0 + i1) * columns + thread_j[thread] + j1] = { thread, i, j };
    })));
    return table;
  }
  const c = data.c;
  const owner = owners(blockM, blockN, c.thread_m, c.thread_n, c.value_m, c.value_n);
  for (const operand of data.operands) {
    const copy = operand.copy;
    operand.extent = operand.x === "m" ? blockM : blockN;
    operand.copier = owners(operand.extent, blockK, copy.thread_x, copy.thread_k, copy.element_x, copy.element_k);
  }

  // ---- What one element needs ------------------------------------------------------------------------------------
  // The elements of the one load that brings operand(x, k) to the thread, and where each came from.
  function load(operand, first, values, index, thread) {
    const { shared, copy, vector } = operand;
    const alongK = operand.along === "k";
    const at = alongK ? state.k : index;
    const piece = Math.floor(at / vector) * vector;
    const own = first + values[index];
    return Array.from({ length: vector }, (_, v) => {
      const x = alongK ? own : operand.atom ? Math.floor(own / vector) * vector + v : first + values[piece + v];
      const k = alongK ? piece + v : state.k;
      const [along, across] = operand.contiguous === operand.x ? [x, `k ${k}`] : [k, `${operand.x} ${x}`];
      const sector = operand.contiguous ? `${Math.floor(along * operand.itemsize / data.sectorBytes)} of ${across}` : "its own";
      const found = { x, k, sector, self: operand.atom ? x === own && k === state.k : piece + v === at };
      if (!shared) return { ...found, pass: copy.pass[alongK ? index : piece + v][k], thread };
      const { mask, shift } = shared.swizzle;
      const plain = shared.element_x[x] + shared.element_k[k];
      const offset = plain ^ (shift < 0 ? (plain & mask) << -shift : (plain & mask) >> shift);
      const word = Math.floor(offset * operand.itemsize / 4);
      const by = operand.copier[x * blockK + k];
      return { ...found, word, bank: (shared.first_word + word) % data.banks, thread: by.thread, pass: copy.pass[by.i][by.j] };
    });
  }

  // ---- Drawing ---------------------------------------------------------------------------------------------------
  const SVG = "http://www.w3.org/2000/svg";
  function rect(parent, look, column, row, columns, rows) {
    const node = document.createElementNS(SVG, "rect");
    const u = data.unit;
    for (const [name, value] of Object.entries({ class: look, x: column * u, y: row * u, width: columns * u, height: rows * u })) {
      node.setAttribute(name, value);
    }
    parent.append(node);
  }
  // Sorted offsets -> [start, length] of each contiguous span.
  function spans(first, values) {
    const found = [];
    for (const at of values.map((v) => first + v).sort((a, b) => a - b)) {
      const last = found[found.length - 1];
      if (last && last[0] + last[1] === at) last[1] += 1;
      else found.push([at, 1]);
    }
    return found;
  }
  function element(tag, text, look) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (look) node.className = look;
    return node;
  }

  function showMarks(thread) {
    for (const id of ["marks-a", "marks-b", "marks-c"]) $(id).replaceChildren();
    const cursor = $("cursor");
    const u = data.unit;
    const inBlock = state.view === "block";
    const [width, height] = inBlock ? [blockN / tiles, blockM / tiles] : [1, 1];
    const [m, n] = inBlock ? [data.blocks[state.block][0] / blockM, data.blocks[state.block][1] / blockN] : [state.m, state.n];
    cursor.classList.toggle("around", inBlock);
    Object.entries({ x: n * width * u, y: m * height * u, width: width * u, height: height * u })
      .forEach(([name, value]) => cursor.setAttribute(name, value));
    if (inBlock) return;
    const rows = spans(c.thread_m[thread], c.value_m);
    const columns = spans(c.thread_n[thread], c.value_n);
    for (const [row, count] of rows) {
      rect($("marks-a"), "read rest", 0, row, blockK, count);
      rect($("marks-a"), "read", state.k, row, 1, count);
      for (const [column, wide] of columns) rect($("marks-c"), "own", column, row, wide, count);
    }
    for (const [column, wide] of columns) {
      rect($("marks-b"), "read rest", column, 0, wide, blockK);
      rect($("marks-b"), "read", column, state.k, wide, 1);
    }
  }

  function facts(list, pairs) {
    list.replaceChildren(...pairs.map(([name, value]) => {
      const box = element("div");
      box.append(element("dt", name), element("dd", String(value)));
      return box;
    }));
  }

  // What one load brings; value: the thread's, in the operand's own mode.
  function table(operand, words, warp, value) {
    const { shared, vector } = operand;
    const node = element("table");
    const ks = words[0].k === words[words.length - 1].k ? `${state.k}` : `${words[0].k} to ${words[words.length - 1].k}`;
    let what = `${operand.name} at k = ${ks}: one ${vector * operand.itemsize}-byte ${operand.brings}`;
    if (shared && shared.wavefronts) {
      const warps = c.thread_m.length / data.warpSize;
      const number = operand.atom
        ? shared.loads[words.find((w) => w.self).x][state.k % shared.depth]
        : operand.along === "k" ? value : Math.floor(value / vector);
      const [takes, free] = shared.wavefronts[(Math.floor(state.k / shared.depth) * shared.vectors + number) * warps + warp];
      what += `, ${takes} wavefront${takes === 1 ? "" : "s"}${takes > free ? `, ${free} without conflicts` : ""}`;
    } else if (!shared) what += " from global memory";
    node.append(element("caption", what));
    const head = element("tr");
    const passes = operand.copy.pass.flat().some((p) => p > 0);
    for (const name of [`(${operand.x}, k)`, ...(shared ? ["word", "bank", "sector", "copied by"] : ["sector", "loaded by"])]) {
      const cell = element("th", name);
      cell.scope = "col";
      head.append(cell);
    }
    node.append(head);
    for (const word of words) {
      const row = element("tr", undefined, word.self ? "this" : "");
      const by = `thread ${word.thread}${passes ? `, pass ${word.pass}` : ""}`;
      for (const text of [`(${word.x}, ${word.k})`, ...(shared ? [word.word, word.bank] : []), word.sector, by]) {
        row.append(element("td", String(text)));
      }
      node.append(row);
    }
    return shared ? [node, bankRow(words)] : [node];
  }

  function bankRow(words) {
    const strip = element("div", undefined, "bankrow");
    strip.setAttribute("role", "img");
    strip.setAttribute("aria-label", `Banks ${words.map((w) => w.bank).join(", ")} of ${data.banks}`);
    for (let bank = 0; bank < data.banks; bank += 1) {
      const hit = words.filter((w) => w.bank === bank);
      const cell = element("i", undefined, hit.length ? `hit${hit.some((w) => w.self) ? " this" : ""}` : "");
      cell.title = `bank ${bank}`;
      strip.append(cell);
    }
    return strip;
  }

  // Where words and sectors count from, or why there are no words.
  function origins(a, b) {
    const sectors = `Sectors of ${data.sectorBytes} bytes count from the tile's edge.`;
    if (!a.shared) return `No shared memory, so there are no words and banks to show: the thread loads all this for itself. ${sectors}`;
    const [, nextA] = a.shared.word_stage;
    const [, nextB] = b.shared.word_stage;
    const stages = nextA === undefined ? "Words count in the operand's only stage." : `Words in the first stage; each next one lies ${nextA} (A) and ${nextB} (B) on.`;
    return `${stages} ${sectors}`;
  }

  function showBlock() {
    const [m0, n0] = data.blocks[state.block];
    $("info-title").textContent = `Block ${state.block}`;
    $("summary").textContent = `Block ${state.block}: rows ${m0} to ${m0 + blockM - 1} and columns ${n0} to ${n0 + blockN - 1} of C, in a problem of ${tiles} × ${tiles} block tiles.`;
    facts($("owner"), [["block", state.block], ["tile m", m0 / blockM], ["tile n", n0 / blockN], ["threads", c.thread_m.length]]);
    $("reads").replaceChildren(element("p", `It reads rows ${m0} to ${m0 + blockM - 1} of A and columns ${n0} to ${n0 + blockN - 1} of B, ${blockK} of k at a time. Enter or a click looks into it.`, "quiet"));
    showMarks(0);
  }

  function showElement() {
    const { m, n } = state;
    const [m0, n0] = data.blocks[state.block];
    const { thread, i, j } = owner[m * blockN + n];
    const warp = Math.floor(thread / data.warpSize);
    const lane = thread % data.warpSize;
    const register = i + c.value_m.length * j;
    $("info-title").textContent = `Element C(${m0 + m}, ${n0 + n})`;
    const inTile = m0 || n0 ? ` (${m}, ${n} of block ${state.block})` : "";
    $("summary").textContent = `C(${m0 + m}, ${n0 + n})${inTile}: thread ${thread}, warp ${warp}, lane ${lane}, accumulator ${register}, its value (${i}, ${j}).${state.pinned ? " Kept." : ""}`;
    facts($("owner"), [["warp", warp], ["lane", lane], ["thread", thread], ["accumulator", register]]);
    const [a, b] = data.operands;
    $("reads").replaceChildren(
      ...table(a, load(a, c.thread_m[thread], c.value_m, i, thread), warp, i),
      ...table(b, load(b, c.thread_n[thread], c.value_n, j, thread), warp, j),
      element("p", origins(a, b), "quiet"),
    );
    showMarks(thread);
  }

  function show() {
    for (const node of document.querySelectorAll(".view")) node.classList.toggle("shown", node.dataset.view === state.view);
    for (const node of document.querySelectorAll("button[data-view]")) node.setAttribute("aria-pressed", String(node.dataset.view === state.view));
    $("strips").style.visibility = state.view === "block" ? "hidden" : "visible";
    $("map-title").textContent = state.view === "block" ? "C, block by block" : `C, the tile of block ${state.block}`;
    $("k").value = String(state.k);
    $("k-value").textContent = String(state.k);
    if (state.view === "block") showBlock();
    else showElement();
  }

  // ---- Pointing: mouse, then keys --------------------------------------------------------------------------------
  const map = $("map");
  const clamp = (value, extent) => Math.min(extent - 1, Math.max(0, value));
  function blockAt(m, n) {
    return data.blocks.findIndex(([m0, n0]) => m0 === m * blockM && n0 === n * blockN);
  }
  function point(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform($("c").getScreenCTM().inverse());
    const m = Math.floor(at.y / data.unit);
    const n = Math.floor(at.x / data.unit);
    if (m < 0 || n < 0 || m >= blockM || n >= blockN) return false;
    if (state.view === "block") state.block = blockAt(Math.floor(m * tiles / blockM), Math.floor(n * tiles / blockN));
    else Object.assign(state, { m, n });
    return true;
  }
  function enter() {
    if (state.view === "block") state.view = "warp";
    else state.pinned = !state.pinned;
    show();
  }
  map.addEventListener("pointermove", (event) => { if (!state.pinned && point(event)) show(); });
  map.addEventListener("click", (event) => {
    if (state.pinned && point(event)) { state.pinned = false; show(); }
    else if (point(event)) enter();
  });
  map.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in moves) {
      const [down, right] = moves[event.key].map((move) => move * (event.shiftKey ? 8 : 1));
      if (state.view === "block") {
        const [m0, n0] = data.blocks[state.block];
        state.block = blockAt(clamp(m0 / blockM + down, tiles), clamp(n0 / blockN + right, tiles));
      } else {
        Object.assign(state, { m: clamp(state.m + down, blockM), n: clamp(state.n + right, blockN) });
      }
      show();
    } else if (event.key === "Enter" || event.key === " ") enter();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "[" && event.key !== "]") return;
    state.k = clamp(state.k + (event.key === "]" ? 1 : -1), blockK);
    show();
  });
  for (const node of document.querySelectorAll("button[data-view]")) {
    node.addEventListener("click", () => { state.view = node.dataset.view; show(); });
  }
  $("k").max = String(blockK - 1);
  $("k").addEventListener("input", (event) => { state.k = Number(event.target.value); show(); });

  // ---- The pipeline ----------------------------------------------------------------------------------------------
  const lanes = $("lanes");
  const step = Number(lanes.dataset.step);
  function showMoment() {
    const moment = data.moments[state.moment];
    const part = element("b", moment.part);
    $("moment").replaceChildren(part, ` step ${state.moment + 1} of ${data.moments.length}: ${moment.text}`);
    $("stages").replaceChildren(...moment.stages.map((stage, index) => {
      const looks = ["writes", "reads"].filter((does) => moment[does].includes(index));
      const box = element("div", undefined, looks.join(" "));
      const does = looks.length ? (looks[0] === "writes" ? "written now" : "read now") : "";
      box.append(element("small", `${data.stages[index]}${does ? `: ${does}` : ""}`));
      box.append(element("strong", stage.tile === null ? "empty" : `tile ${stage.tile} ${stage.state}`));
      return box;
    }));
    $("now").setAttribute("x", String(state.moment * step));
    const scroll = lanes.parentElement;
    scroll.scrollLeft = Math.max(0, state.moment * step - scroll.clientWidth / 2);
  }
  function partStart(by) {
    const parts = data.moments.map((moment) => moment.part);
    const starts = parts.map((part, index) => (index === 0 || parts[index - 1] !== part ? index : -1)).filter((s) => s >= 0);
    return by > 0 ? starts.find((s) => s > state.moment) ?? state.moment : starts.filter((s) => s < state.moment).pop() ?? 0;
  }
  const goes = {
    "back": () => state.moment - 1, "on": () => state.moment + 1,
    "part-back": () => partStart(-1), "part-on": () => partStart(1),
  };
  for (const node of document.querySelectorAll("button[data-step]")) {
    node.addEventListener("click", () => { state.moment = clamp(goes[node.dataset.step](), data.moments.length); showMoment(); });
  }
  lanes.addEventListener("click", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform($("now").getScreenCTM().inverse());
    state.moment = clamp(Math.floor(at.x / step), data.moments.length);
    showMoment();
  });

  // ---- Light and dark --------------------------------------------------------------------------------------------
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  Object.assign(state, { m: c.thread_m[data.start] + c.value_m[0], n: c.thread_n[data.start] + c.value_n[0] });
  show();
  showMoment();
})();
