// SPDX-License-Identifier: Apache-2.0
#include "draw/rank_trace.hpp"

#include <algorithm>
#include <map>

#include "draw/trace_events.hpp"
#include "triax/text.hpp"

namespace triax::draw {

namespace {

using Json = TraceEvents::Json;

/// The track of a call on its rank: calls that run one after another share a track.
std::string track_of(const report::MeasuredCall& call) {
  if (call.peer >= 0)
    return text("{}: {} {}rank {}", call.axis, call.call,
                call.call == "send"      ? "to "
                : call.call == "receive" ? "from "
                                         : "with ",
                call.peer);
  return call.awaited ? call.axis : text("{}, beside computing", call.axis);
}

class RankProcess {
 public:
  RankProcess(const RankTrace& of, int number, TraceEvents& events)
      : of_(*of.timeline), shift_(of.shift), number_(number), events_(events) {
    events_.add_name("process_name", number_, 0, {{"name", of.name}});
    name_track(kCompute, "compute");
    name_track(kWaits, "waits");
  }

  void compute() {
    slice(text("step {}", of_.step), "step", kCompute, of_.start, of_.end, Json::object());
    for (const std::vector<schedule::MeasuredPass>* list : {&of_.passes, &of_.actions})
      for (const schedule::MeasuredPass& action : *list) {
        const schedule::Span& span = action.span;
        const std::string name = schedule::action_text(span.kind, span.stage, span.microbatch);
        const char* category = schedule::is_transfer(span.kind) ? "post" : rule(span.kind).name;
        slice(name, category, kCompute, span.start, span.end, {{"action", name}, {"waited_ms", action.waited_ms}});
      }
  }

  void waits() {
    for (const report::MeasuredWait& wait : of_.waits) {
      Json args = {{"for", wait.reason}};
      if (wait.peer >= 0) args["peer"] = wait.peer;
      slice(wait.reason, "wait", kWaits, wait.start, wait.end, args);
    }
  }

  void calls() {
    std::map<std::string, Track> tracks;
    for (const report::MeasuredCall& call : of_.calls) {
      const auto [found, is_new] = tracks.try_emplace(track_of(call), Track{kWaits + 1 + tracks.size(), 0});
      Track& track = found->second;
      if (is_new) name_track(track.number, found->first);
      const double start = std::min(std::max(call.posted, track.free), call.completed);
      track.free = std::max(track.free, call.completed);
      Json args = {{"action", call.action}, {"axis", call.axis}, {"bytes", call.bytes}};
      if (call.peer >= 0) args["peer"] = call.peer;
      args["posted_us"] = (call.posted + shift_) * kTraceMicroseconds;
      slice(call.call, call.axis.c_str(), track.number, start, call.completed, args);
    }
  }

 private:
  static constexpr std::size_t kCompute = 0, kWaits = 1;
  struct Track {
    std::size_t number = 0;
    double free = 0; // when the previous call completed
  };

  void name_track(std::size_t track, const std::string& name) {
    events_.add_name("thread_name", number_, track, {{"name", name}});
    events_.add_name("thread_sort_index", number_, track, {{"sort_index", track}});
  }

  void slice(const std::string& name, const char* category, std::size_t track, double start, double end,
             const Json& args) {
    Json event = TraceEvents::at("X", name, number_, track, start + shift_);
    event["dur"] = (end - start) * kTraceMicroseconds;
    event["cat"] = category;
    event["args"] = args;
    events_.add(event);
  }

  const report::RankTimeline& of_;
  const double shift_;
  const int number_;
  TraceEvents& events_;
};

} // namespace

void add_rank(const RankTrace& rank, int process, TraceEvents& events) {
  RankProcess of(rank, process, events);
  of.compute();
  of.waits();
  of.calls();
}

} // namespace triax::draw
