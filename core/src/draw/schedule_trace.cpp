// SPDX-License-Identifier: Apache-2.0
#include "draw/schedule_trace.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "draw/rank_trace.hpp"
#include "draw/trace_events.hpp"

namespace triax::draw {

namespace {

using Json = TraceEvents::Json;
using schedule::Kind;
using schedule::Span;

constexpr double kMicroseconds = kTraceMicroseconds;
constexpr double kNanosecond = 0.001; // of a microsecond

/// The process is the panel, its threads are the ranks.
class PanelProcess {
 public:
  PanelProcess(const Panel& panel, int number, TraceEvents& events)
      : of_(panel.timeline), number_(number), events_(events) {
    schedule::time_span(of_); // throws at what cannot be drawn
  }

  void name(const std::string& name) {
    named("process_name", 0, {{"name", name}});
    for (std::size_t rank = 0; rank < of_.rows.size(); ++rank) {
      named("thread_name", rank, {{"name", text("rank {}", rank)}});
      named("thread_sort_index", rank, {{"sort_index", rank}});
    }
  }

  void passes() {
    each([this](std::size_t rank, const Span& span) {
      Json args = {{"action", schedule::action_text(span.kind, span.stage, span.microbatch)}};
      if (span.stage >= 0) args["stage"] = span.stage;
      if (span.microbatch >= 0) args["microbatch"] = span.microbatch;
      Json event = event_at("X", title(span), rank, span.start);
      event["dur"] = span.length() * kMicroseconds;
      event["cat"] = schedule::rule(span.kind).name;
      event["args"] = std::move(args);
      events_.add(event);
    });
  }

  /// `next`: number of the first arrow. Returns the number after the last.
  int arrows(int next) {
    std::map<std::tuple<Kind, int, int>, std::pair<std::size_t, const Span*>> made; // a whole backward has both halves
    each([&made](std::size_t rank, const Span& span) {
      const Kind kind = span.kind == Kind::backward ? Kind::backward_input : span.kind;
      made[{kind, span.stage, span.microbatch}] = {rank, &span};
    });
    each([&](std::size_t rank, const Span& span) {
      for (const schedule::Need& need : schedule::rule(span.kind).needs) {
        if (!schedule::runs_layers(span.kind) || !need.condition.holds(of_.stage_map.facts(span.stage))) continue;
        const schedule::Computing needed = schedule::computing_of(need, span.stage);
        const auto found = made.find({needed.kind, needed.stage, span.microbatch});
        if (found == made.end() || found->second.first == rank) continue;
        arrow(next++, *found->second.second, found->second.first, span, rank);
      }
    });
    return next;
  }

 private:
  template <class Visit>
  void each(Visit visit) {
    for (std::size_t rank = 0; rank < of_.rows.size(); ++rank)
      for (const Span& span : of_.rows[rank]) visit(rank, span);
  }

  static std::string title(const Span& span) {
    const char* name = schedule::rule(span.kind).name;
    if (span.microbatch >= 0) return text("{}{} s{}", name, span.microbatch, span.stage);
    return span.stage >= 0 ? text("{} s{}", name, span.stage) : name;
  }

  Json event_at(const char* phase, const std::string& name, std::size_t rank, double time) const {
    return TraceEvents::at(phase, name, number_, rank, time);
  }

  void named(const char* what, std::size_t rank, const Json& args) { events_.add_name(what, number_, rank, args); }

  void arrow(int id, const Span& from, std::size_t from_rank, const Span& to, std::size_t to_rank) {
    Json begin = event_at("s", "transfer", from_rank, from.end);
    // At the exact end, viewers assign the arrow to the next pass.
    begin["ts"] = std::max(from.start * kMicroseconds, from.end * kMicroseconds - kNanosecond);
    Json end = event_at("f", "transfer", to_rank, to.start);
    end["bp"] = "e"; // bound to the pass that begins at this time
    for (Json* event : {&begin, &end}) {
      (*event)["cat"] = "transfer";
      (*event)["id"] = id;
      events_.add(*event);
    }
  }

  const schedule::Timeline& of_;
  int number_;
  TraceEvents& events_;
};

} // namespace

std::string schedule_trace(const Picture& picture, std::span<const RankTrace> ranks) {
  TraceEvents events;
  int number = 0, arrow = 0;
  for (const Panel& panel : picture.panels) {
    PanelProcess process(panel, number++, events);
    process.name(panel.heading.empty() ? picture.title : panel.heading);
    process.passes();
    arrow = process.arrows(arrow);
  }
  for (const RankTrace& rank : ranks) add_rank(rank, number++, events);
  return events.file();
}

} // namespace triax::draw
