// SPDX-License-Identifier: Apache-2.0
// A kernel set of this build, by its name.
//
// Threads, ownership, blocking, errors: bench/kernel_side.hpp.
#pragma once

#include <algorithm>
#include <string>
#include <thread>

#include "bench/kernel_side.hpp"
#include "config/option_value.hpp"
#include "support/installation.hpp"

namespace triax::bench {

inline int cores() {
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

class KernelBench : public KernelSide {
 public:
  explicit KernelBench(const std::string& name, int threads = cores()) : KernelSide(choice_of(name), threads) {}

 private:
  static config::PluginChoice choice_of(const std::string& name) {
    config::PluginChoice out;
    out.name = name;
    out.library = &plugin::load(test::plugin_file(name), KernelSet::kKind);
    for (const triax_option& option : out.library->options)
      out.options.set(option.name, config::read_default(option).value.value());
    return out;
  }
};

} // namespace triax::bench
