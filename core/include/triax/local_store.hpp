// SPDX-License-Identifier: Apache-2.0
// A Store for ranks that are threads of one process.
//
// Threads: any. Ownership: shared by the ranks; must outlive them. Blocking: get(). Errors: get() throws Error if the
// key does not exist at its deadline or after abort().
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "triax/communicator.hpp"

namespace triax {

/// A Store within one process.
class TRIAX_API LocalStore : public Store {
 public:
  LocalStore();
  ~LocalStore() override;
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;
  /// Number of callers that wait in get().
  int waiting() const;
  /// Ends all calls of get() whose key does not exist; only the first reason counts.
  void end_waits(std::string_view why) noexcept;

 private:
  mutable std::mutex mutex_; // protects the members below
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::int64_t, std::less<>> counters_;
  int waiting_ = 0;
  bool aborted_ = false;
  std::string why_;
};

} // namespace triax
