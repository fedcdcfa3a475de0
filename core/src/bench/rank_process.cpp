// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_process.hpp"

#include "bench/comm_processes.hpp"
#include "bench/comm_rank.hpp"
#include "launch/job.hpp"
#include "os/stop_signals.hpp"
#include "triax/error.hpp"

namespace triax::bench {

namespace {

class JobRank {
 public:
  explicit JobRank(const ProcessRequest& request)
      : request_(request),
        ours_(request.environment.launcher == launch::Launcher::triax),
        signals_(ours_ ? os::StopSignals::From::launcher : os::StopSignals::From::user),
        job_({request.environment, keys_of(request), request.timeout_s, {}, "--timeout-s"}, signals_) {
    signals_.end_at_once(!ours_);
  }

  ProcessEnd run() {
    try {
      job_.enter();
      if (const std::optional<std::string> refusal = job_.wait_for_start({request_.refused, request_.keys})) {
        if (!refusal->empty()) request_.print(*refusal);
        leave();
        return ProcessEnd::refused;
      }
    } catch (const Error& error) {
      return fail_start(error);
    }
    measure();
    leave();
    return end();
  }

 private:
  static config::LaunchKeys keys_of(const ProcessRequest& request) {
    config::LaunchKeys out;
    out.start_timeout_s = request.timeout_s;
    return out;
  }

  void measure() {
    const launch::Environment& environment = request_.environment;
    RankJob rank{*request_.plan,
                 {environment.rank, environment.local_rank, environment.local_world, request_.kernels, request_.log},
                 job_.store(),
                 job_.abort(),
                 request_.report,
                 [this](std::string_view why) { print_first(why); },
                 [this] { job_.finish(deadline_in(request_.timeout_s)); }};
    if (ours_) rank.report = [this](const SizeResult& result) { job_.send(kSizeTopic, to_line(result)); };
    measure_rank(rank);
  }

  void leave() {
    try {
      job_.leave();
    } catch (const Error&) { // the server is lost: the flag has the reason
    }
  }

  /// Triax's launcher prints the failure itself.
  void print_first(std::string_view why) {
    if (!ours_ && job_.is_first_failure()) request_.print(text("rank {}: {}", request_.environment.rank, why));
  }

  /// The process of the server prints what no rank could.
  ProcessEnd end() {
    if (!job_.abort().raised()) return ProcessEnd::done;
    const control::Server* const server = job_.server();
    const std::optional<control::Failure> failure = server ? server->failure() : std::nullopt;
    if (failure && (failure->lost || failure->rank == control::kNoRank)) request_.print(failure_text(*failure));
    return ProcessEnd::failed;
  }

  ProcessEnd fail_start(const Error& error) {
    const bool first = job_.abort().raise(request_.environment.rank, error.what()) || job_.abort().rank() < 0;
    if (first && !ours_) request_.print(text("rank {}: {}", request_.environment.rank, error.what()));
    leave();
    return ProcessEnd::failed;
  }

  const ProcessRequest& request_;
  const bool ours_;
  os::StopSignals signals_;
  launch::Job job_;
};

} // namespace

ProcessEnd measure_process(const ProcessRequest& request) {
  return JobRank(request).run();
}

} // namespace triax::bench
