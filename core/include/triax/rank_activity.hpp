// SPDX-License-Identifier: Apache-2.0
// The activity of a rank's main thread: the plugin call or the wait that it is in, and whether it makes progress. A
// watchdog on another thread reads it, and can name the plugin whose call does not return.
//
// Threads: written by the thread that it is bound to, read by any. Ownership: borrows names and types, which must
// outlive the scope that gives them (libraries of plugins are never unloaded). Blocking: never, and nothing is
// allocated. Errors: none.
//
// The activity is bound to its thread, and not part of Device, because calls of kernel sets and of communicators are
// marked where they have no device. On a thread without a bound activity a scope does nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <typeinfo>

#include "triax/device.hpp"
#include "triax/error.hpp"
#include "triax/export.hpp"

namespace triax {

/// The activity of a rank, for reports of ranks that are stuck.
class TRIAX_API RankActivity {
 public:
  enum class Kind : std::uint8_t {
    engine,      // computing or reading in the engine itself
    plugin_call, // inside a function of a plugin
    wait,        // in a call that waits without polling, and keeps its own deadline
  };

  /// The call or wait of the rank. At most one of `plugin` and `object` is set.
  struct Call {
    Kind kind = Kind::engine;
    const char* what = nullptr;
    const char* plugin = nullptr;
    const std::type_info* object = nullptr; // in place of the plugin's name
  };

  /// Binds an activity to the calling thread until destroyed.
  class TRIAX_API Binding {
   public:
    explicit Binding(RankActivity& activity) noexcept;
    ~Binding();
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;

   private:
    RankActivity* before_;
  };

  /// The calling thread's activity, or null.
  static RankActivity* current() noexcept;

  /// Any thread. Values from two calls are consistent only if the rank makes no progress between them; the same holds
  /// for the parts of to_text().
  Kind kind() const noexcept { return static_cast<Kind>(state_.load(std::memory_order_relaxed) & kKindBits); }
  /// Differs from an earlier value if the rank has made progress since.
  std::uint64_t progress() const noexcept { return state_.load(std::memory_order_acquire); }
  /// A wait of the rank ended at its deadline.
  bool has_timed_out() const noexcept { return has_timed_out_.load(std::memory_order_relaxed); }
  /// Odd while the rank polls for other ranks; differs from an earlier value if it has done anything else since.
  std::uint64_t polled_wait() const noexcept { return polled_wait_.load(std::memory_order_acquire); }
  /// "in all_reduce() of plugin \"comm-ucx\"", "drawing the weights"; empty: not known.
  std::string to_text() const;
  /// The parts of to_text(), without allocating.
  Call call() const noexcept;

  // For the bound thread, while an exception is handled.
  /// Adds the innermost plugin call that the exception has left to the location of `error`, unless the location names
  /// the plugin: "step 2, 0OPT_STEP, in step() of plugin \"optim-x\"".
  Error with_failed_call(const Error& error) const;
  /// The plugin of that call; empty: the exception comes from no plugin.
  std::string failed_plugin() const;
  /// The exception comes from a wait for other ranks, and not from the plugin that waits.
  void fail_in_wait() noexcept;

  /// The rank polls, so it is not stuck.
  void make_progress() noexcept { set_kind(kind()); }
  /// Bracket a wait that polls; they do not nest.
  /// @{
  void begin_polled_wait() noexcept { count_polled_wait(1); }
  void end_polled_wait() noexcept { count_polled_wait(1); }
  /// @}
  /// A transfer or task that the rank waits for has progressed.
  void advance_polled_wait() noexcept { count_polled_wait(2); }
  /// A wait has ended at its deadline.
  void time_out() noexcept { has_timed_out_.store(true, std::memory_order_relaxed); }

 private:
  friend class ActivityScope;

  /// Increments the change counter.
  void set_kind(Kind kind) noexcept {
    const std::uint64_t count = state_.load(std::memory_order_relaxed) & ~kKindBits;
    state_.store((count + kKindBits + 1) | static_cast<std::uint64_t>(kind), std::memory_order_release);
  }
  void count_polled_wait(std::uint64_t by) noexcept { // written by one thread
    polled_wait_.store(polled_wait_.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  void set_call(const Call& call) noexcept {
    what_.store(call.what, std::memory_order_relaxed);
    plugin_.store(call.plugin, std::memory_order_relaxed);
    object_.store(call.object, std::memory_order_relaxed);
    set_kind(call.kind);
  }
  /// The innermost scope, which is of a plugin, is left by an exception.
  void fail() noexcept;
  /// Unless an exception is in progress.
  void forget_failed_call() noexcept;

  static constexpr std::uint64_t kKindBits = 3;
  std::atomic<std::uint64_t> state_{0}; // a count of changes above the bits of the kind
  std::atomic<const char*> what_{nullptr}, plugin_{nullptr};
  std::atomic<const std::type_info*> object_{nullptr};
  std::atomic<bool> has_timed_out_{false};
  std::atomic<std::uint64_t> polled_wait_{0}; // a count of begins and ends
  Call failed_; // used by the bound thread: the call that an exception has left; `what` is null if there is none
};

inline RankActivity::Call RankActivity::call() const noexcept {
  return {kind(), what_.load(std::memory_order_relaxed), plugin_.load(std::memory_order_relaxed),
          object_.load(std::memory_order_relaxed)};
}

/// Brackets a plugin call, a wait or a phase of the engine. Scopes nest: the innermost is what the rank is doing. Every
/// operation of a kernel set has one, so it is inline. A plugin call that may throw goes through call_plugin().
class ActivityScope {
 public:
  using Kind = RankActivity::Kind;

  /// `what` must have static storage duration, such as a literal.
  ActivityScope(Kind kind, const char* what, const std::type_info& object) noexcept
      : ActivityScope({kind, what, nullptr, &object}) {}
  ActivityScope(Kind kind, const char* what, const char* plugin = nullptr) noexcept
      : ActivityScope({kind, what, plugin, nullptr}) {}
  ~ActivityScope() {
    if (!activity_) return;
    if (activity_->failed_.what) [[unlikely]]
      activity_->forget_failed_call();
    activity_->set_call(before_);
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

  /// An exception leaves this scope, of a plugin.
  void fail() const noexcept {
    if (activity_) activity_->fail();
  }

 private:
  explicit ActivityScope(const RankActivity::Call& call) noexcept : activity_(RankActivity::current()) {
    if (!activity_) return;
    if (activity_->failed_.what) [[unlikely]]
      activity_->forget_failed_call();
    before_ = activity_->call();
    activity_->set_call(call);
  }

  RankActivity* const activity_;
  RankActivity::Call before_; // of the scope around this one
};

/// Calls a function `what` of a plugin, in a scope. If it throws, RankActivity::with_failed_call() names it. `plugin`:
/// its name, or the type of the object whose function it is.
template <class Plugin, class Body>
decltype(auto) call_plugin(const char* what, const Plugin& plugin, const Body& body) {
  const ActivityScope scope(RankActivity::Kind::plugin_call, what, plugin);
  try {
    return body();
  } catch (...) {
    scope.fail();
    throw;
  }
}

/// A call that waits until its deadline without polling the device. Left by an exception after it, the rank has timed
/// out.
class TRIAX_API WaitScope {
 public:
  WaitScope(const char* what, Deadline deadline, const char* plugin = nullptr) noexcept;
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  const ActivityScope scope_;
  const Deadline deadline_;
  const int exceptions_; // in progress when it began
};

/// A wait for other ranks that polls. It has no deadline: a watchdog ends it once all ranks of the job wait.
class PolledWait {
 public:
  PolledWait() noexcept : activity_(RankActivity::current()) {
    if (activity_) activity_->begin_polled_wait();
  }
  ~PolledWait() {
    if (activity_) activity_->end_polled_wait();
  }
  PolledWait(const PolledWait&) = delete;
  PolledWait& operator=(const PolledWait&) = delete;

  /// To be called at each poll: the rank is not stuck.
  void poll() const noexcept {
    if (activity_) activity_->make_progress();
  }
  /// An item of a stream has finished, so the wait counts as progress.
  void advance() const noexcept {
    if (activity_) activity_->advance_polled_wait();
  }

 private:
  RankActivity* const activity_;
};

} // namespace triax
