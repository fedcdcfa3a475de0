// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_processes.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "bench/timeout_flag.hpp"
#include "control/job_token.hpp"
#include "launch/rank_children.hpp"
#include "launch/start_backends.hpp"
#include "os/child_process.hpp"
#include "os/deferred_signals.hpp"
#include "os/open_files.hpp"
#include "os/signal_name.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::bench {

namespace {

constexpr int kPollMs = 20;
constexpr rlim_t kOtherFiles = 256;                  // open files besides a socket and a pipe per rank
constexpr auto kExitGrace = std::chrono::seconds(6); // for ranks to end after a failure; a second more than their own

class Processes {
 public:
  explicit Processes(const RankProcesses& request)
      : request_(request),
        layout_(Layout::ptd(1, request.plan.ranks, 1)),
        token_(control::JobToken::make()),
        server_({{}, 0, request.plan.ranks, token_, request.plan.timeout_s}) {}

  int run() {
    os::raise_open_file_limit(2 * static_cast<rlim_t>(request_.plan.ranks) +
                              kOtherFiles); // else Child reports an error
    backends_.emplace(choices(), layout_, request_.log);
    server_.start();
    for (int rank = 0; rank < request_.plan.ranks; ++rank) {
      std::vector<os::Variable> of_rank = launch::rank_variables(server_.address(), token_, rank, request_.plan.ranks);
      std::ranges::move(backends_->variables(rank), std::back_inserter(of_rank));
      children_.emplace_back(request_.arguments, of_rank);
    }
    while (!launch::have_ended(children_, server_)) {
      poll_once(kPollMs);
      if (const int signal = signals_.caught(); signal != 0 && !stop(signal)) break;
    }
    if (stopped_by_ != 0) return stopped_by_;
    poll_once(0); // output and messages from the end of the last rank
    if (const std::optional<control::Failure> failure = server_.failure())
      throw Error(failure_text(explained(*failure)));
    return 0;
  }

 private:
  /// Ends all ranks, which remove their files then. Returns false at the second signal: the destructor kills them.
  bool stop(int signal) {
    if (stopped_by_ != 0) return false;
    stopped_by_ = signal;
    server_.fail({control::kNoRank, false, text("the measurement was stopped by {}", signal_name(signal))});
    return true;
  }

  /// The plugins of the sides. If both sides have the same one, one object serves the processes.
  std::vector<const config::PluginChoice*> choices() const {
    std::vector<const config::PluginChoice*> out;
    for (const Side& side : request_.plan.sides)
      if (out.empty() || out.front()->library != side.choice.library) out.push_back(&side.choice);
    return out;
  }

  void poll_once(int timeout_ms) {
    launch::pass_output(children_, timeout_ms, request_.output);
    for (const control::WorkerMessage& message : server_.drain_worker_messages())
      if (message.topic == kSizeTopic && request_.report) request_.report(read_size_result(message.text));
    end_late_ones();
  }

  /// The server may only have seen the end of a connection; by now the status of the process is known.
  control::Failure explained(control::Failure failure) {
    if (!failure.lost || failure.rank < 0) return failure;
    os::Child& child = children_[static_cast<std::size_t>(failure.rank)];
    if (child.ended() && !killed_.contains(failure.rank)) failure.why = os::how_it_ended(child.status());
    return failure;
  }

  void end_late_ones() {
    if (!server_.failure()) return;
    const auto now = Clock::now();
    if (!failed_at_) failed_at_ = now;
    if (now - *failed_at_ < kExitGrace) return;
    for (std::size_t rank = 0; rank < children_.size(); ++rank)
      if (!children_[rank].ended()) {
        children_[rank].kill();
        killed_.insert(static_cast<int>(rank));
      }
  }

  const RankProcesses& request_;
  const Layout layout_;
  os::DeferredSignals signals_; // before the server's thread
  const control::JobToken token_;
  control::Server server_;
  std::optional<launch::StartBackends> backends_; // serve the ranks until all have ended
  std::vector<os::Child> children_;
  std::optional<Clock::time_point> failed_at_;
  std::set<int> killed_; // ranks that this process has killed
  int stopped_by_ = 0;   // signal
};

} // namespace

int measure_processes(const RankProcesses& request) {
  return Processes(request).run();
}

std::string failure_text(const control::Failure& failure) {
  std::string why = with_timeout_flag(failure.why);
  if (failure.rank == control::kNoRank) return why;
  return text(failure.lost ? "rank {} was lost: {}" : "rank {} failed: {}", failure.rank, why);
}

} // namespace triax::bench
