// SPDX-License-Identifier: Apache-2.0
#include "page/page_style.hpp"

#include "draw/svg.hpp"
#include "page/html_text.hpp"
#include "triax/text.hpp"

namespace triax::page {

using draw::svg_number;

namespace {

std::string title_of(std::string_view tooltip) {
  return tooltip.empty() ? std::string() : text("<title>{}</title>", html_escaped(tooltip));
}

} // namespace

std::string colour_class(std::size_t series) {
  return text("series-{}", series % kSeriesColours);
}

std::string line_classes(std::size_t series) {
  return text("{} dash-{}", colour_class(series), (series + series / kSeriesColours) % kSeriesColours);
}

std::string mark_svg(std::size_t series, double x, double y, std::string_view tooltip) {
  const auto at = [](double value) { return svg_number(value); };
  const std::string tail = text(" class=\"mark {}\">{}</", colour_class(series), title_of(tooltip));
  switch (series % 4) {
    case 0:
      return text("<circle cx=\"{}\" cy=\"{}\" r=\"3.5\"{}circle>\n", at(x), at(y), tail);
    case 1:
      return text("<path d=\"M{} {}l4 7h-8z\"{}path>\n", at(x), at(y - 4.5), tail);
    case 2:
      return text("<path d=\"M{} {}h6.4v6.4h-6.4z\"{}path>\n", at(x - 3.2), at(y - 3.2), tail);
    default:
      return text("<path d=\"M{} {}l4.2 4.2l-4.2 4.2l-4.2 -4.2z\"{}path>\n", at(x), at(y - 4.2), tail);
  }
}

std::string bar_svg(std::size_t series, double x, double y, double width, double height, std::string_view tooltip) {
  const std::string box = text("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", svg_number(x), svg_number(y),
                               svg_number(width), svg_number(height));
  std::string out = text("<rect {} class=\"bar {}\">{}</rect>", box, colour_class(series), title_of(tooltip));
  if (const std::size_t pattern = (series + series / kSeriesColours) % kSeriesColours; pattern > 0)
    out += text("<rect {} fill=\"url(#pattern-{})\" pointer-events=\"none\"/>", box, pattern);
  return out + '\n';
}

const std::string_view kPageHead = R"(<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
)";

const std::string_view kPageStyle = R"(:root {
  color-scheme: light dark;
  --paper: #ffffff; --panel: #f6f7f9; --ink: #1b1f27; --quiet: #5b6472; --grid: #e1e5eb; --rule: #c3c9d2;
  --link: #0059a8; --note: #fff4d6; --bubble: #e7eaf0; --band: #0072b2;
  --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7; --s4: #e69f00; --s5: #56b4e9; --s6: #3b4252;
  --forward: #2f69b0; --backward: #2e8755; --input: #148c8c; --weight: #e8a838; --update: #8a8f98;
  --recompute: #7e57a6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171c; --panel: #1d2127; --ink: #e6e9ee; --quiet: #a3acb9; --grid: #2b313a; --rule: #454d59;
    --link: #7fbdf0; --note: #3b3112; --bubble: #2a3039; --band: #56b4e9;
    --s0: #56b4e9; --s1: #e8793a; --s2: #1fbf93; --s3: #dd93bb; --s4: #f0b429; --s5: #f0e442; --s6: #c9d1dc;
    --forward: #5b93d8; --backward: #4aae78; --input: #36b3b3; --weight: #e8b55a; --update: #8a93a0;
    --recompute: #a583cf;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 20px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 30px 0 10px; padding-bottom: 4px; border-bottom: 1px solid var(--rule); }
.subtitle { color: var(--quiet); margin: 0 0 10px; }
nav { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 14px; }
a { color: var(--link); }
p { margin: 8px 0; }
.result { font-size: 17px; margin: 14px 0; padding: 12px 16px; background: var(--panel); border-left: 4px solid var(--s0); }
.note { padding: 6px 12px; background: var(--note); border-left: 4px solid var(--s4); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 3px 18px; margin: 10px 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 10px 0; font-variant-numeric: tabular-nums; }
.above { color: var(--quiet); margin: 12px 0 -6px; }
th, td { text-align: left; vertical-align: top; padding: 4px 16px 4px 0; border-bottom: 1px solid var(--grid);
  white-space: nowrap; }
th:last-child, td:last-child { padding-right: 4px; }
thead th { color: var(--quiet); font-weight: 600; border-bottom-color: var(--rule); }
tbody th { font-weight: 500; }
.number { text-align: right; }
.text { white-space: normal; overflow-wrap: anywhere; min-width: 14em; max-width: 520px; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 440px), 1fr)); gap: 18px 26px;
  margin: 14px 0; }
figure { margin: 0; min-width: 0; break-inside: avoid; }
figure.wide { grid-column: 1 / -1; }
figcaption { font-weight: 600; display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 16px;
  min-height: 1.5em; }
.readout { font-weight: 400; font-size: 13px; color: var(--quiet); font-variant-numeric: tabular-nums; }
.caption { color: var(--quiet); font-size: 13px; margin: 2px 0 0; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 1px 16px; margin: 2px 0; padding: 0; font-size: 13px; }
.legend li { display: flex; align-items: center; gap: 6px; min-width: 0; }
.legend svg { flex: none; }
.legend span { overflow-wrap: anywhere; }
figure .scroll svg { display: block; width: 100%; height: auto; }
figure .scroll svg.long { min-width: 640px; }
figure .scroll svg.schedule { width: auto; max-width: 100%; } /* min-width: schedule_figure() */
svg:not(.schedule) text { fill: var(--ink); font: 11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg:not(.schedule) .tick { fill: var(--quiet); font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--grid); stroke-width: 1; fill: none; }
svg .frame { stroke: var(--rule); stroke-width: 1; fill: none; }
svg .line { fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
svg .under-1 { stroke-width: 2.3; } svg .under-2 { stroke-width: 2.9; } svg .under-3 { stroke-width: 3.5; }
svg .thin { stroke-width: 1; opacity: 0.55; }
svg .faint { stroke-width: 0.7; opacity: 0.3; stroke-dasharray: none; }
svg .mark { stroke: var(--paper); stroke-width: 0.8; }
svg .cursor { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 2; fill: none; pointer-events: none; }
svg .reference { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 5 4; fill: none; }
svg .mean { stroke: var(--band); stroke-width: 1.6; fill: none; }
svg .band { fill: var(--band); opacity: 0.18; }
svg .bubble { fill: var(--bubble); }
svg .wait { fill: url(#pattern-wait); }
.series-0 { --c: var(--s0); } .series-1 { --c: var(--s1); } .series-2 { --c: var(--s2); } .series-3 { --c: var(--s3); }
.series-4 { --c: var(--s4); } .series-5 { --c: var(--s5); } .series-6 { --c: var(--s6); }
svg .line { stroke: var(--c); }
svg .mark, svg .bar { fill: var(--c); }
.dash-1 { stroke-dasharray: 7 4; } .dash-2 { stroke-dasharray: 2 6; } .dash-3 { stroke-dasharray: 9 3 2 3; }
.dash-4 { stroke-dasharray: 14 4; } .dash-5 { stroke-dasharray: 4 4; } .dash-6 { stroke-dasharray: 9 3 2 3 2 3; }
.pass-forward { fill: var(--forward); } .pass-backward { fill: var(--backward); } .pass-input { fill: var(--input); }
.pass-weight { fill: var(--weight); } .pass-update { fill: var(--update); } .pass-recompute { fill: var(--recompute); }
svg .pass { stroke: var(--paper); stroke-width: 0.5; }
svg:not(.schedule) .on-pass { fill: #ffffff; font-size: 10px; pointer-events: none; }
svg:not(.schedule) .on-weight { fill: #1b1f27; }
.patterns { position: absolute; }
.patterns path { stroke: var(--paper); stroke-width: 1.6; fill: none; }
.patterns .wait-line { stroke: var(--quiet); stroke-width: 1; }
@media (max-width: 560px) {
  body { padding: 12px; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 6px; }
  th, td { padding-right: 12px; }
}
@media print {
  :root {
    --paper: #ffffff; --panel: #f6f7f9; --ink: #000000; --quiet: #444b55; --grid: #d9dde3; --rule: #9aa1ab;
    --link: #000000; --note: #fff4d6; --bubble: #e7eaf0; --band: #0072b2;
    --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7; --s4: #e69f00; --s5: #56b4e9; --s6: #3b4252;
    --forward: #2f69b0; --backward: #2e8755; --input: #148c8c; --weight: #e8a838; --update: #8a8f98;
    --recompute: #7e57a6;
  }
  @page { margin: 14mm; }
  html { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav, .readout, svg .cursor { display: none; }
  .scroll { overflow: visible; }
  .figures { grid-template-columns: 1fr 1fr; gap: 12px 18px; }
  figure, tr, .result, .note, dl { break-inside: avoid; }
  h2, .above, figcaption { break-after: avoid; }
  figure .scroll svg.long { min-width: 0; }
  figure .scroll svg.schedule { min-width: 0 !important; }
  th, td { padding-right: 10px; font-size: 9pt; max-width: none; }
  .text { min-width: 0; }
}
)";

const std::string_view kPagePatterns =
    R"(<svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false"><defs>
<pattern id="pattern-1" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M-1 1L1 -1M0 6L6 0M5 7L7 5"/></pattern>
<pattern id="pattern-2" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 3H6"/></pattern>
<pattern id="pattern-3" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M-1 5L1 7M0 0L6 6M5 -1L7 1"/></pattern>
<pattern id="pattern-4" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M3 0V6"/></pattern>
<pattern id="pattern-5" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6L6 0M0 0L6 6"/></pattern>
<pattern id="pattern-6" width="9" height="9" patternUnits="userSpaceOnUse"><path d="M0 4.5H9M4.5 0V9"/></pattern>
<pattern id="pattern-wait" width="5" height="5" patternUnits="userSpaceOnUse"><path class="wait-line" d="M-1 1L1 -1M0 5L5 0M4 6L6 4"/></pattern>
</defs></svg>
)";

const std::string_view kPageScript = R"('use strict';
for (const svg of document.querySelectorAll('svg[data-x]')) {
  const numbers = name => svg.dataset[name].split(' ').map(Number);
  const [x0, x1, left, right] = numbers('x'), [y0, y1, bottom, top] = numbers('y');
  const figure = svg.closest('figure'), out = figure.querySelector('.readout');
  const names = [...figure.querySelectorAll('.legend span')].map(name => name.textContent);
  const lines = [...svg.querySelectorAll('path[data-series]')].map(path => ({
    name: names[path.dataset.series] || '',
    points: [...path.getAttribute('d').matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)].map(at => [+at[1], +at[2]])
  }));
  const value = y => {
    const part = (y - bottom) / (top - bottom);
    const of = 'log' in svg.dataset ? y0 * Math.pow(y1 / y0, part) : y0 + part * (y1 - y0);
    return Math.abs(of) >= 1000 ? Math.round(of).toLocaleString('en') : String(+of.toPrecision(4));
  };
  const cursor = document.createElementNS(svg.namespaceURI, 'path');
  cursor.setAttribute('class', 'cursor');
  svg.append(cursor);
  svg.addEventListener('pointermove', event => {
    const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    let nearest = null;
    for (const line of lines)
      for (const point of line.points)
        if (nearest === null || Math.abs(point[0] - x) < Math.abs(nearest - x)) nearest = point[0];
    if (nearest === null) return;
    cursor.setAttribute('d', `M${nearest} ${bottom}V${top}`);
    const at = Math.round(x0 + (nearest - left) / (right - left) * (x1 - x0));
    const values = lines.flatMap(line => {
      const near = line.points.filter(point => Math.abs(point[0] - nearest) < 0.6);
      return near.length ? [(line.name ? line.name + ' ' : '') + value(near[near.length - 1][1])] : [];
    });
    out.textContent = `${svg.dataset.name} ${at}: ${values.join(', ')}`;
  });
  svg.addEventListener('pointerleave', () => { cursor.removeAttribute('d'); out.textContent = ''; });
}
)";

} // namespace triax::page
