// SPDX-License-Identifier: Apache-2.0
// The store for ranks that are threads of one process.
//
// Threads: any. Ownership: shared by the ranks; must outlive them. Blocking: get(). Errors: get() throws Error if the
// key does not exist at its deadline or after abort().
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "control/abort_flag.hpp"
#include "triax/communicator.hpp"

namespace triax::control {

class LocalStore final : public Store, public JobAbort::Listener {
 public:
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;
  /// Number of callers that wait in get().
  int waiting() const;
  /// Ends all calls of get() whose key does not exist.
  void abort(std::string_view why) noexcept override;

 private:
  mutable std::mutex mutex_; // protects the members below
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::int64_t, std::less<>> counters_;
  int waiting_ = 0;
  bool aborted_ = false;
  std::string why_;
};

} // namespace triax::control
