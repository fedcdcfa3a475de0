// SPDX-License-Identifier: Apache-2.0
#include "draw/schedule_svg.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "draw/schedule_scale.hpp"
#include "draw/svg.hpp"

namespace triax::draw {

namespace {

using schedule::InFlight;
using schedule::Kind;
using schedule::Span;
using schedule::Timeline;
using Anchor = Svg::Anchor;

constexpr std::int64_t kMaxBoxes = 1 << 15;
constexpr int kMaxDrawnRanks = 256;

constexpr double kLeft = 62, kRight = 46, kMargin = 16;
constexpr double kRowGap = 3, kStripGap = 5;
constexpr Shade kInFlight = {134, 145, 167}, kForWeight = {205, 212, 224};

const char* name_of(Timeline::Unit unit) {
  return unit == Timeline::Unit::pass ? "time" : "ms";
}

/// Removes rounding errors of sums of times.
std::string rounded(double time, int decimals) {
  const double power = std::pow(10, decimals);
  return triax::to_text(std::round(time * power) / power);
}

/// At font size 11; the fonts of the reader are not known.
double estimated_width(const std::string& letters) {
  double out = 0;
  for (const char letter : letters) {
    const bool narrow = std::string_view("fijlt,':. ").find(letter) != std::string_view::npos;
    const bool wide = std::string_view("mwMW%").find(letter) != std::string_view::npos;
    out += narrow ? 3.7 : wide ? 10 : 6.7;
  }
  return out;
}

/// One timeline: boxes, axis, and microbatch chunks in flight.
class PanelDrawing {
 public:
  PanelDrawing(const Timeline& timeline, const Scale& scale, Svg& svg, double top)
      : timeline_(timeline),
        scale_(scale),
        chunks_(timeline.stage_map),
        first_(schedule::time_span(timeline).first),
        svg_(svg),
        y_(top) {}

  /// Returns the y coordinate of its end.
  double draw() {
    for (std::size_t rank = 0; rank < timeline_.rows.size(); ++rank) {
      label(rank, y_ + scale_.row / 2 + 4);
      svg_.box({kLeft, y_, scale_.width, scale_.row}, kIdle);
      passes(timeline_.rows[rank], rank);
      y_ += scale_.row + kRowGap;
    }
    axis();
    const bool chunks = timeline_.stage_map.stages() > static_cast<int>(timeline_.rows.size());
    svg_.text(kLeft, y_ + 11, chunks ? "microbatch chunks in flight" : "microbatches in flight", {});
    svg_.text(kLeft + scale_.width + 6, y_ + 11, "peak", {.fill = kSecondaryTextColour});
    y_ += 18;
    for (std::size_t rank = 0; rank < timeline_.rows.size(); ++rank) {
      label(rank, y_ + scale_.strip);
      strip(timeline_.rows[rank], rank);
      y_ += scale_.strip + kStripGap;
    }
    return y_;
  }

 private:
  double x(double time) const { return kLeft + scale_.pixels(time - first_); }
  bool labelled(std::size_t rank) const { return rank % static_cast<std::size_t>(scale_.labelled) == 0; }

  void label(std::size_t rank, double base_line) {
    if (labelled(rank)) svg_.text(kLeft - 8, base_line, text("rank {}", rank), {.anchor = Anchor::end});
  }

  void passes(const std::vector<Span>& row, std::size_t rank) {
    svg_.open(text(R"(stroke="{}" stroke-width="{}")", kBackground, svg_number(scale_.gap)));
    for (const Span& span : row) {
      const double from = x(span.start), to = x(span.end);
      if (to <= from || schedule::is_transfer(span.kind)) continue;
      svg_.box({from, y_, to - from, scale_.row}, shade(span),
               text("{}, rank {}: {} to {}{}", schedule::action_text(span.kind, span.stage, span.microbatch), rank,
                    rounded(span.start, 4), rounded(span.end, 4), timeline_.unit == Timeline::Unit::ms ? " ms" : ""));
    }
    svg_.close();
    for (const Span& span : row) {
      const double from = x(span.start), to = x(span.end);
      const std::string number = std::to_string(span.microbatch);
      if (span.microbatch < 0 || schedule::is_transfer(span.kind) || !scale_.fits(number, to - from)) continue;
      svg_.text(
          (from + to) / 2, y_ + scale_.row / 2 + 0.36 * scale_.number, number,
          {.size = scale_.number, .anchor = Anchor::middle, .fill = wants_white(shade(span)) ? "#ffffff" : "#1b1f27"});
    }
  }

  Shade shade(const Span& span) const {
    const int chunk = span.stage < 0 ? 0 : chunks_.of_stage.at(static_cast<std::size_t>(span.stage));
    return shade_of(span.kind, chunk, chunks_.max);
  }

  void axis() {
    const double length = scale_.width / scale_.pixels(1);
    svg_.text(kLeft - 8, y_ + 17, name_of(timeline_.unit),
              {.size = 10, .anchor = Anchor::end, .fill = kSecondaryTextColour});
    svg_.open(text(R"(stroke="{}" stroke-width="1" fill="none")", kSecondaryTextColour));
    svg_.line(kLeft, y_ + 2, kLeft + scale_.width, y_ + 2);
    const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(scale_.tick) - 1e-9)));
    const int ticks = static_cast<int>(std::floor(length / scale_.tick + 1e-9));
    for (int tick = 0; tick <= ticks; ++tick) {
      const double at = kLeft + scale_.pixels(tick * scale_.tick);
      svg_.line(at, y_ + 2, at, y_ + 6);
    }
    svg_.close();
    for (int tick = 0; tick <= ticks; ++tick)
      svg_.text(kLeft + scale_.pixels(tick * scale_.tick), y_ + 17, rounded(tick * scale_.tick, decimals),
                {.size = 10, .anchor = Anchor::middle, .fill = kSecondaryTextColour});
    y_ += 30;
  }

  /// Everything in flight, and over it, darker, those before their input gradient.
  void strip(const std::vector<Span>& row, std::size_t rank) {
    const std::vector<InFlight> flying = schedule::in_flight(row);
    const double base = y_ + scale_.strip;
    svg_.box({kLeft, base - 0.5, scale_.width, 1}, kForWeight);
    const bool split = std::ranges::any_of(flying, [](const InFlight& now) { return now.weight > 0; });
    if (split) svg_.path(steps(flying, base, &InFlight::all), kForWeight);
    svg_.path(steps(flying, base, [](const InFlight& now) { return now.whole; }), kInFlight);
    if (labelled(rank))
      svg_.text(kLeft + scale_.width + 6, base, std::to_string(schedule::peak_of(flying)),
                {.fill = kSecondaryTextColour});
  }

  template <class Count>
  std::string steps(const std::vector<InFlight>& flying, double base, Count count) const {
    std::string out;
    for (const InFlight& now : flying) {
      const double height = scale_.strip * std::invoke(count, now) / scale_.max_in_flight;
      if (out.empty()) out = text("M{} {}", svg_number(x(now.from)), svg_number(base));
      out += text("H{}V{}", svg_number(x(now.from)), svg_number(base - height));
    }
    return out + text("V{}Z", svg_number(base));
  }

  const Timeline& timeline_;
  const Scale& scale_;
  const Chunks chunks_;
  const double first_;
  Svg& svg_;
  double y_;
};

/// Legend: for each kind of pass in the picture, a sample per chunk.
class Legend {
 public:
  Legend(const Picture& picture, double width, Svg& svg, double top) : right_(width), svg_(svg), y_(top) {
    for (const Panel& panel : picture.panels) {
      chunks_ = std::max(chunks_, Chunks(panel.timeline.stage_map).max);
      for (const std::vector<Span>& row : panel.timeline.rows)
        for (const Span& span : row) {
          if (schedule::is_transfer(span.kind)) continue;
          has_[schedule::runs_layers(span.kind) ? static_cast<std::size_t>(span.kind) : kOther] = true;
        }
    }
  }

  double draw() {
    passes(Kind::forward, "F forward");
    passes(Kind::recompute, "R recomputation");
    passes(Kind::backward, "B backward");
    passes(Kind::backward_input, "I input gradient");
    passes(Kind::backward_weight, "W weight gradient");
    if (has_[kOther]) entry({shade_of(Kind::opt_step, 0, 1)}, "end of the step");
    entry({kIdle}, "idle");
    entry({kInFlight}, "in flight");
    if (has_[static_cast<std::size_t>(Kind::backward_weight)]) entry({kForWeight}, "only W is left");
    if (chunks_ > 1) entry({}, text("dark to light: a rank's chunks 0 to {}", chunks_ - 1));
    return y_ + kSample;
  }

 private:
  static constexpr std::size_t kOther = 5; // after the five kinds of passes
  static constexpr double kSample = 12;

  void passes(Kind kind, const std::string& name) {
    if (!has_[static_cast<std::size_t>(kind)]) return;
    std::vector<Shade> shades;
    shades.reserve(static_cast<std::size_t>(chunks_));
    for (int chunk = 0; chunk < chunks_; ++chunk) shades.push_back(shade_of(kind, chunk, chunks_));
    entry(shades, name);
  }

  void entry(const std::vector<Shade>& shades, const std::string& name) {
    const double sample = shades.size() > 3 ? 2 * kSample / static_cast<double>(shades.size()) : kSample;
    const double samples = sample * static_cast<double>(shades.size()), width = samples + 5 + estimated_width(name);
    if (x_ > kLeft && x_ + width > right_) x_ = kLeft, y_ += 1.5 * kSample;
    for (std::size_t at = 0; at < shades.size(); ++at)
      svg_.box({x_ + sample * static_cast<double>(at), y_, sample, kSample}, shades[at]);
    svg_.text(x_ + samples + (shades.empty() ? 0 : 5), y_ + 10, name, {});
    x_ += width + 14;
  }

  double right_;
  Svg& svg_;
  double x_ = kLeft, y_;
  int chunks_ = 1;
  bool has_[kOther + 1] = {};
};

} // namespace

Refusals svg_support(const Picture& picture) {
  std::int64_t boxes = 0;
  double length = 0;
  for (const Panel& panel : picture.panels) {
    const auto ranks = static_cast<int>(panel.timeline.rows.size());
    if (ranks > kMaxDrawnRanks)
      return make_refusal(ErrorCode::kTooLarge, {}, "a picture of {} ranks is too large to read; {} can be drawn",
                          ranks, kMaxDrawnRanks);
    length = std::max(length, schedule::time_span(panel.timeline).length());
    for (const std::vector<Span>& row : panel.timeline.rows) boxes += static_cast<std::int64_t>(row.size());
  }
  if (length <= 0)
    return make_refusal(ErrorCode::kUnsupported, {}, "there is nothing to draw: all passes together take no time");
  if (boxes > kMaxBoxes)
    return make_refusal(ErrorCode::kTooLarge, {}, "a picture of {} passes is too large to read; {} can be drawn", boxes,
                        kMaxBoxes);
  return {};
}

std::string schedule_svg(const Picture& picture) {
  const Refusals support = svg_support(picture);
  TRIAX_REQUIRE(support.empty(), "{}", support.front().message);
  for (const Panel& panel : picture.panels)
    TRIAX_REQUIRE(panel.timeline.unit == picture.panels[0].timeline.unit, "the panels have different units");
  const Scale scale(picture);
  Svg svg;
  double y = kMargin + 12;
  svg.text(kLeft, y, picture.title, {.size = 15, .bold = true});
  if (!picture.note.empty()) svg.text(kLeft, y += 18, picture.note, {.size = 11, .fill = kSecondaryTextColour});
  y += 14;
  for (const Panel& panel : picture.panels) {
    if (!panel.heading.empty()) svg.text(kLeft, y += 12, panel.heading, {.size = 12, .bold = true}), y += 8;
    y = PanelDrawing(panel.timeline, scale, svg, y).draw() + 12;
  }
  const double words = std::max(estimated_width(picture.title) * 15 / 11, estimated_width(picture.note));
  const double width = kLeft + std::max(scale.width + kRight, words + kMargin);
  const double end = Legend(picture, width - kMargin, svg, y).draw();
  return svg_page(width, end + kMargin, picture.title, svg);
}

} // namespace triax::draw
