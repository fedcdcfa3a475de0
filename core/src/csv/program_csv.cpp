// SPDX-License-Identifier: Apache-2.0
#include "csv/program_csv.hpp"

namespace triax::schedule {

namespace {

template <class Actions, class Text>
void append_row(std::string& out, const Actions& actions, Text text_of) {
  const char* separator = "";
  for (const auto& action : actions) {
    out += separator + text_of(action);
    separator = ",";
  }
  out += '\n';
}

} // namespace

std::string to_csv(const Schedule& schedule) {
  std::string out;
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    append_row(out, schedule.row(rank), [](const Action& action) { return to_text(action); });
  return out;
}

std::string to_csv(std::span<const Program> programs) {
  std::string out;
  for (const Program& program : programs)
    append_row(out, program.actions(),
               [](const ProgramAction& action) { return action_text(action.kind, action.stage, action.microbatch); });
  return out;
}

} // namespace triax::schedule
