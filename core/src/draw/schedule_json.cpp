// SPDX-License-Identifier: Apache-2.0
#include "draw/schedule_json.hpp"

#include <nlohmann/json.hpp>

namespace triax::draw {

namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json action(const schedule::Span& span) {
  return {{"action", schedule::action_text(span.kind, span.stage, span.microbatch)},
          {"kind", schedule::rule(span.kind).name},
          {"stage", span.stage},
          {"microbatch", span.microbatch},
          {"start", span.start},
          {"end", span.end}};
}

} // namespace

std::string schedule_json(const std::string& name, const schedule::Timeline& timeline) {
  const schedule::TimeSpan time_span = schedule::time_span(timeline);
  std::vector<int> stage_rank;
  stage_rank.reserve(static_cast<std::size_t>(timeline.stage_map.stages()));
  for (int stage = 0; stage < timeline.stage_map.stages(); ++stage)
    stage_rank.push_back(timeline.stage_map.rank_of(stage));
  const Json head = {{"schedule", name},
                     {"pipeline", timeline.shape.pipeline},
                     {"chunks", timeline.shape.chunks},
                     {"microbatches", timeline.shape.microbatches},
                     {"stage_rank", stage_rank},
                     {"unit", timeline.unit == schedule::Timeline::Unit::pass ? "pass" : "ms"},
                     {"active", time_span.active},
                     {"bubble_rate", time_span.bubble_rate()}};
  std::string out = line(head);
  out.pop_back();
  out += ",\"ranks\":[";
  const char* between_ranks = "\n[";
  for (const std::vector<schedule::Span>& row : timeline.rows) {
    out += between_ranks;
    between_ranks = ",\n[";
    const char* between_actions = "\n";
    for (const schedule::Span& span : row) {
      out += between_actions + line(action(span));
      between_actions = ",\n";
    }
    out += "]";
  }
  return out + "]}\n";
}

} // namespace triax::draw
