// SPDX-License-Identifier: Apache-2.0
// The position of a rank as text: "step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx".
//
// Threads: any. Errors: none.
#pragma once

#include <functional>
#include <string>

#include "executor/position.hpp"

namespace triax::train {

struct PositionWords {
  std::function<std::string(ActionId)> waiting_for; // ", waiting for all_reduce over tensor with ...", or empty
  std::function<std::string(int)> rank;             // of a pipeline rank: "rank 2 through comm-ucx"
};

std::string position_text(const executor::Position::Snapshot& seen, const PositionWords& words);

} // namespace triax::train
