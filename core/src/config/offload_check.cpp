// SPDX-License-Identifier: Apache-2.0
#include "config/offload_check.hpp"

#include <string>

namespace triax::config {

Refusals check_offload(const Values& values) {
  const auto* delayed = values.find<bool>("memory.offload_delayed_update");
  const auto* offload = values.find<std::string>("memory.offload");
  if (!delayed || !*delayed || !offload || *offload == "optimizer") return {};
  return make_refusal(ErrorCode::kConflict, {"memory.offload_delayed_update", "memory.offload"},
                      "memory.offload_delayed_update = true needs a host that updates the weights, but memory.offload "
                      "= \"{}\"",
                      *offload)
      .with_hint("use memory.offload = \"optimizer\", or leave memory.offload_delayed_update out");
}

} // namespace triax::config
