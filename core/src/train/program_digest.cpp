// SPDX-License-Identifier: Apache-2.0
#include "train/program_digest.hpp"

#include <cstdint>

#include "base/digest.hpp"
#include "triax/error.hpp"

namespace triax::train {

std::string program_digest(std::span<const schedule::Program> programs) {
  Digest digest;
  for (const schedule::Program& program : programs) {
    for (int stage = 0; stage < program.stage_map().stages(); ++stage)
      digest.add(std::int64_t{program.stage_map().rank_of(stage)});
    for (const schedule::ProgramAction& action : program.actions())
      for (const std::int64_t part :
           {std::int64_t{static_cast<int>(action.kind)}, std::int64_t{action.stage}, std::int64_t{action.microbatch}})
        digest.add(part);
  }
  return digest.text();
}

void compare_programs(std::span<const schedule::Program> programs, int rank, const std::string& scheduler, Store& store,
                      Deadline deadline) {
  const std::string key = "train/programs", own = program_digest(programs);
  if (rank == 0) store.set(key, own);
  if (store.get(key, deadline) == own) return;
  throw Error(
      text("rank {} has another schedule than rank 0", rank), scheduler,
      "all ranks need the same plugin and the same files, and none may change while they start; rows() of a scheduler "
      "depends on its shape and options only");
}

} // namespace triax::train
