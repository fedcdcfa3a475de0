// SPDX-License-Identifier: Apache-2.0
// Keys of tiny runs with the optimizer's state in files.
#pragma once

#include <map>
#include <string>

#include "train/tiny_run.hpp"

namespace triax::test {

inline void offload(TinyRun& run) {
  run.keys["memory.offload"] = "\"disk\"";
  run.keys["memory.offload_buffer_bytes"] = "4096"; // so that small parameters have several blocks
}

inline const std::map<std::string, std::string> kBf16 = {{"train.precision", "\"bf16\""},
                                                         {"kernels.plugin", "\"kernels-cpu\""}};

} // namespace triax::test
