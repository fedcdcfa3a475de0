// SPDX-License-Identifier: Apache-2.0
// fork() without exec(): the function needs the configuration and libraries of this process, and the TOML may come
// through a pipe, which can be read only once.
#include "plugin/probe_process.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "base/caught_error.hpp"
#include "base/printable.hpp"
#include "os/errno_text.hpp"
#include "os/forked_process.hpp"
#include "os/library_of.hpp"
#include "plugin/fault_handler.hpp"
#include "plugin/loader.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plugin {

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kReturned = 'R', kThrew = 'E'; // first byte of the child's answer
constexpr const char* kClosed = "closed file descriptors that it did not open";

/// A CallRecord in memory that a child shares with its parent.
class SharedRecord {
 public:
  explicit SharedRecord(const CallLimits& limits) {
    void* const memory = mmap(nullptr, sizeof(CallRecord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error(text("cannot map memory for a probe process: {}", errno_text()));
    record_ = new (memory) CallRecord;
    record_->limits = limits;
  }
  ~SharedRecord() { munmap(record_, sizeof(CallRecord)); }
  SharedRecord(const SharedRecord&) = delete;
  SharedRecord& operator=(const SharedRecord&) = delete;
  CallRecord& operator*() const { return *record_; }
  CallRecord* operator->() const { return record_; }

 private:
  CallRecord* record_ = nullptr;
};

std::string answer_of(const std::function<std::string()>& body) {
  try {
    return kReturned + body();
  } catch (...) {
    return kThrew + std::string(caught_error().what());
  }
}

/// Names the innermost call if it has no CallScope. The pointers are those of the child. Those into libraries that
/// were loaded before it started are valid here.
void name_inner_call(const RankActivity::Call& call, ProbeFailure& failure) {
  bool has_name = false, has_object = false;
  library_file_at(call.what, has_name);
  const std::filesystem::path file = library_file_at(call.object, has_object);
  if (!has_name || !has_object || !is_loaded(file)) return;
  failure.plugin = file.stem();
  failure.file = file;
  failure.call = text("{}()", call.what);
}

class ProbeChild {
 public:
  ProbeChild(const std::function<std::string()>& body, ProbeOutput output, const CallLimits& limits,
             const SlowCallObserver& slow);

  /// The descriptor of its answer; -1 at the end of the answer.
  int answer() const { return process_.descriptor(); }
  /// Reads what has arrived. Ends the child if its current call exceeds its limit.
  bool ended();
  /// Once it has ended.
  ProbeResult result() const;

 private:
  std::string outcome(const PluginCall& call) const;
  Clock::time_point extended_deadline();
  void report_slow_call(Clock::time_point deadline);

  const CallLimits limits_;
  const SlowCallObserver& slow_;
  const SharedRecord record_;
  os::ForkedProcess process_;
  bool timed_out_ = false;
  Clock::time_point looked_ = Clock::now(), deadline_ = Clock::time_point::max();
  Clock::duration not_counted_{}; // time since the current call began that does not count
  Clock::time_point reported_{};  // deadline of the last slow call that was reported
};

ProbeChild::ProbeChild(const std::function<std::string()>& body, ProbeOutput output, const CallLimits& limits,
                       const SlowCallObserver& slow)
    : limits_(limits),
      slow_(slow),
      record_(limits),
      process_(
          [&](int answer) {
            record_->answer = answer;
            record_calls(&*record_);
            install_fault_handlers(*record_);
            const RankActivity::Binding bound(record_->activity);
            return answer_of(body);
          },
          output == ProbeOutput::captured ? os::ForkedProcess::Output::captured
                                          : os::ForkedProcess::Output::inherited) {}

bool ProbeChild::ended() {
  if (process_.ended()) return true;
  const Clock::time_point deadline = extended_deadline();
  if (slow_) report_slow_call(deadline);
  if (Clock::now() < deadline) return false;
  timed_out_ = true;
  constexpr auto kGrace = std::chrono::seconds(2); // for the handler of SIGABRT, which records the plugin on the stack
  process_.kill(Clock::now() < deadline + kGrace ? SIGABRT : SIGKILL);
  return false;
}

/// Time in which the child or this process is stopped does not count.
Clock::time_point ProbeChild::extended_deadline() {
  constexpr auto kMaxRound = std::chrono::seconds(1);
  const Clock::time_point deadline{Clock::duration(record_->deadline.load(std::memory_order_acquire))};
  const Clock::time_point now = Clock::now();
  const Clock::duration round = now - std::exchange(looked_, now);
  if (std::exchange(deadline_, deadline) != deadline) not_counted_ = {}; // another call
  if (process_.is_stopped() || round > kMaxRound) not_counted_ += round;
  return deadline == Clock::time_point::max() ? deadline : deadline + not_counted_;
}

/// `deadline`: extended.
void ProbeChild::report_slow_call(Clock::time_point deadline) {
  if (deadline_ == Clock::time_point::max() || reported_ == deadline_) return;
  if (deadline - Clock::now() > limits_.slow_call - limits_.notice) return;
  const PluginCall call = record_->current;
  const Clock::time_point now{Clock::duration(record_->deadline.load(std::memory_order_acquire))};
  if (now != deadline_ || call.kind != CallKind::slow_call) return; // another call
  reported_ = deadline_;
  slow_(call);
}

ProbeResult ProbeChild::result() const {
  const std::string& answer = process_.answer();
  if (process_.has_answered() && answer.front() == kReturned) return {answer.substr(1), std::nullopt};
  if (process_.has_answered()) throw Error(answer.substr(1));
  const bool is_closed = process_.has_exited() && record_->closer.what[0] != '\0';
  const PluginCall& call = is_closed ? record_->closer : record_->current;
  ProbeFailure failure{call.plugin, call.file, call.what, is_closed ? kClosed : outcome(call), process_.last_line()};
  failure.is_killed = !timed_out_ && WIFSIGNALED(process_.status()) && !process_.has_crashed();
  if (!is_closed) name_inner_call(record_->activity.call(), failure);
  if (const std::filesystem::path file = record_->fault_file; !file.empty() && is_loaded(file)) {
    failure.plugin = file.stem();
    failure.file = file;
  }
  return {{}, std::move(failure)};
}

std::string ProbeChild::outcome(const PluginCall& call) const {
  if (timed_out_) {
    const bool is_slow = call.kind == CallKind::slow_call;
    const std::chrono::duration<double> limit = is_slow ? limits_.slow_call : limits_.call;
    return text("did not return within {} s", limit.count());
  }
  return process_.how_it_ended();
}

/// Until one of them has written or 20 ms have passed: the end of a child whose children keep the pipe open is not
/// an event.
void wait_for_any(std::span<const std::unique_ptr<ProbeChild>> children) {
  constexpr int kPollMs = 20;
  std::vector<pollfd> waiting;
  for (const std::unique_ptr<ProbeChild>& child : children)
    if (child) waiting.push_back({child->answer(), POLLIN, 0});
  poll(waiting.data(), waiting.size(), kPollMs);
}

bool is_of_path(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '.' || c == '_' || c == '-';
}

/// Whether `path` is in `text`, not as a part of a longer path. UCX and others replace %h and %p in a path.
bool has_path(std::string_view text, std::string_view path) {
  constexpr std::size_t kMinPath = 3; // "/" and "/x" are in texts of any kind
  const std::string_view fixed = path.substr(0, path.find('%'));
  if (fixed.size() < kMinPath) return false;
  for (std::size_t at = text.find(fixed); at != std::string_view::npos; at = text.find(fixed, at + 1)) {
    const std::size_t behind = at + fixed.size();
    const bool ends = fixed.size() < path.size() || behind == text.size() || !is_of_path(text[behind]);
    if (ends && (at == 0 || !is_of_path(text[at - 1]))) return true;
  }
  return false;
}

/// "UCX_LOG_FILE = /no/such/file in the environment", if the text has the path; empty if no variable has one of it.
std::string variable_in(std::string_view text) {
  constexpr std::string_view kOfShells[] = {"_", "HOME", "OLDPWD", "PWD", "SHELL"};
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view variable = *entry;
    const std::size_t equals = std::min(variable.find('='), variable.size() - 1);
    const std::string_view name = variable.substr(0, equals), value = variable.substr(equals + 1);
    if (!value.starts_with('/') || std::ranges::find(kOfShells, name) != std::end(kOfShells)) continue;
    if (has_path(text, value)) return triax::text("{} = {} in the environment", name, shortened(value));
  }
  return {};
}

} // namespace

std::string ProbeFailure::reason() const {
  const std::string said = printed.empty() ? std::string() : text("; it printed: {}", printed);
  return text("{} {}{}", call.empty() ? "its call" : call, outcome, said);
}

std::string ProbeFailure::hint(const std::filesystem::path& library) const {
  const std::string variable = variable_in(printed);
  const std::string other =
      variable.empty() ? "" : text("{} may be the cause: correct or unset it; otherwise ", variable);
  if (is_killed)
    return other +
           "find what ended this process: the kernel, if memory ran out (dmesg), a batch system or a user; then repeat "
           "the command, and if it fails again without a cause outside, report it to the plugin's author";
  const bool is_loading = call.empty() || call.starts_with("its "); // plugins describe calls nothing else
  const std::string debug =
      library.empty() ? std::string()
      : is_loading
          ? text("; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {}",
                 library)
          : "; to debug it: docs/plugins/writing.md has the gdb command for calls in a child process";
  return other + "this is a defect of the plugin: use another plugin or version, or report it to its author" + debug;
}

ProbeResult run_probe(const std::function<std::string()>& body, ProbeOutput output, const CallLimits& limits,
                      const SlowCallObserver& slow) {
  return std::move(run_probes({&body, 1}, output, limits, slow).front());
}

std::vector<ProbeResult> run_probes(std::span<const std::function<std::string()>> bodies, ProbeOutput output,
                                    const CallLimits& limits, const SlowCallObserver& slow) {
  constexpr std::size_t kMaxChildren = 16; // at a time
  std::vector<ProbeResult> out(bodies.size());
  std::vector<std::unique_ptr<ProbeChild>> children(bodies.size());
  for (std::size_t started = 0, ended = 0; ended < bodies.size();) {
    for (; started < bodies.size() && started - ended < kMaxChildren; ++started)
      children[started] = std::make_unique<ProbeChild>(bodies[started], output, limits, slow);
    wait_for_any(children);
    for (std::size_t i = 0; i < started; ++i) {
      if (!children[i] || !children[i]->ended()) continue;
      out[i] = children[i]->result();
      children[i].reset();
      ++ended;
    }
  }
  return out;
}

} // namespace triax::plugin
