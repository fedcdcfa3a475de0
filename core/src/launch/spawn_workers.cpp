// SPDX-License-Identifier: Apache-2.0
#include "launch/spawn_workers.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>

#include "launch/failure_report.hpp"
#include "launch/rank_children.hpp"
#include "launch/start_backends.hpp"
#include "launch/start_tracker.hpp"
#include "launch/text_messages.hpp"
#include "launch/worker_messages.hpp"
#include "os/child_process.hpp"
#include "os/fault_guard.hpp"
#include "os/named_memory.hpp"
#include "os/open_files.hpp"
#include "os/signal_name.hpp"
#include "train/plugins.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::launch {

namespace {

constexpr std::chrono::steady_clock::duration kWorkerExitGrace =
    std::chrono::seconds(6); // for ranks to end; a second longer than their own limit
constexpr std::chrono::steady_clock::duration kGraceOfTheLost = std::chrono::milliseconds(500);
constexpr std::chrono::steady_clock::duration kGraceOfTheKernel = std::chrono::seconds(2);
constexpr int kPollMs = 50;
constexpr std::chrono::steady_clock::duration kSignalGrace =
    std::chrono::milliseconds(500); // for this process to receive a signal that a terminal sends to all processes
// UCX creates these files in /dev/shm while ranks join, and removes their names at once. Other names are not known;
// comm-mpi removes its own.
constexpr std::string_view kUcxFiles = "ucx_shm_posix_";
constexpr rlim_t kOtherFiles = 256; // open files besides a socket and a pipe per rank

class LocalProcesses {
 public:
  explicit LocalProcesses(const ProcessTraining& training)
      : training_(training),
        layout_(train::layout_of(training.run)),
        token_(control::JobToken::make()),
        server_({training.run.launch.interface, training.run.launch.port, layout_.world_size(), token_,
                 training.run.train.stall_timeout_s}),
        tracker_(server_, layout_.world_size(),
                 {training.starting, [this](const std::string& line) { training_.log.warn("{}", line); }}) {
    if (training.text) text_.emplace(*training.text);
  }

  std::optional<train::LoopResult> train() {
    os::raise_open_file_limit(2 * static_cast<rlim_t>(layout_.world_size()) +
                              kOtherFiles); // else Child reports an error
    start_deadline_.emplace(deadline_in(training_.run.launch.start_timeout_s));
    const StartBackends backends(training_.run, layout_, training_.log);
    server_.start();
    for (int rank = 0; rank < layout_.world_size(); ++rank) {
      std::vector<os::Variable> of_rank = rank_variables(server_.address(), token_, rank, layout_.world_size());
      std::ranges::move(backends.variables(rank), std::back_inserter(of_rank));
      children_.emplace_back(training_.arguments, of_rank);
      tracker_.look();
    }
    while (!have_ended(children_, server_) && !must_stop_waiting()) poll_once(kPollMs);
    poll_once(0); // output and messages from the end of the last rank
    log_signals(true);
    tracker_.finish();
    left_memory_.remove();
    if (stopped_at_start_) return stopped();
    if (failed()) {
      report();
      return std::nullopt;
    }
    return result_.together();
  }

 private:
  /// Waits for output for up to timeout_ms, and passes on all available output and messages.
  void poll_once(int timeout_ms) {
    pass_output(children_, timeout_ms, training_.output);
    for (const control::WorkerMessage& worker_message : server_.drain_worker_messages()) {
      take(worker_message);
    }
    tracker_.look();
    check_start();
    pass_signal();
    log_signals(false);
    end_late_ones();
  }

  void take(const control::WorkerMessage& worker_message) {
    try {
      if (worker_message.topic == kNote) {
        training_.log.info("{}", worker_message.text);
      } else if (worker_message.topic == kSignal) {
        signals_of_ranks_.push_back({worker_message.rank, signal_in(worker_message)});
      } else if (text_ && text_->take(worker_message)) {
        return;
      } else if (const auto record = result_.take(worker_message); record && training_.step) {
        if (worker_message.discarded > 0)
          training_.log.warn("{} steps are not shown, because the output was blocked; {} has every step",
                             worker_message.discarded, training_.run.log.metrics.string());
        training_.step(*record);
      }
    } catch (const Error& error) {
      if (!failed()) training_.log.error("{}", error.what()); // the rank does not know its error
      server_.fail({worker_message.rank, false, error.what()});
    }
  }

  /// The ranks have the same deadline, but only the server knows all missing ranks.
  void check_start() {
    if (tracker_.over() || failed() || !start_deadline_->passed()) return;
    const std::vector<int> missing = server_.missing();
    if (!missing.empty()) server_.fail(not_joined(missing, training_.run.launch.start_timeout_s));
  }

  void pass_signal() {
    const int signal = training_.signals.caught();
    if (signal == 0 || stopped_at_start_ || failed()) return; // ranks of a failed job end anyway
    const auto now = std::chrono::steady_clock::now();
    if (!signal_passed_at_) {
      signal_passed_at_ = now;
      server_.stop(signal);
    }
    if (result_.has_step() || (text_ && text_->has_begun()) || now - *signal_passed_at_ < kFirstStepGrace) return;
    stopped_at_start_ = true; // there is no step to stop after, and the first may take long
    std::vector<pid_t> pids;
    for (os::Child& child : children_)
      if (!child.ended()) pids.push_back(child.pid());
    left_memory_.collect(pids, kUcxFiles);
    for (os::Child& child : children_) child.kill();
  }

  /// Says which rank received a signal, unless this process received it too.
  void log_signals(bool at_end) {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(signals_of_ranks_, [&](const RankSignal& of) {
      if (!at_end && now - of.at < kSignalGrace) return false;
      if (training_.signals.caught() == 0)
        training_.log.info("rank {} received {}, but this launcher did not: all ranks stop at the end of a step",
                           of.rank, signal_name(of.signal));
      return true;
    });
  }

  train::LoopResult stopped() const {
    train::LoopResult out;
    out.signal = training_.signals.caught();
    return out;
  }

  /// A killed process that has not ended hangs in the kernel.
  bool must_stop_waiting() const {
    return failed_at_ && std::chrono::steady_clock::now() - *failed_at_ > kWorkerExitGrace + kGraceOfTheKernel;
  }

  bool failed() const { return server_.failure().has_value(); }

  /// A lost rank whose process still runs is stopped or hangs, so it is killed soon.
  void end_late_ones() {
    const std::optional<control::Failure> failure = server_.failure();
    if (!failure) return;
    const auto now = std::chrono::steady_clock::now();
    if (!failed_at_) failed_at_ = now;
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      const bool is_lost = failure->lost && rank == static_cast<std::size_t>(failure->rank);
      if (now - *failed_at_ <= (is_lost ? kGraceOfTheLost : kWorkerExitGrace) || children_[rank].ended()) continue;
      children_[rank].kill();
      killed_the_lost_ |= is_lost;
    }
  }

  void report() {
    FailureFacts facts{layout_, *server_.failure(), server_.ranks(), result_.last_step()};
    facts.rejections = server_.rejections();
    facts.evaluates = training_.run.evaluates;
    facts.generates = training_.text && !training_.text->scores;
    if (failed_at_)
      facts.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - *failed_at_).count();
    if (facts.failure.lost && facts.failure.rank != control::kNoRank && !killed_the_lost_) explain_loss(facts);
    if (training_.folder) facts.file = training_.folder->failure_file();
    training_.log.error("{}", to_text(facts));
    if (training_.folder) write_failure(facts, training_.log);
    if (training_.failed) training_.failed(facts.failure.rank, facts.failure.why, kFailedStatus);
  }

  /// The server may only have seen the end of a connection. By now all children have ended, so their statuses are
  /// known.
  void explain_loss(FailureFacts& facts) {
    os::Child& child = children_[static_cast<std::size_t>(facts.failure.rank)];
    if (!child.ended()) return;
    const int status = child.status();
    const std::string how = os::how_it_ended(status);
    if (WIFEXITED(status) && facts.failure.why != how && !facts.failure.why.starts_with(control::kConnectionEnded))
      return; // the server knows more
    facts.failure.why = how;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kRefusedStatus && !result_.has_step()) {
      facts.hint = "this rank refused the run, and its message has the reason: did a file of the run change meanwhile?";
    } else if (WIFEXITED(status)) {
      facts.hint = "a plugin that ends its process has a defect: report it, with the last position, to its author";
    } else if (std::ranges::find(os::kFaults, WTERMSIG(status)) != std::end(os::kFaults)) {
      facts.hint = "a plugin that crashes has a defect: report it, with the last position, to its author";
    } else {
      facts.hint = "find what sends this signal: the kernel, if memory runs out (dmesg), a batch system or a user";
    }
  }

  struct RankSignal {
    int rank = 0, signal = 0;
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
  };

  const ProcessTraining& training_;
  const Layout layout_;
  const control::JobToken token_;
  control::Server server_;
  StartTracker tracker_;
  std::optional<WaitDeadline> start_deadline_; // for all ranks to join
  std::vector<os::Child> children_;
  os::NamedMemory left_memory_; // left by ranks that were killed at the start
  JobResult result_;
  std::optional<TextReceiver> text_;         // set if the run generates
  std::vector<RankSignal> signals_of_ranks_; // that are not logged yet
  bool stopped_at_start_ = false, killed_the_lost_ = false;
  std::optional<std::chrono::steady_clock::time_point> signal_passed_at_;
  std::optional<std::chrono::steady_clock::time_point> failed_at_;
};

} // namespace

std::optional<train::LoopResult> spawn_workers(const ProcessTraining& training) {
  return LocalProcesses(training).train();
}

} // namespace triax::launch
