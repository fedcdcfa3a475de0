// SPDX-License-Identifier: Apache-2.0
// Current plugin call of a probe process: the child records which plugin it is about to call, and its parent reads that
// record when the child dies or does not return.
//
// Threads: the thread that set the record; on any other thread, and in every process but a probe, CallScope does
// nothing. Ownership: the record is memory that both processes map. Blocking: never. Errors: none.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace triax::plugin {

/// How long one call may take. A search for a schedule or the plan of a large stage may compute for minutes; everything
/// else returns at once, but libraries of GPUs may take seconds to load.
struct CallLimits {
  std::chrono::milliseconds call = std::chrono::seconds(30);
  std::chrono::milliseconds plan = std::chrono::seconds(600);
};

enum class CallKind {
  call,
  plan,
  unlimited // around calls that have deadlines of their own
};

/// What the child is doing. Texts are cut off at their size.
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
  /// Of `current`, in ticks of the steady clock: the one field that the parent reads while the child runs.
  std::atomic<std::int64_t> deadline{std::chrono::steady_clock::time_point::max().time_since_epoch().count()};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "shared by two processes");

/// From now on CallScope objects of this thread write to `record`; null: to nothing.
void record_calls(CallRecord* record) noexcept;

/// Records a call for as long as it lives; then the call around it is the current one again.
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
