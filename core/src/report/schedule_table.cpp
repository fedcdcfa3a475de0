#include "report/schedule_table.hpp"

#include <algorithm>
#include <cmath>

#include "report/schedule_shades.hpp"
#include "triax/error.hpp"

namespace triax::report {

namespace {

using schedule::Span;
using schedule::Timeline;
using Row = std::vector<Span>;

constexpr std::int64_t kRulerUnits = 5; // between two numbers above the drawing

/// Of time: what F, I and W take.
std::int64_t units(double time) {
  return std::llround(time);
}

bool stage_is_rank(const schedule::StageMap& stage_map) {
  for (int stage = 0; stage < stage_map.stages(); ++stage)
    if (stage_map.rank_of(stage) != stage) return false;
  return true;
}

/// Text whose columns are counted apart from the bytes that colour it.
class Line {
 public:
  explicit Line(std::string text) : text_(std::move(text)), columns_(text_.size()) {}
  void pad_to(std::size_t columns) {
    text_.append(columns - columns_, ' ');
    columns_ = columns;
  }
  void replace_last(char letter) { text_.back() = letter; }
  void add(const std::string& text) {
    text_ += text;
    columns_ += text.size();
  }
  void add_control(const std::string& bytes) { text_ += bytes; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t columns_;
};

class Drawing {
 public:
  Drawing(const Timeline& timeline, bool colour)
      : with_stage_(!stage_is_rank(timeline.stage_map)), colour_(colour), chunks_(timeline.stage_map) {
    for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank) {
      label_width_ = std::max(label_width_, label(rank).size());
      for (const Span& span : timeline.rows[rank]) unit_width_ = std::max(unit_width_, box(span).size() + 1);
    }
  }

  std::string ruler(std::int64_t length) const {
    std::string out = "time";
    for (std::int64_t at = 0; at < length; at += kRulerUnits) {
      out.resize(column(at), ' ');
      out += std::to_string(at);
    }
    return out + '\n';
  }

  /// A box begins behind the bar of the one before it, or behind one of its own.
  std::string row(std::size_t rank, const Row& spans) const {
    Line out(label(rank));
    std::int64_t reached = -1;
    for (const Span& span : spans) {
      out.pad_to(column(units(span.start)));
      if (units(span.start) != reached) out.replace_last('|');
      if (colour_) out.add_control(colours(span));
      out.add(box(span));
      out.pad_to(column(units(span.end)) - 1);
      if (colour_) out.add_control("\x1b[0m");
      out.add("|");
      reached = units(span.end);
    }
    return out.text() + '\n';
  }

 private:
  static std::string label(std::size_t rank) { return text("rank {} ", rank); }
  std::string box(const Span& span) const {
    return schedule::action_text(span.kind, with_stage_ ? span.stage : 0, span.microbatch).substr(with_stage_ ? 0 : 1);
  }
  std::string colours(const Span& span) const {
    const Shade shade = shade_of(span.kind, chunks_.of_stage.at(static_cast<std::size_t>(span.stage)), chunks_.most);
    return text("\x1b[38;5;{};48;5;{}m", wants_white(shade) ? 231 : 16, of_256_colours(shade));
  }
  /// Of the first character of a box that starts then.
  std::size_t column(std::int64_t at) const { return label_width_ + 1 + static_cast<std::size_t>(at) * unit_width_; }

  bool with_stage_, colour_;
  Chunks chunks_;
  std::size_t unit_width_ = 0, label_width_ = 0;
};

std::int64_t busy_units(const Row& row) {
  double busy = 0;
  for (const Span& span : row) busy += span.length();
  return units(busy);
}

} // namespace

std::string schedule_table(const Timeline& timeline, bool colour) {
  TRIAX_REQUIRE(timeline.unit == Timeline::Unit::pass, "a table counts units of time");
  const std::int64_t length = units(schedule::extent(timeline).last);
  const Drawing drawing(timeline, colour);
  std::string out = drawing.ruler(length), idle, in_flight;
  for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank) {
    const Row& row = timeline.rows[rank];
    out += drawing.row(rank, row);
    idle += text(" {}", length - busy_units(row));
    in_flight += text(" {}", schedule::peak_of(schedule::in_flight(row)));
  }
  const bool chunks = timeline.stage_map.stages() > static_cast<int>(timeline.rows.size());
  out += text("idle time of {}, by rank:{}\n", length, idle);
  return out + text("peak of {} in flight, by rank:{}\n", chunks ? "microbatch chunks" : "microbatches", in_flight);
}

} // namespace triax::report
