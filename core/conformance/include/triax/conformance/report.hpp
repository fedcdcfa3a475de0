// SPDX-License-Identifier: Apache-2.0
// The failures of one check, as texts with the values. A check continues after a failure, as far as its next steps make
// sense; what it throws is a failure too, and its last.
//
// Threads: any. Ownership: owns its texts. Blocking: never. Errors: none.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "triax/error.hpp"
#include "triax/rank_activity.hpp"
#include "triax/text.hpp"

namespace triax::conformance {

/// Largest number of ranks of a check.
inline constexpr int kMaxRanks = 16;

/// The current activity of each rank of a check. It may be memory that another process reads.
struct Activities {
  RankActivity of_rank[kMaxRanks];
  char store_folder[256] = {}; // of ranks that are processes; removed with this object, if the check could not
  RankActivity of_check;       // activity of the check's own thread
};

/// The failures of one check.
class Report {
 public:
  explicit Report(Activities& activities) noexcept : activities_(activities) {}
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  /// Adds a failure. Only the first of each rank are kept; failures() says how many more there were.
  void fail(std::string failure, int rank = -1);
  /// Adds a failure unless `condition` holds.
  template <class... Args>
  void expect(bool condition, std::string_view pattern, const Args&... values) {
    if (!condition) fail(text(pattern, values...));
  }
  /// Those of no rank, then those of each rank, in the order of their time.
  std::vector<std::string> failures() const;
  /// Whether there is a failure.
  bool has_failed() const;

  /// The current activity of a rank; those of all ranks.
  /// @{
  RankActivity& activity(int rank) noexcept { return activities_.of_rank[rank % kMaxRanks]; }
  Activities& activities() noexcept { return activities_; }
  /// @}

 private:
  static constexpr std::ptrdiff_t kMaxFailures = 3; // recorded of one rank

  struct Failure {
    int rank;
    std::string text;
  };

  Activities& activities_;
  mutable std::mutex mutex_; // guards the members below
  std::vector<Failure> failures_;
  std::size_t more_ = 0;
};

/// The text of what `body` throws; empty if it throws nothing.
template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception (not derived from std::exception)";
  }
  return {};
}

/// Empty if `error` has all the parts; else a sentence with the first that is missing.
std::string missing_part(const std::string& error, std::initializer_list<std::string_view> parts);

} // namespace triax::conformance
