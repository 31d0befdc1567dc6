"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = data.charts;
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const shown = (x) => (x === null || x === undefined ? "" : x.toFixed(4));
  const views = {};

  const dark = () => root.dataset.theme === "dark";
  const ink = () => (dark() ? "#e8eaed" : "#1b1f24");
  const blue = () => (dark() ? "#56b4e9" : "#0072b2");
  const orange = () => (dark() ? "#e69f00" : "#b35900");
  const grey = () => (dark() ? "#7b8590" : "#9aa3ad");
  const config = () => ({
    background: "transparent",
    view: { stroke: null },
    axis: { labelColor: ink(), titleColor: ink(), gridColor: dark() ? "#2a3037" : "#e4e8ec", domainColor: grey(), tickColor: grey(), labelLimit: 160 },
    legend: { labelColor: ink(), titleColor: ink(), orient: "top", title: null },
    font: "system-ui, sans-serif",
  });

  const draw = (id, spec) => {
    const place = find(id);
    if (!place) return Promise.resolve();
    const whole = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", autosize: { type: "fit-x", contains: "padding" }, config: config(), ...spec };
    return vegaEmbed(place, whole, { actions: false, renderer: "svg", tooltip: true }).then((made) => { views[id] = made.view; });
  };

  const x = (field, title, extra) => ({ field, type: "quantitative", title, ...extra });
  const unit = { scale: { domain: [0, 1] } };

  function reliability(view, method, stop) {
    const corp = method === "corp";
    const rows = corp
      ? view.corp.flatMap(([low, high, rate, n], block) => [[low, rate, n, block], [high, rate, n, block]].map(([p, y, rows_, b]) => ({ stated: p, observed: y, rows: Math.round(rows_), block: b })))
      : view.bins[method][stop].points.map(([p, y, n, low, high]) => ({ stated: p, observed: y, rows: Math.round(n), low, high }));
    const tooltip = [
      { field: "stated", title: corp ? "score" : "stated", format: ".4f" }, { field: "observed", title: "observed", format: ".4f" },
      { field: "rows", title: "rows", format: "," },
    ];
    if (!corp) tooltip.push({ field: "low", title: "calibrated from", format: ".4f" }, { field: "high", title: "to", format: ".4f" });
    const diagonal = { data: { values: [{ a: 0, b: 0 }, { a: 1, b: 1 }] }, mark: { type: "line", strokeDash: [5, 4], color: grey() }, encoding: { x: x("a", "stated probability", unit), y: x("b", "observed share", unit) } };
    const band = { mark: { type: "rule", strokeWidth: 7, opacity: 0.45, color: grey() }, encoding: { x: x("stated", "stated probability", unit), y: x("low", "observed share", unit), y2: { field: "high" } } };
    const line = { mark: { type: "line", color: blue(), point: { filled: true, size: corp ? 12 : 55, color: blue() }, interpolate: "linear" }, encoding: { x: x("stated", "stated probability", unit), y: x("observed", "observed share", unit), tooltip } };
    return { height: 320, data: { values: rows }, layer: corp ? [diagonal, line] : [diagonal, band, line] };
  }

  function stability(view, method, stop) {
    const kind = method === "corp" ? "mass" : method;
    const rows = charts.stops.map((n) => ({ bins: n, ece: view.bins[kind][n].ece }));
    const lines = Object.entries(view.lines).filter(([name]) => !/^ECE$/.test(name)).map(([name, value]) => ({ name, value }));
    const layer = [
      { mark: { type: "line", color: blue(), point: { filled: true, color: blue() } }, encoding: { x: x("bins", "number of bins", { scale: { type: "log", nice: false } }), y: x("ece", "calibration error"), tooltip: [{ field: "bins" }, { field: "ece", format: ".4f" }] } },
      { data: { values: rows.filter((row) => row.bins === Number(stop)) }, mark: { type: "point", size: 220, color: orange(), strokeWidth: 3 }, encoding: { x: x("bins"), y: x("ece") } },
    ];
    if (lines.length) layer.push({ data: { values: lines }, mark: { type: "rule", strokeDash: [6, 4], strokeWidth: 2 }, encoding: { y: x("value"), color: { field: "name", type: "nominal", scale: { scheme: dark() ? "set2" : "dark2" } }, tooltip: [{ field: "name" }, { field: "value", format: ".4f" }] } });
    return { height: 320, data: { values: rows }, layer };
  }

  function histogram(view) {
    const n = view.histogram.length;
    const rows = view.histogram.map((share, k) => ({ from: k / n, to: (k + 1) / n, share }));
    return { height: 200, data: { values: rows }, mark: { type: "bar", color: blue(), binSpacing: 0 }, encoding: { x: { field: "from", type: "quantitative", bin: { binned: true, step: 1 / n }, title: "stated probability", ...unit }, x2: { field: "to" }, y: x("share", "share of rows"), tooltip: [{ field: "from", format: ".3f" }, { field: "to", format: ".3f" }, { field: "share", format: ".4f" }] } };
  }

  function forest(rows) {
    const y = { field: "name", type: "nominal", sort: null, title: null };
    return { height: 22 * rows.length + 10, data: { values: rows }, layer: [
      { mark: { type: "rule", strokeWidth: 2, color: grey() }, encoding: { y, x: x("low", "calibration error"), x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 70, color: blue() }, encoding: { y, x: x("value", "calibration error"), tooltip: [{ field: "name", title: "group" }, { field: "n", title: "rows", format: "," }, { field: "value", title: "error", format: ".4f" }, { field: "low", format: ".4f" }, { field: "high", format: ".4f" }, { field: "p", title: "p-value", format: ".3g" }] } },
    ] };
  }

  function curve(c) {
    const rows = c.x.map((value, k) => ({ x: value, observed: c.observed[k], expected: c.expected[k], low: c.low[k], high: c.high[k] }));
    const tooltip = ["x", "observed", "expected", "low", "high"].map((field) => ({ field, title: field === "x" ? c.across : field, format: ".4g" }));
    const across = x("x", c.across, { scale: { zero: false, nice: true, type: c.log ? "log" : "linear" } });
    const up = (field) => x(field, c.up, { scale: { zero: false } });
    const band = { mark: { type: c.bars ? "rule" : "area", opacity: 0.35, color: grey(), strokeWidth: c.bars ? 12 : 0 }, encoding: { x: across, y: up("low"), y2: { field: "high" } } };
    const expected = { mark: { type: "line", strokeDash: [5, 4], color: grey() }, encoding: { x: across, y: up("expected") } };
    const observed = { mark: { type: "line", color: blue(), point: { filled: true, size: 45, color: blue() } }, encoding: { x: across, y: up("observed"), tooltip } };
    return { height: 300, data: { values: rows }, layer: [band, expected, observed] };
  }

  const pick = (id) => find(id).value;

  function update() {
    const stage = pick("stage"), method = pick("method"), stop = charts.stops[Number(pick("bins"))];
    const names = Object.keys(charts.stages[stage]);
    const box = find("group");
    const before = box.value;
    box.replaceChildren(...names.map((name) => { const option = document.createElement("option"); option.value = name; option.textContent = name; return option; }));
    box.value = names.includes(before) ? before : names[0];
    const view = charts.stages[stage][box.value];
    const kind = method === "corp" ? "mass" : method;
    const words = { mass: "equal-mass", width: "equal-width" };
    find("bins-shown").textContent = stop;
    find("ece").textContent = shown(view.bins[kind][stop].ece);
    find("count").textContent = `${stop} ${words[kind]} bins, ${view.n.toLocaleString("en")} rows`;
    const others = Object.entries(view.lines).map(([name, value]) => `${name} ${shown(value)}`);
    find("comparison").textContent = others.length ? `Beside it: ${others.join(", ")}.` : "";
    root.dataset.ready = "no";
    return Promise.all([draw("reliability", reliability(view, method, stop)), draw("stability", stability(view, method, stop)), draw("histogram", histogram(view))])
      .then(() => { root.dataset.ready = "yes"; });
  }

  function start() {
    if (charts.kind === "probabilities") {
      find("stage").replaceChildren(...Object.keys(charts.stages).map((name) => { const option = document.createElement("option"); option.value = name; option.textContent = name; return option; }));
      const usual = charts.stops.indexOf(15);
      find("bins").value = String(usual < 0 ? 0 : usual);
      ["bins", "method", "group", "stage"].forEach((id) => find(id).addEventListener("input", update));
      find("controls").addEventListener("submit", (event) => event.preventDefault());
      if (data.groups.length) draw("groups", forest(data.groups)); else find("groups-figure").remove();
      return update();
    }
    const place = find("curves");
    place.replaceChildren();
    return Promise.all((charts.curves || []).map((c, k) => {
      const figure = document.createElement("figure");
      const inner = document.createElement("div");
      inner.className = "chart"; inner.id = `curve-${k}`; inner.setAttribute("role", "img"); inner.setAttribute("aria-label", c.title);
      const caption = document.createElement("figcaption");
      caption.textContent = c.title;
      figure.append(inner, caption); place.append(figure);
      return draw(inner.id, curve(c));
    }).concat(data.groups.length ? [(() => {
      const figure = document.createElement("figure");
      const inner = document.createElement("div");
      inner.className = "chart"; inner.id = "groups"; inner.setAttribute("role", "img"); inner.setAttribute("aria-label", "Error by group");
      figure.append(inner); place.append(figure);
      return draw("groups", forest(data.groups));
    })()] : [])).then(() => { root.dataset.ready = "yes"; });
  }

  function theme(name) {
    root.dataset.theme = name;
    const button = find("theme");
    button.textContent = name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(name === "dark"));
  }

  find("theme").addEventListener("click", () => {
    theme(dark() ? "light" : "dark");
    if (charts.kind === "probabilities" && data.groups.length) draw("groups", forest(data.groups));
    return charts.kind === "probabilities" ? update() : start();
  });
  theme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  start();
})();
