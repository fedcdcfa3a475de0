// SPDX-License-Identifier: Apache-2.0
#include "train/program_digest.hpp"

#include <cstdint>

#include "base/digest.hpp"
#include "triax/error.hpp"

namespace triax::train {

namespace {

std::string choice_digest(std::span<const std::vector<ChosenBlock>> chosen) {
  Digest digest;
  for (const std::vector<ChosenBlock>& blocks : chosen) {
    digest.add(static_cast<std::int64_t>(blocks.size()));
    for (const ChosenBlock& block : blocks)
      for (const std::vector<int>* const list : {&block.steps.steps, &block.steps.dropped}) {
        digest.add(static_cast<std::int64_t>(list->size()));
        for (const int number : *list) digest.add(std::int64_t{number});
      }
  }
  return digest.text();
}

bool is_of_rank_0(const std::string& key, const std::string& own, int rank, Store& store, Deadline deadline) {
  if (rank == 0) store.set(key, own);
  return store.get(key, deadline) == own;
}

} // namespace

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

void compare_programs(const Programs& programs, int rank, const std::string& scheduler, Store& store,
                      Deadline deadline) {
  if (!is_of_rank_0("train/programs", program_digest(programs.training), rank, store, deadline))
    throw Error(text("rank {} has another schedule than rank 0", rank), scheduler,
                "all ranks need the same plugin and the same files, and none may change while they start; rows() of a "
                "scheduler depends on its shape and options only");
  if (programs.chosen.empty()) return;
  if (!is_of_rank_0("train/recomputed", choice_digest(programs.chosen), rank, store, deadline))
    throw Error(text("rank {} recomputes other parts of blocks than rank 0 (memory.recompute = \"optimal\")", rank), {},
                "all ranks need the same Triax, the same version of CBC and the same files");
}

} // namespace triax::train
