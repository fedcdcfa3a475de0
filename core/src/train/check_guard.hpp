// SPDX-License-Identifier: Apache-2.0
// Turns exceptions of plugins and modules into errors of a run.
#pragma once

#include <string>

#include "config/run_config.hpp"
#include "triax/error.hpp"

namespace triax::train {

/// Calls functions, and adds what they throw to `refusals`. Borrows both.
class CheckGuard {
 public:
  CheckGuard(const config::RunConfig& run, Refusals& refusals) : run_(run), refusals_(refusals) {}

  /// `key`: the one that is responsible. If it is empty and a plugin failed, the key that names the plugin is.
  template <class Body>
  void operator()(const std::string& key, Body body) {
    try {
      body();
    } catch (...) { // also out of memory
      add_caught(key);
    }
  }
  void refuse(const Refusals& refusals) { refusals_.add(refusals); }

 private:
  /// The exception that is being handled.
  void add_caught(const std::string& key);
  void add_failure(const std::string& key);

  const config::RunConfig& run_;
  Refusals& refusals_;
};

} // namespace triax::train
