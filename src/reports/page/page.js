// Draws the curves and the memory over a step from the figures in #data.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colours = ["#3b7dc4", "#d9662b", "#2a9d76", "#c060a0", "#b58a00", "#4bb3d6", "#8c6bb1", "#888888"];
  const grid = "rgba(128,128,128,0.25)";
  const charts = [];
  window.plimsollReport = { data: data, charts: charts };

  function element(tag, cssClass, text) {
    const made = document.createElement(tag);
    if (cssClass) made.className = cssClass;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function short(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
    for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
      if (size >= unit) return +(value / (unit === 1e4 ? 1e3 : unit)).toPrecision(4) + name;
    return String(+value.toPrecision(5));
  }
  function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; Math.abs(value) >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
    return +value.toPrecision(4) + " " + units[unit];
  }
  function key(colour, text) {
    const made = element("span", "key");
    const mark = element("i");
    mark.style.background = colour;
    made.append(mark, text);
    return made;
  }

  // Curves of several runs have points at different steps: one row a step, nothing where a curve has no point.
  function joined(lines) {
    const rows = new Map();
    lines.forEach((line, i) => line.x.forEach((x, k) => {
      if (!rows.has(x)) rows.set(x, [x].concat(lines.map(() => null)));
      rows.get(x)[i + 1] = line.y[k];
    }));
    return Array.from(rows.values()).sort((a, b) => a[0] - b[0]);
  }

  function card(title, lines, options) {
    lines = lines.filter((line) => line.x.length > 0);
    if (lines.length === 0) return;
    const box = element("div", "card"), head = element("div", "title", title);
    const place = element("div", "chart"), values = element("div", "values");
    box.dataset.figure = options.figure;
    box.append(head, place, values);
    (options.place || document.getElementById("curves")).append(box);
    const text = options.text || short;
    const last = () => values.replaceChildren(...(options.legend || lines.length > 1
      ? lines.map((line) => key(line.colour, (options.legend ? line.name + " " : "") + text(line.y[line.y.length - 1])))
      : ["last " + text(lines[0].y[lines[0].y.length - 1])]));
    const chart = new Dygraph(place, joined(lines), {
      labels: ["step"].concat(lines.map((line, i) => i + " " + line.name)),
      colors: lines.map((line) => line.colour),
      connectSeparatedPoints: true,
      drawPoints: lines.every((line) => line.x.length < 40),
      pointSize: 2.5, strokeWidth: 1.4, highlightCircleSize: 3.5,
      gridLineColor: grid, axisLineColor: grid, legend: "never", includeZero: !!options.zero,
      axes: { y: { axisLabelWidth: options.text ? 70 : 58, axisLabelFormatter: text, labelsKMG2: !!options.text }, x: { axisLabelFormatter: short, axisLabelWidth: 56 } },
      highlightCallback: (event, x, points) => values.replaceChildren(element("span", "key", "step " + x),
        ...points.map((p) => key(lines[parseInt(p.name, 10)].colour, text(p.yval)))),
      unhighlightCallback: last,
    });
    last();
    charts.push(chart);
    if (options.log && lines.every((line) => line.y.every((y) => y > 0))) {
      const label = element("label"), check = element("input");
      check.type = "checkbox";
      label.append(check, " log scale");
      head.append(label);
      check.addEventListener("change", () => chart.updateOptions({ logscale: check.checked }));
    }
  }

  function line(run, name, points) {
    return { name: name, colour: colours[run % colours.length], x: points.x, y: points.y };
  }
  function curves() {
    const of = (name) => data.runs.map((run, i) => line(i, run.name, run.curves[name]));
    card("Loss", of("loss"), { figure: "loss", log: true });
    const evals = [];
    data.runs.forEach((run, i) => Object.entries(run.evals).forEach(([set, points]) => {
      const made = line(data.runs.length > 1 ? i : evals.length, set || (data.runs.length > 1 ? run.name : "all"), points);
      evals.push(made);
    }));
    const sets = data.runs.some((run) => Object.keys(run.evals).length > 1);
    card("Evaluation: loss", evals, { figure: "eval_loss", log: true, legend: sets });
    card("Gradient norm", of("grad_norm"), { figure: "grad_norm", log: true });
    card("Learning rate", of("learning_rate"), { figure: "learning_rate", zero: true });
    card("Tokens a second", of("tokens_per_second"), { figure: "tokens_per_second", zero: true });
    card("Waiting for data, seconds a step", of("data_wait_seconds"), { figure: "data_wait_seconds", zero: true });
    card("Loss scale", of("loss_scale"), { figure: "loss_scale", log: true });
    if (data.runs.length > 1)
      document.getElementById("legend").replaceChildren(
        ...data.runs.map((run, i) => key(colours[i % colours.length], run.name)));
  }

  // What `machine` events are called, docs/monitoring.md; bytes and pages are of an interval.
  const machineNames = {
    process_cpus: "CPUs that the run kept busy", cpu_own_share: "Share of all CPUs: this run", cpu_busy_share: "Share of all CPUs: everybody",
    cpu_disk_wait_share: "Share of all CPUs: idle for a disk", cpu_stolen_share: "Share of all CPUs: stolen by the hypervisor",
    cpu_mhz: "Clock, MHz", minor_faults: "Pages touched anew", major_faults: "Pages read back from a disk",
    read_bytes: "Read from disks by the run", written_bytes: "Written to disks by the run",
    disk_read_bytes: "Read from the machine's disks", disk_written_bytes: "Written to the machine's disks",
  };
  function machine() {
    const names = Array.from(new Set(data.runs.flatMap((run) => Object.keys(run.machine)))).filter((name) => name !== "seconds");
    if (names.length === 0) return;
    const title = (name) => machineNames[name] || name.replaceAll(/[._]/g, " ");
    const place = element("div", "curves"), steady = [];
    document.getElementById("curves").after(element("h3", "", "The machine during the run"), place);
    names.forEach((name) => {
      const lines = data.runs.map((run, i) => line(i, run.name, run.machine[name] || { x: [], y: [] }));
      const values = new Set(lines.flatMap((each) => each.y)), text = name.endsWith("bytes") ? bytes : short;
      if (values.size === 1) steady.push(title(name) + ": " + text(values.values().next().value));
      else card(title(name), lines, { figure: name, place: place, text: text === bytes ? bytes : undefined });
    });
    if (steady.length > 0) place.after(element("p", "quiet", "The same all along: " + steady.join("; ") + "."));
  }

  const classColours = {
    parameters: "#4477aa", master_weights: "#66aacc", optimizer_state: "#7e6bb0", kv_cache: "#999944", gradients: "#cc6677",
    activations: "#e0a030", workspace: "#44a080", padding: "#9a9aa8", fragmentation: "#c4bcb0", buffers: "#5b8f8f", gathered_parameters: "#335588", fp8_weights: "#b07aa1", weight_casts: "#8a6a9c",
  };
  function timeline(of, place, asked) {
    // dygraphs stacks the last series lowest.
    const stack = of.classes.map(([name, column]) => ({ name: name.replaceAll("_", " "), column: column, colour: classColours[name] || "#8c8c8c" }));
    // Of a small model the process is most of it: then it is shown when asked for.
    const whole = of.beside > 0 && (asked === undefined ? of.beside < of.planned / 2 : asked);
    if (whole) stack.unshift({ name: "process and host", column: of.x.map(() => of.beside), colour: "#777777" });
    const most = whole ? Math.max(of.planned, of.measured || 0) : of.planned - of.beside;
    const visible = stack.filter((each) => Math.max(...each.column) >= most / 1000).reverse();
    const rows = of.x.map((x, i) => [x].concat(visible.map((each) => each.column[i])));
    if (rows.length === 1) rows.push([rows[0][0] + 1].concat(rows[0].slice(1)));
    const values = element("div", "values");
    const label = element("label", "values"), check = element("input");
    check.type = "checkbox";
    check.checked = whole;
    label.append(check, " show also the memory of the rest of the process and of the host, and the planned and measured peak");
    check.addEventListener("change", () => {
      charts.splice(charts.indexOf(chart), 1);
      chart.destroy();
      values.remove();
      label.remove();
      timeline(of, place, check.checked);
    });
    place.after(values);
    if (of.beside > 0) values.after(label);
    const legend = () => values.replaceChildren(...visible.slice().reverse().map((each) => key(each.colour, each.name)),
      element("span", "key", "planned peak " + bytes(of.planned)),
      of.measured === null ? "" : key("#d62728", "measured peak " + bytes(of.measured)));
    const chart = new Dygraph(place, rows, {
      labels: ["op"].concat(visible.map((each) => each.name)), colors: visible.map((each) => each.colour),
      stackedGraph: true, stepPlot: true, fillAlpha: 0.75, strokeWidth: 0.6, legend: "never",
      gridLineColor: grid, axisLineColor: grid, valueRange: [0, most * 1.05], highlightCircleSize: 2,
      axes: { y: { axisLabelWidth: 70, axisLabelFormatter: bytes, labelsKMG2: true }, x: { axisLabelFormatter: short } },
      underlayCallback: (canvas, area, graph) => {
        const draw = (at, colour, dash) => {
          const y = graph.toDomYCoord(at);
          canvas.save();
          canvas.strokeStyle = colour;
          canvas.setLineDash(dash);
          canvas.beginPath();
          canvas.moveTo(area.x, y);
          canvas.lineTo(area.x + area.w, y);
          canvas.stroke();
          canvas.restore();
        };
        if (!whole) return;
        draw(of.planned, "#888888", [6, 4]);
        if (of.measured !== null) draw(of.measured, "#d62728", []);
      },
      highlightCallback: (event, x, points, row) => values.replaceChildren(
        element("span", "key", "op " + x + ", " + of.ops[Math.min(row, of.ops.length - 1)] + " (" + of.phases[Math.min(row, of.phases.length - 1)] + ")"),
        ...visible.slice().reverse().map((each) => key(each.colour, each.name + " " + bytes(each.column[Math.min(row, each.column.length - 1)])))),
      unhighlightCallback: legend,
    });
    charts.push(chart);
    legend();
  }

  curves();
  machine();
  data.timelines.forEach((of, i) => {
    const place = document.getElementById("timeline" + i);
    if (of && place) timeline(of, place);
  });
  // For who tests the page: what was drawn, when, and by how much it is wider than the window.
  const root = document.documentElement;
  root.dataset.charts = charts.length;
  root.dataset.drawn = performance.now().toFixed(0);
  root.dataset.overflow = root.scrollWidth - root.clientWidth;
})();
