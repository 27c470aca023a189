"use strict";
// What the page gains by a script: a theme switch, and the single blocks of a cell of the heat map.
// Everything that it shows is in the page without it, too.
(function () {
  const root = document.documentElement;
  const SPACE = "http://www.w3.org/2000/svg";

  function kept(value) {
    try {
      if (value === undefined) return localStorage.getItem("loam-theme");
      localStorage.setItem("loam-theme", value);
    } catch (_) { /* a page from a file may not be allowed to keep anything */ }
    return null;
  }

  const themes = ["auto", "light", "dark"];
  const toggle = document.createElement("button");
  toggle.type = "button";
  toggle.className = "theme";
  function dress(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    toggle.dataset.now = theme;
    toggle.textContent = "Theme: " + theme;
  }
  dress(themes.includes(kept()) ? kept() : "auto");
  toggle.addEventListener("click", function () {
    const next = themes[(themes.indexOf(toggle.dataset.now) + 1) % themes.length];
    dress(next);
    kept(next);
  });
  document.querySelector("header .mark").append(toggle);

  function make(tag, attributes, text) {
    const element = document.createElementNS(SPACE, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function middle(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }

  // Values over blocks, the baseline's as rings behind them, each with a line at its median.
  function plot(series, unit) {
    const all = series.flatMap((one) => one.values);
    let low = Math.min(...all), high = Math.max(...all);
    if (low === high) { low -= Math.abs(low) / 20 + 1e-9; high += Math.abs(high) / 20 + 1e-9; }
    const blocks = Math.max(...series.map((one) => one.values.length));
    const x = (index) => 64 + (index + 0.5) * 300 / blocks;
    const y = (value) => 150 - (value - low) / (high - low) * 130;
    const drawn = make("svg", { viewBox: "0 0 382 190", role: "img", width: 382, height: 190 });
    drawn.append(make("title", {}, "Single blocks, " + unit));
    for (const value of [low, (low + high) / 2, high]) {
      drawn.append(make("line", { x1: 64, x2: 364, y1: y(value), y2: y(value), stroke: "currentColor", "stroke-opacity": 0.16 }));
      drawn.append(make("text", { x: 56, y: y(value) + 4, "font-size": 11, "text-anchor": "end", fill: "currentColor" },
        Number(value.toPrecision(4)).toString()));
    }
    drawn.append(make("text", { x: 214, y: 180, "font-size": 11, "text-anchor": "middle", fill: "currentColor" },
      "block 1 to " + blocks));
    for (const one of series) {
      const level = y(middle(one.values));
      drawn.append(make("line", { x1: 64, x2: 364, y1: level, y2: level, stroke: one.colour, "stroke-dasharray": "3,3" }));
      one.values.forEach(function (value, index) {
        const style = one.hollow ? { fill: "none", stroke: one.colour, "stroke-width": 1.4 } : { fill: one.colour };
        const dot = make("circle", { cx: x(index), cy: y(value), r: 4, ...style });
        dot.append(make("title", {}, one.name + ", block " + (index + 1) + ": " + value + " " + unit));
        drawn.append(dot);
      });
    }
    return drawn;
  }

  const panel = document.getElementById("single-blocks");
  function values(link) { return link.dataset.values.split(" ").map(Number); }
  function show(link) {
    const row = link.closest("tr");
    const base = row.querySelector("a[data-baseline]");
    const series = [{ name: link.dataset.name, colour: link.dataset.colour, values: values(link) }];
    if (base && base !== link) {
      series.unshift({ name: base.dataset.name, colour: base.dataset.colour, values: values(base), hollow: true });
    }
    const head = document.createElement("h3");
    head.textContent = link.getAttribute("aria-label");
    const note = document.createElement("p");
    note.textContent = row.dataset.unit + (series.length > 1 ? "; rings are " + series[0].name : "") +
      "; dashed lines are medians. Blocks: " + link.dataset.values.split(" ").join(", ");
    panel.replaceChildren(head, plot(series, row.dataset.unit), note);
    panel.hidden = false;
    document.querySelectorAll(".heat [aria-current]").forEach((e) => e.removeAttribute("aria-current"));
    link.setAttribute("aria-current", "true");
    panel.scrollIntoView({ block: "nearest" });
  }
  document.querySelectorAll(".heat a[data-values]").forEach(function (link) {
    link.addEventListener("click", function (event) {
      event.preventDefault();
      show(link);
    });
  });
})();
