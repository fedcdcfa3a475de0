// SPDX-License-Identifier: Apache-2.0
// The descriptions of a run's model, by tensor rank: dry runs of many pipeline ranks create its layers once.
//
// Threads: the rank's main thread. Ownership: shares the descriptions; run, layout and plugins must outlive them.
// Errors: those of ModelDescription, and ModelError for ties that differ between tensor ranks.
#pragma once

#include <map>
#include <memory>

#include "train/rank_setup.hpp"

namespace triax::train {

class ModelDescriptions {
 public:
  /// For `rank` and all that differ from it in the pipeline rank only. Later calls have the same arguments but `rank`.
  std::shared_ptr<const executor::ModelDescription> of(int rank, const config::RunConfig& run, const Layout& layout,
                                                       const RankPlugins& plugins, const Programs& programs);

 private:
  std::map<int, std::shared_ptr<const executor::ModelDescription>> by_tensor_rank_;
  std::shared_ptr<const executor::ModelDescription> first_;
};

} // namespace triax::train
