// SPDX-License-Identifier: Apache-2.0
#include "report/missing.hpp"

#include "triax/text.hpp"

namespace triax::report {

void Missing::add(const Missing& other) {
  records += other.records;
  log_lines += other.log_lines;
  timelines += other.timelines;
  checkpoints += other.checkpoints;
  events += other.events;
}

std::string to_text(const Missing& missing, std::int64_t records) {
  std::string out;
  const auto part = [&out](const std::string& words) { out += (out.empty() ? "" : ", ") + words; };
  const auto counted = [](std::int64_t count, const char* one, const char* many) {
    return text("{} {}", count, count == 1 ? one : many);
  };
  if (missing.records > 0) part(text("{} of {}", missing.records, counted(records, "record", "records")));
  if (missing.log_lines > 0) part(counted(missing.log_lines, "line of logs", "lines of logs"));
  if (missing.timelines > 0) part(counted(missing.timelines, "timeline", "timelines"));
  if (missing.checkpoints > 0) part(counted(missing.checkpoints, "checkpoint", "checkpoints"));
  if (missing.events > 0) part(counted(missing.events, "event for TensorBoard", "events for TensorBoard"));
  return out;
}

} // namespace triax::report
