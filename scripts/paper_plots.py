# SPDX-License-Identifier: Apache-2.0
"""Plots of figures as one HTML page with SVG: predictions as lines with dots, published points as rings."""
import html
import math

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 52
COLORS = ("#1f5fa8", "#c44e1c", "#2c7a3f", "#7a3f9d")
STYLE = """body { font: 15px/1.5 sans-serif; max-width: 1180px; margin: 2em auto; padding: 0 1em; color: #222;
  background: #fff }
section { display: inline-block; width: 560px; vertical-align: top; margin: 0 8px 20px 0 }
h2 { font-size: 16px; margin: 0 } p { margin: 4px 0 }
svg { width: 100%; height: auto } text { font: 12px sans-serif; fill: #222 }
.grid { stroke: #ddd } .axis { stroke: #444; fill: none }"""


def tick_step(top):
    """1, 2 or 5 times a power of ten: about five steps up to top."""
    power = 10 ** math.floor(math.log10(top / 5))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= top / 5 * 0.999)


def label(value):
    return f"{value:.10g}"


class Plot:
    """One figure. The values of x are categories: those of the figures are powers of two, pairs, or evenly spaced."""

    def __init__(self, figure):
        self.figure = figure
        self.xs = list(dict.fromkeys(x for series in figure.series for x in series.values))
        values = [v for series in figure.series for v in (*series.values.values(), *series.published.values())]
        self.step = tick_step(max(values))
        self.top = self.step * math.ceil(max(values) / self.step)

    def x_at(self, x):
        return LEFT + (self.xs.index(x) + 0.5) * (WIDTH - LEFT - RIGHT) / len(self.xs)

    def y_at(self, value):
        return HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        out = []
        for number in range(round(self.top / self.step) + 1):
            y = self.y_at(number * self.step)
            out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label(number * self.step)}</text>')
        bottom = HEIGHT - BOTTOM
        out.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>')
        for x in self.xs:
            out.append(f'<text x="{self.x_at(x):.1f}" y="{bottom + 17}" text-anchor="middle">{x.replace(";", ", ")}</text>')
        middle = (TOP + bottom) / 2
        out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">'
                   f'{html.escape(self.figure.x.replace(";", ", "))}</text>')
        out.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">'
                   f'{html.escape(self.figure.unit)}</text>')
        return out

    def lines(self):
        out = []
        for series, color in zip(self.figure.series, COLORS):
            points = [(self.x_at(x), self.y_at(value)) for x, value in series.values.items()]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
            for x, value in series.values.items():
                out.append(f'<circle cx="{self.x_at(x):.1f}" cy="{self.y_at(value):.1f}" r="3" fill="{color}">'
                           f'<title>{html.escape(series.name)}, {x}: {value:.{self.figure.digits}f} predicted</title></circle>')
            for x, value in series.published.items():
                out.append(f'<circle cx="{self.x_at(x):.1f}" cy="{self.y_at(value):.1f}" r="6" fill="none" stroke="{color}" '
                           f'stroke-width="1.5"><title>{html.escape(series.name)}, {x}: {label(value)} published</title></circle>')
        return out

    def legend(self):
        """Under the plot, as HTML: it hides no point."""
        out = []
        for series, color in zip(self.figure.series, COLORS):
            marks = f'<span style="color:{color}">&#9644;&#9679;</span> {html.escape(series.name)}, predicted'
            if series.published:
                marks += f' <span style="color:{color}">&#9711;</span> published'
            out.append(marks)
        return "<p>" + " &nbsp; ".join(out) + "</p>"

    def section(self):
        figure = self.figure
        svg = "\n".join([f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Figure {figure.number}">',
                         *self.axes(), *self.lines(), "</svg>"])
        note = f"<p>{html.escape(figure.note)}</p>" if figure.note else ""
        return (f"<section>\n<h2>Figure {figure.number}: {html.escape(figure.title)}</h2>\n"
                f"<p>Points: {html.escape(figure.use)}.</p>\n{svg}\n{self.legend()}\n{note}</section>")


def page(figures, tables):
    """`tables` are rows of text, of which the first is the heading, by title."""
    out = ["<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
           "<title>Predictions beside Narayanan et al., SC'21</title>",
           f"<style>{STYLE}\ntable {{ border-collapse: collapse; margin: 6px 0 20px }}"
           " td, th { border: 1px solid #ccc; padding: 2px 8px }</style></head><body>",
           "<h1>Predictions beside Narayanan et al., SC'21</h1>",
           "<p>Lines with dots are predictions, rings are published values. scripts/paper writes this page.</p>"]
    out += [Plot(figure).section() for figure in figures]
    for title, rows in tables.items():
        cells = ["".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
                 for tag, row in zip(["th"] + ["td"] * len(rows), rows)]
        out += [f"<h2>{html.escape(title)}</h2>", "<table>", *(f"<tr>{row}</tr>" for row in cells), "</table>"]
    return "\n".join(out + ["</body></html>", ""])
