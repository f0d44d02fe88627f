"""Draws FP8 and FP4 as SVG: how far training losses lie from bf16's along the way, and what formats lose of operands."""

from picture import LEFT, RIGHT, WIDTH, Panel, mean, smooth

COLOURS = ["#1b7fbd", "#d95f02", "#2a9d4a", "#7a3db8", "#c0392b", "#8a6d1f"]
STYLE = "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.grid{stroke:#ddd}</style>"
HEIGHT, GAP = 150, 66  # of a panel, and between two
PLAIN = ["delayed", "current", "block", "mxfp8", "nvfp4", "mxfp8, quantized activations"]
WITHOUT = ["nvfp4", "nvfp4 without Hadamard transform", "nvfp4 without stochastic rounding", "nvfp4 without both",
           "nvfp4, a quarter of the layers in bf16"]
FORMATS = ["fp16", "e4m3", "e5m2", "fp8-block-1x128", "mxfp8", "nvfp4"]
MOST = 50  # %, of what becomes 0
OPERANDS = {"x": "inputs", "w": "weights", "dy": "gradients of results"}


def page(height, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">\n'
            f'{STYLE}\n<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")


def legend(names, top):
    """Two columns, beginning below a panel."""
    out = []
    for i, name in enumerate(names):
        x, y = LEFT + (WIDTH - LEFT - RIGHT) * (i % 2) / 2, top + 16 * (i // 2)
        out.append(f'<line x1="{x:.0f}" y1="{y}" x2="{x + 26:.0f}" y2="{y}" stroke="{COLOURS[i]}" stroke-width="3"/>')
        out.append(f'<text x="{x + 32:.0f}" y="{y + 4}">{name}</text>')
    return out


def apart(curves, base):
    """Distance in % of the smoothed losses, the mean of the seeds."""
    bases = [smooth(losses) for losses in base]
    return mean([[100 * (a / b - 1) for a, b in zip(smooth(losses), below)] for losses, below in zip(curves, bases)])


def draw_losses(curves):
    """`curves`: by row of the page, bf16 among them, the losses of each seed."""
    body, top = [], 40
    for title, rows in (("Recipes: distance to bf16's training loss, mean of the seeds", PLAIN),
                        ("nvfp4 without its parts: the same distance", WITHOUT)):
        rows = [r for r in rows if r in curves]
        if len(rows) < 2:
            continue
        lines = {r: apart(curves[r], curves["bf16"]) for r in rows}
        tail = [v for line in lines.values() for v in line[len(line) // 10:]]
        high = max(1, int(max(map(abs, tail), default=0)) + 1)
        panel = Panel((top, HEIGHT), len(curves["bf16"][0]), -high, high)
        body += panel.axes((-high, 0, high), lambda v: f"{v:+d} %" if v else "0", title)
        body += [panel.line(lines[r], COLOURS[i], 1.6) for i, r in enumerate(rows)]
        body += panel.step_labels()
        body += legend(rows, top + HEIGHT + 38)
        top += HEIGHT + GAP + 16 * ((len(rows) + 1) // 2)
    return page(top - 20, body)


def short(layer):
    """'3 down' of model.layers.3.mlp.down_proj."""
    parts = layer.split(".")
    return f"{next(p for p in parts if p.isdigit())} {parts[-1].split('_')[0]}"


def draw_formats(events):
    """`events`: objects of `profile --formats --json`."""
    layers = list(dict.fromkeys(e["layer"] for e in events))
    body, top = [], 40
    for operand, what in OPERANDS.items():
        panel = Panel((top, HEIGHT), len(layers), 0, MOST)
        body += panel.axes(range(0, MOST + 1, 10), lambda v: f"{v} %", f"Share that becomes 0 of {what} ({operand})")
        for i, name in enumerate(FORMATS):
            found = {e["layer"]: 100 * e["underflow_share"] for e in events if e["operand"] == operand and e["as"] == name}
            body.append(panel.line([found[layer] for layer in layers], COLOURS[i], 1.6))
        top += HEIGHT + 44
    for i, layer in enumerate(layers):
        x, y = panel.x(i + 1), top - 44 + 12
        body.append(f'<text x="{x:.1f}" y="{y}" text-anchor="end" transform="rotate(-60 {x:.1f} {y})" style="font-size:9px">'
                    f"{short(layer)}</text>")
    body += legend(FORMATS, top + 30)
    return page(top + 90, body)
