// The store for ranks that are threads of one process.
//
// Threads: any; made for many. Ownership: shared by the ranks; must outlive them. Blocking: get() waits.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "triax/communicator.hpp"

namespace triax::control {

class LocalStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::int64_t, std::less<>> counters_;
};

} // namespace triax::control
