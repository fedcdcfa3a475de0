// SPDX-License-Identifier: Apache-2.0
// A scheduler, loaded as a plugin, and its rows as text.
//
// Ownership: owns the scheduler. Blocking: loading reads a file. For programs built with triax_add_test: name the
// plugin's target under DEPENDS.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plugin/loader.hpp"
#include "support/default_options.hpp"
#include "support/installation.hpp"
#include "triax/scheduler.hpp"

namespace triax::test {

class LoadedScheduler {
 public:
  /// Options that are not in `set` have their defaults.
  explicit LoadedScheduler(const std::string& name, const OptionValues& set = {})
      : library_(plugin::load(test::plugin_file(name), Scheduler::kKind)),
        options_(default_options(library_, set)),
        scheduler_(plugin::create<Scheduler>(library_, {options_, null_log(), layout_, 0, 1})) {}
  const Scheduler& operator*() const { return *scheduler_; }
  const Scheduler* operator->() const { return scheduler_.get(); }

 private:
  const plugin::Library& library_;
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  plugin::Instance<Scheduler> scheduler_;
};

/// Such as "0F0 0F1 0B0 0B1".
inline std::string row_text(const Schedule& schedule, int rank) {
  std::string text;
  for (const Action& action : schedule.row(rank)) text += (text.empty() ? "" : " ") + to_text(action);
  return text;
}

inline std::vector<std::string> row_texts(const Schedule& schedule) {
  std::vector<std::string> out;
  for (int rank = 0; rank < schedule.ranks(); ++rank) out.push_back(row_text(schedule, rank));
  return out;
}

} // namespace triax::test
