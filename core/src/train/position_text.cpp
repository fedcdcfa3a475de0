// SPDX-License-Identifier: Apache-2.0
#include "train/position_text.hpp"

#include <span>

#include "schedule/program.hpp"
#include "triax/text.hpp"

namespace triax::train {

std::string position_text(const executor::Position::Snapshot& seen, const PositionWords& words) {
  if (!seen.program && seen.step < 0) return "before its first step" + words.waiting_for(kNoAction);
  if (!seen.program)
    return (seen.step == 0 ? std::string("after an evaluation") : text("after step {}", seen.step)) +
           words.waiting_for(kNoAction);
  const std::span<const schedule::ProgramAction> actions = seen.program->actions();
  if (seen.action >= actions.size()) return text("step {}", seen.step); // read while the program changed
  std::string out = seen.step > 0 ? text("step {}", seen.step) : "evaluation";
  out += text(", {}", seen.program->label(seen.action));
  if (seen.waited >= actions.size()) return out + words.waiting_for(seen.action);
  out += text(", waiting for {}", seen.program->label(seen.waited));
  const int peer = actions[seen.waited].peer;
  if (peer < 0) return out;
  return out + text(" {} {}", schedule::sends(actions[seen.waited].kind) ? "to" : "from", words.rank(peer));
}

} // namespace triax::train
