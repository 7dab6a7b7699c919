// The explorer: what pointer, keyboard and controls do to the picture and the tables.
const readout = () => {
  const group = groups[state.current];
  const name = `${data.column} ${group.label}: ${count(group.nodes)} ${group.nodes === 1 ? "node" : "nodes"}, ${percent(group.share)} % of all`;
  find("readout-name").textContent = name + (group.small ? " (too few nodes for an interval)" : "");
  const body = find("readout").tBodies[0];
  body.replaceChildren();
  const said = [name];
  for (const model of state.models.map((place) => data.models[place])) {
    const own = model.groups[state.current];
    row([model.name, ...[[own.loss, number], [own.accuracy, percent]].map(([each, show]) => {
      const ends = document.createElement("span");
      [ends.className, ends.textContent] = ["interval", `(${interval(each, show)})`];
      return [`${show(each[0])} `, ends];
    })], body);
    said.push(`${model.name}: loss ${number(own.loss[0])}, accuracy ${percent(own.accuracy[0])} %`);
  }
  plot.setAttribute("aria-valuemax", groups.length);
  plot.setAttribute("aria-valuenow", state.current + 1);
  plot.setAttribute("aria-valuetext", said.join("; "));
};

const alone = new Set(groups.filter((group) => !group.pooled).map((group) => group.label));
const inside = () => {
  const all = data.nodes.id.map((_, place) => place);
  if (!state.brush) return all;
  const { value } = data.nodes;
  if (!data.ordered) {
    const group = groups[state.brush[0]];
    return all.filter((place) => (group.pooled ? !alone.has(String(value[place])) : String(value[place]) === group.label));
  }
  return all.filter((place) => value[place] >= state.brush[0] && value[place] <= state.brush[1]);
};

const named = (label) => data.nodes.classes?.[label] ?? String(label);
const listing = () => {
  if (!data.nodes) return;
  const { nodes } = data;
  const chosen = inside();
  const by = nodes.models[state.models[0] ?? 0].loss;
  const size = { worst: (p) => -(by[p] ?? Infinity), best: (p) => by[p] ?? Infinity, low: (p) => nodes.degree[p], high: (p) => -nodes.degree[p] }[state.order];
  // A loss that is not a number is the worst there is.
  chosen.sort((a, b) => size(a) - size(b) || a - b);
  const body = find("node-table").tBodies[0];
  body.replaceChildren();
  for (const place of chosen.slice(0, state.shown))
    row([
      plain(nodes.id[place]), count(nodes.degree[place]), ...(data.column === "degree" ? [] : [plain(nodes.value[place])]), named(nodes.label[place]),
      ...nodes.models.flatMap((model) => {
        const guess = model.predicted[place];
        if (guess === null) return ["\u2013", "\u2013"];
        const wrong = document.createElement("span");
        [wrong.className, wrong.textContent] = ["wrong", "wrong"];
        return [guess === nodes.label[place] ? named(guess) : [`${named(guess)} `, wrong], number(model.loss[place])];
      }),
    ], body);
  const range = !state.brush ? "" : data.ordered ? ` with ${data.column} ${plain(state.brush[0])} to ${plain(state.brush[1])}` : ` with ${data.column} ${groups[state.brush[0]].label}`;
  const sampled = nodes.id.length < nodes.of ? ` (of a sample of ${count(nodes.id.length)} of the ${count(nodes.of)} evaluated)` : "";
  const means = state.models.map((series) => {
    const { loss, predicted } = nodes.models[series];
    const own = chosen.filter((place) => predicted[place] !== null);
    const right = own.filter((place) => predicted[place] === nodes.label[place]).length;
    const total = own.reduce((sum, place) => sum + (loss[place] ?? NaN), 0);
    return own.length ? ` ${data.models[series].name}: mean loss ${number(total / own.length)}, ${percent((100 * right) / own.length)} % right.` : "";
  });
  find("node-status").textContent = `${count(chosen.length)} ${chosen.length === 1 ? "node" : "nodes"}${range}${sampled}; ${count(Math.min(state.shown, chosen.length))} shown.${means.join("")}`;
  find("more").hidden = chosen.length <= state.shown;
};

const hold = (brush, typed = false) => {
  state.brush = brush;
  state.shown = 20;
  if (data.nodes && data.ordered && !typed)
    ["from", "to"].forEach((id, end) => { find(id).value = brush ? +brush[end].toPrecision(6) : ""; });
  if (data.nodes && !data.ordered) find("group").value = brush ? brush[0] : "";
  paint();
  listing();
};
const holdGroups = (a, b) =>
  hold(data.ordered ? [groups[Math.min(a, b)].low, groups[Math.max(a, b)].high] : [b, b]);
const point = (place) => {
  if (place === state.current) return;
  state.current = place;
  paint();
  readout();
};

// The pointer.
const pixel = (event) => ((event.clientX - plot.getBoundingClientRect().left) / plot.clientWidth) * view.width;
const nearest = (at) => {
  const away = groups.map((_, place) => {
    const [left, right] = view.extent(place);
    return Math.max(left - at, at - right, 0) + 1e-3 * Math.abs((left + right) / 2 - at);
  });
  return away.indexOf(Math.min(...away));
};
const rounded = (value, way) => (whole ? Math.max(0, way(value)) : value);
let drag = null;
plot.addEventListener("pointerdown", (event) => {
  drag = { from: pixel(event), moved: false };
  plot.setPointerCapture(event.pointerId);
});
plot.addEventListener("pointermove", (event) => {
  const at = pixel(event);
  point(nearest(at));
  if (!drag || !data.ordered) return;
  drag.moved ||= Math.abs(at - drag.from) > 5;
  if (!drag.moved) return;
  // A value counts as brushed from three pixels beside its place.
  const [left, right] = [drag.from, at].sort((a, b) => a - b);
  const ends = [left - 3, right + 3].map((each) => shrink(view.back(each)));
  const [low, high] = [rounded(ends[0], Math.ceil), rounded(ends[1], Math.floor)];
  hold([low, Math.max(low, high)]);
});
plot.addEventListener("pointerup", () => {
  if (drag && !drag.moved) holdGroups(state.current, state.current);
  drag = null;
});
plot.addEventListener("pointercancel", () => { drag = null; });

// The keyboard.
plot.addEventListener("keydown", (event) => {
  const last = groups.length - 1;
  const to = { ArrowLeft: state.current - 1, ArrowDown: state.current - 1, ArrowRight: state.current + 1, ArrowUp: state.current + 1, Home: 0, End: last }[event.key];
  if (to !== undefined) {
    if (!event.shiftKey) state.anchor = null;
    else state.anchor ??= state.current;
    point(Math.min(last, Math.max(0, to)));
    if (event.shiftKey) holdGroups(state.anchor, state.current);
  } else if (event.key === "Enter" || event.key === " ") holdGroups(state.current, state.current);
  else if (event.key === "Escape") hold(null);
  else return;
  event.preventDefault();
});

// The controls.
find("controls").addEventListener("submit", (event) => event.preventDefault());
find("controls").addEventListener("change", (event) => {
  const { name, value } = event.target;
  if (name === "model") state.models = [...find("controls").querySelectorAll("[name=model]:checked")].map((each) => +each.value);
  else state[name] = value;
  paint();
  readout();
  if (name === "model") listing();
});
if (data.nodes) {
  const typed = () => {
    const [from, to] = ["from", "to"].map((id) => find(id).valueAsNumber);
    if (Number.isNaN(from) && Number.isNaN(to)) hold(null, true);
    else {
      const low = Number.isNaN(from) ? groups[0].low : from;
      hold([low, Number.isNaN(to) ? Math.max(low, groups.at(-1).high) : to], true);
    }
  };
  if (data.ordered) {
    for (const id of ["from", "to"]) find(id).addEventListener("input", typed);
    find("clear").addEventListener("click", () => hold(null));
  } else {
    groups.forEach((group, place) => find("group").append(new Option(group.label, place)));
    find("group").addEventListener("change", (event) => hold(event.target.value === "" ? null : [+event.target.value, +event.target.value]));
  }
  find("order").addEventListener("change", (event) => { state.order = event.target.value; listing(); });
  find("more").addEventListener("click", () => { state.shown += 100; listing(); });
  find("brush").addEventListener("submit", (event) => event.preventDefault());
  find("brush").hidden = false;
}
for (const key of document.querySelectorAll("svg.key")) {
  const place = +key.dataset.series;
  draw(key, "path", { style: `fill: none; stroke: ${color(place)}; stroke-width: 2`, "stroke-dasharray": DASHES[place % 6], d: "M0,6H28" });
  draw(key, "path", { style: `fill: ${color(place)}`, d: mark(place, 14, 6, 4) });
}

find("static-curves").hidden = true;
find("explorer").hidden = false;
new ResizeObserver(() => { if (plot.clientWidth !== view?.width) paint(); }).observe(plot);
paint();
readout();
listing();

// On paper everything is open.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const each of closed) each.open = true;
});
addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
