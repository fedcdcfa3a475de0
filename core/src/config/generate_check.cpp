// SPDX-License-Identifier: Apache-2.0
#include "config/generate_check.hpp"

#include <cstdint>

namespace triax::config {

Refusals check_generating(const Values& values) {
  Refusals out;
  if (const auto* data = values.find<std::int64_t>("parallel.data"); data && *data > 1)
    out.add(make_refusal(ErrorCode::kUnsupported, {"parallel.data"},
                         "parallel.data = {}: one copy of the model generates text", *data)
                .with_hint("leave it out; parallel.tensor and parallel.pipeline divide the model"));
  const auto refuse = [&out](const char* key) {
    out.add(make_refusal(ErrorCode::kConflict, {key}, "{} has no effect when text is generated", key)
                .with_hint("leave it out; parallel.tensor and parallel.pipeline divide the model"));
  };
  if (const auto* chunks = values.find<std::int64_t>("parallel.chunks"); chunks && *chunks > 1)
    refuse("parallel.chunks");
  for (const char* key : {"parallel.sequence", "parallel.scatter_gather"})
    if (const auto* value = values.find<bool>(key); value && *value) refuse(key);
  return out;
}

} // namespace triax::config
