// SPDX-License-Identifier: Apache-2.0
// The store for ranks that are threads of one process.
//
// Threads: any; made for many. Ownership: shared by the ranks; must outlive them. Blocking: get() waits. Errors: get()
// throws Error at its deadline, and for ever after abort().
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "control/abort_flag.hpp"
#include "triax/communicator.hpp"

namespace triax::control {

class LocalStore final : public Store, public AbortFlag::Listener {
 public:
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;
  /// How many are in get() now, without their key.
  int waiting() const;
  /// Who waits for a key is told that nobody may set it any more.
  void abort(std::string_view why) noexcept override;

 private:
  mutable std::mutex mutex_; // of what follows
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::int64_t, std::less<>> counters_;
  int waiting_ = 0;
  bool aborted_ = false;
  std::string why_;
};

} // namespace triax::control
