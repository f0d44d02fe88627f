"""Draws training losses in several precisions as SVG: the curves, and their distance to fp32's below."""

WIDTH, LEFT, RIGHT = 760, 56, 20
CURVES, APART = (56, 250), (356, 110)  # top and height of the two panels
COLOURS = {"fp32": "#222222", "bf16": "#d95f02", "fp16": "#1b7fbd"}
WINDOW = 20  # steps that a point is the mean of


def smooth(values):
    return [sum(values[max(0, i - WINDOW + 1):i + 1]) / (i + 1 - max(0, i - WINDOW + 1)) for i in range(len(values))]


def mean(series):
    return [sum(at) / len(at) for at in zip(*series)]


class Panel:
    def __init__(self, box, steps, low, high):
        self.top, self.height = box
        self.steps, self.low, self.high = steps, low, high

    def x(self, step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.steps

    def y(self, value):
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    def line(self, values, colour, width, opacity=1.0):
        points = " ".join(f"{self.x(i + 1):.1f},{self.y(min(max(v, self.low), self.high)):.1f}" for i, v in enumerate(values))
        return (f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" '
                f'stroke-opacity="{opacity}" stroke-linejoin="round"/>')

    def axes(self, ticks, form, title):
        out = [f'<text x="{LEFT}" y="{self.top - 10}" class="title">{title}</text>']
        for value in ticks:
            y = self.y(value)
            out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" class="grid"/>')
            out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{form(value)}</text>')
        return out

    def step_labels(self):
        marks = [self.steps * i // 5 for i in range(6)]
        return [f'<text x="{self.x(s):.1f}" y="{self.top + self.height + 18}" text-anchor="middle">{s}</text>' for s in marks]


def legend(precisions):
    out = []
    for i, precision in enumerate(precisions):
        x = WIDTH - RIGHT - 90 * (len(precisions) - i)
        out.append(f'<line x1="{x}" y1="24" x2="{x + 26}" y2="24" stroke="{COLOURS[precision]}" stroke-width="3"/>')
        out.append(f'<text x="{x + 32}" y="28">{precision}</text>')
    return out


def draw(curves):
    """`curves`: by precision, fp32 among them, the losses of each seed."""
    smoothed = {p: [smooth(losses) for losses in seeds] for p, seeds in curves.items()}
    steps = len(next(iter(curves.values()))[0])
    values = [v for seeds in smoothed.values() for losses in seeds for v in losses]
    low, high = int(min(values)), int(max(values)) + 1
    apart = {p: mean([[100 * (a / b - 1) for a, b in zip(losses, base)] for losses, base in zip(seeds, smoothed["fp32"])])
             for p, seeds in smoothed.items() if p != "fp32"}
    losses, distance = Panel(CURVES, steps, low, high), Panel(APART, steps, -1.5, 1.5)
    body = legend(list(curves))
    body += losses.axes(range(low, high + 1), str, f"Training loss, mean of {WINDOW} steps; a line each seed")
    for precision, seeds in smoothed.items():
        body += [losses.line(seed, COLOURS[precision], 1.4, 0.75) for seed in seeds]
    body += distance.axes((-1, 0, 1), lambda v: f"{v:+d} %" if v else "0", "Distance to fp32's loss, mean of the seeds")
    body += [distance.line(line, COLOURS[p], 1.8) for p, line in apart.items()]
    body += distance.step_labels()
    body.append(f'<text x="{WIDTH - RIGHT}" y="{APART[0] + APART[1] + 36}" text-anchor="end">step</text>')
    height = APART[0] + APART[1] + 46
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">\n'
            '<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.grid{stroke:#ddd}</style>\n'
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n")
