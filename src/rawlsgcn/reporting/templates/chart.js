// The picture of the explorer: scales, axes and the models' curves.
const find = (id) => document.getElementById(id);
const data = JSON.parse(find("audit-data").textContent);
const groups = data.models[0].groups;
const whole = data.log === "one more";
const state = {
  figure: "loss", axis: data.log ? "log" : "linear", models: data.models.map((_, i) => i),
  current: 0, anchor: null, brush: null, order: "worst", shown: 20,
};

// Numbers as the rest of the page has them.
const sign = (text) => text.replaceAll("-", "\u2212");
const known = (value) => value !== null && Number.isFinite(value);
// Python rounds an exact half to the even digit; so that no figure differs, so does this.
const fixed = (value, digits) => {
  const half = value.toFixed(digits);
  if (!/^50*$/.test(value.toFixed(60).split(".")[1].slice(digits))) return half;
  const down = (Math.sign(value) * Math.floor(Math.abs(value) * 10 ** digits)) / 10 ** digits;
  return +down.toFixed(digits).at(-1) % 2 ? half : down.toFixed(digits);
};
const thousands = (text) => text.replace(/\B(?=(\d{3})+\.)/g, ",");
const number = (value) => {
  if (!known(value)) return "\u2013";
  const size = Math.abs(value);
  if (size >= 1e5 || (size < 5e-4 && size > 0)) return sign(value.toExponential(1).replace(/(\D)(\d)$/, "$10$2"));
  return sign(size >= 10 ? thousands(fixed(value, 1)) : fixed(value, 3));
};
const percent = (value) => (known(value) ? sign(thousands(fixed(value, 1))).replace(/^\u22120.0$/, "0.0") : "\u2013");
const count = (value) => value.toLocaleString("en-GB");
const plain = (value) => (typeof value !== "number" ? value : sign(String(Number.isInteger(value) ? value : +value.toPrecision(6))));
const interval = ([, low, high], show) =>
  !known(low) ? "too few nodes" : known(high) ? `${show(low)} to ${show(high)}` : `over ${show(low)}`;

// Elements: text is always set as text, never as markup.
const SVG = "http://www.w3.org/2000/svg";
const draw = (parent, tag, attributes, text) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
};
const row = (cells, into) => {
  const made = document.createElement("tr");
  cells.forEach((cell, place) => {
    const each = document.createElement(place ? "td" : "th");
    if (!place) each.scope = "row";
    each.append(...[cell].flat());
    made.append(each);
  });
  into.append(made);
};

// Color, mark and dash of a model.
const DASHES = ["", "12 4", "4 3", "16 4 4 4", "8 2 2 2 2 2", "2 2"];
const color = (series) => `var(--series-${series % 6})`;
const mark = (series, x, y, r) => {
  const shape = series % 6;
  if (shape === 0) return `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`;
  const points = [
    null, [[-1, -1], [1, -1], [1, 1], [-1, 1]], [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]],
    [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]], [[0, 1.2], [1.1, -0.9], [-1.1, -0.9]],
    [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  ][shape];
  return `M${points.map(([a, b]) => `${x + a * r},${y + b * r}`).join("L")}Z`;
};

// Scales.
const logged = () => state.axis === "log" && data.log;
const stretch = (value) => (logged() ? Math.log(value + (whole ? 1 : 0)) : value);
const shrink = (place) => (logged() ? Math.exp(place) - (whole ? 1 : 0) : place);
const nice = (low, high, wanted) => {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) ticks.push(at * step || 0);
  return ticks;
};
const logTicks = (low, high) => {
  const ticks = whole && low <= 0 ? [0] : [];
  for (let power = -12; power < 13; power++)
    for (const step of [1, 2, 5]) {
      const tick = step * 10 ** power;
      if (tick >= low && tick <= high && (!whole || tick >= 1)) ticks.push(tick);
    }
  return ticks;
};

let view = null; // the scales of the last drawing, for the pointer
const plot = find("plot");

const scales = () => {
  const width = Math.max(280, plot.clientWidth || 280);
  const height = width < 520 ? 300 : 380;
  const box = { left: 56, right: width - 14, top: 14, bottom: height - 46 };
  const chosen = state.models.map((series) => ({ ...data.models[series], series }));
  const value = state.figure === "loss" ? 2 : 3;
  const sound = chosen.flatMap((model) => [
    ...model.groups.filter((group) => !group.small).map((group) => group[state.figure][0]),
    ...model.dots.map((dot) => dot[value]),
  ].filter(known));
  // The interval of a skewed loss may be so long that it would leave the means no room.
  const most = state.figure === "loss" ? 2 * Math.max(0, ...sound) || Infinity : Infinity;
  for (const model of chosen)
    for (const group of model.groups.filter((each) => !each.small))
      sound.push(...group[state.figure].slice(1).filter(known).map((end) => Math.min(end, most)));
  const ys = sound.length ? sound : chosen.flatMap((model) => model.groups.map((group) => group[state.figure][0]).filter(known));
  let [bottom, top] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1];
  const room = 0.06 * (top - bottom || Math.abs(top) || 1);
  [bottom, top] = [bottom - room, top + room];
  bottom = Math.max(0, bottom);
  if (state.figure === "accuracy") top = Math.min(101, top);
  let [low, high] = data.ordered
    ? [stretch(Math.min(...groups.map((g) => g.low))), stretch(Math.max(...groups.map((g) => g.high)))]
    : [-0.5, groups.length - 0.5];
  const side = data.ordered ? 0.03 * (high - low || 1) : 0;
  [low, high] = [low - side, high + side];
  const x = (place) => box.left + ((place - low) / (high - low)) * (box.right - box.left);
  // What is too small to count for the scale may lie beyond it, and then stands at the edge.
  const y = (each) => box.bottom - ((Math.min(top, Math.max(bottom, each)) - bottom) / (top - bottom)) * (box.bottom - box.top);
  const back = (pixel) => low + ((pixel - box.left) / (box.right - box.left)) * (high - low);
  const extent = (place) => {
    const group = groups[place];
    const ends = data.ordered ? [x(stretch(group.low)), x(stretch(group.high))] : [x(place - 0.4), x(place + 0.4)];
    const wide = Math.max(0, 5 - (ends[1] - ends[0]) / 2);
    return [ends[0] - wide, ends[1] + wide];
  };
  return { width, height, box, chosen, value, low, high, bottom, top, x, y, back, extent };
};

const axes = (root) => {
  const { box, x, y, low, high, bottom, top } = view;
  for (const tick of nice(bottom, top, 5)) {
    draw(root, "path", { class: "rule", d: `M${box.left},${y(tick)}H${box.right}` });
    draw(root, "text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, plain(tick));
  }
  const ticks = !data.ordered
    ? groups.map((group, place) => [place, group.label])
    : (logged() ? logTicks(shrink(low), shrink(high)) : nice(low, high, Math.min(8, (box.right - box.left) / 70)))
        .filter((tick) => !whole || Number.isInteger(tick) && tick >= 0)
        .map((tick) => [stretch(tick), count(tick)]);
  let last = -Infinity;
  for (const [place, text] of ticks) {
    const room = data.ordered ? 4 : (box.right - box.left) / groups.length / 7.5;
    const words = data.ordered || text.length <= room ? text : `${text.slice(0, Math.max(1, room - 1))}\u2026`;
    const half = words.length * 3.8;
    if (x(place) - half < last + 6) continue;
    last = x(place) + half;
    draw(root, "path", { class: "rule", d: `M${x(place)},${box.top}V${box.bottom}` });
    draw(root, "text", { x: x(place), y: box.bottom + 18, "text-anchor": "middle" }, words);
  }
  draw(root, "path", { class: "axis", d: `M${box.left},${box.top}V${box.bottom}H${box.right}` });
  draw(root, "text", { x: (box.left + box.right) / 2, y: view.height - 8, "text-anchor": "middle" }, data.column);
  const name = state.figure === "loss" ? "average loss" : "accuracy (%)";
  draw(root, "text", { transform: `translate(14 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, name);
};

const series = (root, model) => {
  const { x, y, chosen, value } = view;
  const fill = color(model.series);
  const shift = data.ordered ? 0 : 12 * (chosen.indexOf(model) - (chosen.length - 1) / 2);
  const at = (group, place) => (data.ordered ? x(stretch(logged() ? group.logAt : group.at)) : x(place) + shift);
  const most = Math.max(1, ...model.dots.map((dot) => dot[1]));
  if (model.dots.length > model.groups.length)
    for (const dot of model.dots)
      if (known(dot[value]))
        draw(root, "path", { class: "dot", style: `fill: ${fill}`, d: mark(model.series, x(stretch(dot[0])), y(dot[value]), 1.6 + 3.4 * Math.sqrt(dot[1] / most)) });
  const parts = [[]];
  model.groups.forEach((group, place) => {
    const [mean, low, high] = group[state.figure];
    if (known(mean) && known(low) && known(high)) parts.at(-1).push([at(group, place), y(low), y(high)]);
    else parts.push([]);
  });
  if (data.ordered) {
    for (const part of parts.filter((each) => each.length > 1)) {
      const upper = part.map(([a, , c]) => `${a},${c}`), lower = part.map(([a, b]) => `${a},${b}`).reverse();
      draw(root, "path", { class: "band", style: `fill: ${fill}`, d: `M${[...upper, ...lower].join("L")}Z` });
    }
    const line = model.groups.map((group, place) => [at(group, place), group.small ? null : group[state.figure][0]]).filter(([, each]) => known(each));
    if (line.length)
      draw(root, "path", { style: `fill: none; stroke: ${fill}; stroke-width: 2.2`, "stroke-dasharray": DASHES[model.series % 6], d: `M${line.map(([a, b]) => `${a},${y(b)}`).join("L")}` });
  } else
    for (const [a, low, high] of parts.flat()) draw(root, "path", { style: `stroke: ${fill}; stroke-width: 4; opacity: .4`, d: `M${a},${low}V${high}` });
  model.groups.forEach((group, place) => {
    const [mean, , high] = group[state.figure];
    if (known(high) && high > view.top)
      draw(root, "path", { class: "cut", style: `fill: ${fill}`, d: mark(2, at(group, place), y(high), 4) });
    if (known(mean))
      draw(root, "path", { class: "mark", style: `fill: ${group.small ? "var(--card)" : fill}; stroke: ${fill}; stroke-width: 1.6; opacity: ${group.small ? 0.5 : 1}`, d: mark(model.series, at(group, place), y(mean), group.small ? 3 : 4.6) });
  });
};

const paint = () => {
  view = scales();
  plot.replaceChildren();
  const root = draw(plot, "svg", { viewBox: `0 0 ${view.width} ${view.height}`, "aria-hidden": "true" });
  const { box } = view;
  const [left, right] = view.extent(state.current);
  draw(root, "rect", { class: "at", x: left, y: box.top, width: right - left, height: box.bottom - box.top });
  axes(root);
  if (state.brush) {
    const [from, to] = data.ordered
      ? state.brush.map((each) => Math.min(box.right, Math.max(box.left, view.x(stretch(Math.max(each, whole ? 0 : each))))))
      : view.extent(state.brush[0]);
    draw(root, "rect", { class: "held", x: Math.min(from, to) - 3, y: box.top, width: Math.abs(to - from) + 6, height: box.bottom - box.top });
  }
  for (const model of view.chosen) series(root, model);
};
