// SPDX-License-Identifier: Apache-2.0
#include "page/step_timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "draw/svg.hpp"
#include "page/chart_axis.hpp"
#include "page/chart_frame.hpp"
#include "page/html_text.hpp"
#include "page/page_style.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::page {

namespace {

using draw::svg_number;
using report::RankTimeline;
using schedule::Kind;

constexpr double kWidth = 960, kStepLeft = 56, kStepRight = 948, kRow = 20, kCalls = 7, kRankGap = 8;
constexpr double kMinBox = 0.3; // pixels; what is shorter cannot be seen
constexpr std::size_t kMaxStepBoxes = 20'000;

struct PassStyle {
  const char *css, *name, *letter;
};

PassStyle style_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return {"pass-forward", "forward", "F"};
    case Kind::backward:
      return {"pass-backward", "backward", "B"};
    case Kind::backward_input:
      return {"pass-input", "input gradient", "I"};
    case Kind::backward_weight:
      return {"pass-weight", "weight gradient", "W"};
    case Kind::recompute:
      return {"pass-recompute", "recomputation", "R"};
    default:
      return {"pass-update", "norm and update", ""};
  }
}

struct StepRange {
  double start = 0, end = 0;
};

StepRange range_of(std::span<const RankTimeline> ranks) {
  StepRange out;
  for (const RankTimeline& rank : ranks) {
    out.start = &rank == ranks.data() ? rank.start : std::min(out.start, rank.start);
    out.end = &rank == ranks.data() ? rank.end : std::max(out.end, rank.end);
  }
  return std::isfinite(out.start) && std::isfinite(out.end) ? out : StepRange{};
}

class StepDrawing {
 public:
  explicit StepDrawing(double length) : axis_(make_axis({.min = 0, .max = length, .max_ticks = 12})) {}

  void panel(const StepPanel& panel) {
    const StepRange range = range_of(panel.ranks);
    start_ = range.start;
    if (!panel.heading.empty()) {
      out_ += text_svg(kStepLeft, y_ + 12, "font-weight=\"600\"",
                       text("{}: {} ms", panel.heading, report::decimals_text(range.end - range.start, 2)));
      y_ += 20;
    }
    const std::size_t shown = std::min(panel.ranks.size(), kMaxDrawnRanks);
    for (const RankTimeline& rank : panel.ranks.first(shown)) this->rank(rank);
    left_out_ += panel.ranks.size() - shown;
    y_ += 8;
  }

  std::string svg(const std::string& description) {
    std::string ticks, labels;
    for (const double tick : axis_.ticks) {
      ticks += path_to('M', x(tick), y_) + "v4";
      labels += text_svg(x(tick), y_ + 16, "class=\"tick\" text-anchor=\"middle\"", axis_.label(tick));
    }
    labels += text_svg(kStepLeft - 8, y_ + 16, "class=\"tick\" text-anchor=\"end\"", "ms");
    return text("<svg class=\"long\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", svg_number(kWidth),
                svg_number(y_ + 24), html_escaped(description)) +
           out_ +
           text("<path class=\"frame\" d=\"{}H{}{}\"/>\n", path_to('M', kStepLeft, y_), svg_number(kStepRight), ticks) +
           labels + "</svg>\n";
  }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> out;
    const auto box = [](const std::string& css) {
      return text("<rect class=\"{}\" x=\"1\" width=\"26\" height=\"12\"/>", css);
    };
    for (const auto& [kind, style] : passes_)
      if (out.empty() || out.back().name != style.name)
        out.push_back({box(std::string("pass ") + style.css), style.name});
    if (has_waits_) out.push_back({box("bubble") + box("wait"), "wait"});
    out.push_back({box("bubble"), "neither pass nor wait"});
    for (const auto& [axis, series] : axes_) out.push_back({bar_svg(series, 1, 3, 26, 6), "calls of " + axis});
    return out;
  }

  std::string caption() const {
    std::string out;
    if (left_out_ > 0) out = text("Only the first {} ranks are drawn. ", kMaxDrawnRanks);
    if (boxes_ >= kMaxStepBoxes) out += text("Only {} passes, waits and calls are drawn.", kMaxStepBoxes);
    return out;
  }

 private:
  double x(double ms) const { return kStepLeft + axis_.part(ms) * (kStepRight - kStepLeft); }

  void box(const std::string& css, double start, double end, double y, double height, const std::string& tooltip) {
    const double width = x(end) - x(start);
    if (!(width >= kMinBox) || boxes_ >= kMaxStepBoxes) return;
    ++boxes_;
    out_ += text("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">", css, svg_number(x(start)),
                 svg_number(y), svg_number(width), svg_number(height)) +
            text("<title>{}</title></rect>\n", html_escaped(tooltip));
  }

  void call(const report::MeasuredCall& of, int rank, std::size_t series) {
    const double from = x(of.posted - start_), width = x(of.completed - start_) - from;
    if (!(width >= kMinBox) || boxes_ >= kMaxStepBoxes) return;
    ++boxes_;
    out_ += bar_svg(series, from, y_ + kRow + 1, width, kCalls - 1,
                    text("{} of {}, rank {}: {}, {}", of.call, of.axis, rank, report::bytes_text(of.bytes),
                         length_text(of.posted, of.completed)));
  }

  static std::string length_text(double start, double end) { return report::decimals_text(end - start, 3) + " ms"; }

  void pass(const schedule::Span& span, const RankTimeline& of) {
    const PassStyle style = style_of(span.kind);
    const double from = span.start - start_, to = span.end - start_;
    const std::string number = span.microbatch < 0 ? "" : std::to_string(span.microbatch);
    const std::string action = schedule::action_text(span.kind, span.stage, span.microbatch);
    box(std::string("pass ") + style.css, from, to, y_, kRow,
        text("{}, rank {}: {}", action, of.rank, length_text(from, to)));
    passes_.try_emplace(span.kind, style);
    const std::string label = style.letter + number;
    const double middle = (x(from) + x(to)) / 2, half = text_width(label) / 2 + 2;
    const auto hides = [&](const report::MeasuredWait& wait) {
      return x(wait.start - start_) < middle + half && x(wait.end - start_) > middle - half;
    };
    if (label.empty() || x(to) - x(from) < 2 * half || std::ranges::any_of(of.waits, hides)) return;
    const char* const css = span.kind == Kind::backward_weight ? "class=\"on-pass on-weight\" text-anchor=\"middle\""
                                                               : "class=\"on-pass\" text-anchor=\"middle\"";
    out_ += text_svg(middle, y_ + kRow / 2 + 3.5, css, label);
  }

  void rank(const RankTimeline& of) {
    out_ += text_svg(kStepLeft - 8, y_ + kRow / 2 + 4, "text-anchor=\"end\"", text("rank {}", of.rank));
    box("bubble", std::max(of.start - start_, 0.0), of.end - start_, y_, kRow,
        text("rank {}: {}", of.rank, length_text(of.start, of.end)));
    for (const schedule::MeasuredPass& each : of.passes) pass(each.span, of);
    for (const schedule::MeasuredPass& each : of.actions)
      if (each.span.kind == Kind::norm || each.span.kind == Kind::opt_step || each.span.kind == Kind::gather_param)
        pass(each.span, of);
    for (const report::MeasuredWait& wait : of.waits) {
      has_waits_ = true;
      const std::string tooltip =
          text("rank {} waits, {}: {}", of.rank, wait.reason, length_text(wait.start, wait.end));
      box("bubble", wait.start - start_, wait.end - start_, y_, kRow, tooltip);
      box("wait", wait.start - start_, wait.end - start_, y_, kRow, tooltip);
    }
    for (const report::MeasuredCall& call : of.calls) {
      const std::size_t series = axes_.try_emplace(call.axis, axes_.size()).first->second;
      this->call(call, of.rank, series);
    }
    y_ += kRow + kCalls + kRankGap;
  }

  ChartAxis axis_;
  double start_ = 0, y_ = 2;
  std::size_t boxes_ = 0, left_out_ = 0;
  bool has_waits_ = false;
  std::map<Kind, PassStyle> passes_;
  std::map<std::string, std::size_t> axes_; // and the number of their colour
  std::string out_;
};

} // namespace

std::optional<Figure> step_timeline(const std::string& title, const std::vector<StepPanel>& panels) {
  double longest = 0;
  std::string description = title + ":";
  for (const StepPanel& panel : panels) {
    const StepRange range = range_of(panel.ranks);
    longest = std::max(longest, range.end - range.start);
    description += text(" {} {} ranks, {} ms;", panel.heading, panel.ranks.size(),
                        report::decimals_text(range.end - range.start, 2));
  }
  if (!(longest > 0) || !std::isfinite(longest)) return {};
  description.pop_back();
  StepDrawing drawing(longest);
  for (const StepPanel& panel : panels)
    if (!panel.ranks.empty()) drawing.panel(panel);
  std::string svg = drawing.svg(description);
  return Figure{title, std::move(svg), drawing.caption(), drawing.legend(), true};
}

} // namespace triax::page
