// SPDX-License-Identifier: Apache-2.0
// Current plugin call of a probe process. The child records which plugin it is about to call; its parent reads the
// record if the child dies or hangs.
//
// Threads: the thread that set the record. On other threads, and outside probe processes, CallScope does nothing.
// Ownership: the record is memory that both processes map.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "triax/rank_activity.hpp"

namespace triax::plugin {

/// Time limits of one call. A schedule or a dry run of a large stage may take minutes. Other calls return at once,
/// but GPU libraries may take seconds to load.
struct CallLimits {
  std::chrono::milliseconds call = std::chrono::seconds(30);
  std::chrono::milliseconds slow_call = std::chrono::seconds(600);
  std::chrono::milliseconds notice = std::chrono::seconds(30); // after which a slow call is reported
};

enum class CallKind {
  call,
  slow_call, // rows(), dry runs
  unlimited  // for calls that have their own deadlines
};

/// The current call. Strings are truncated to the size of the array.
struct PluginCall {
  char plugin[128] = "";
  char file[1024] = "";
  char what[128] = ""; // "its constructor", "supports()"
  CallKind kind = CallKind::call;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct CallRecord {
  CallLimits limits;
  PluginCall current;
  char fault_file[1024] = ""; // the library that crashed, see fault_handler.hpp
  RankActivity activity;      // of the child: knows calls that have no CallScope, and points into libraries
  int answer = -1;            // the child's descriptor for its answer
  PluginCall closer;          // the first call after which `answer` was closed
  /// Deadline of `current` in ticks of the steady clock, written after it. While the child runs, the parent reads only
  /// this field, and `current` between two equal values of it.
  std::atomic<std::int64_t> deadline{std::chrono::steady_clock::time_point::max().time_since_epoch().count()};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "shared by two processes");

/// From now on CallScope objects of this thread write to `record`; null: to none.
void record_calls(CallRecord* record) noexcept;

/// Records a call while this object exists, then restores the enclosing call.
class CallScope {
 public:
  CallScope(std::string_view plugin, std::string_view what, const std::filesystem::path& file = {},
            CallKind kind = CallKind::call) noexcept;
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  PluginCall before_;
};

} // namespace triax::plugin
