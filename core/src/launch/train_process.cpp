#include "launch/train_process.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "launch/failure_report.hpp"
#include "launch/told.hpp"
#include "launch/train_rank.hpp"
#include "train/plugins.hpp"

namespace triax::launch {

namespace {

using std::chrono::steady_clock;

constexpr auto kGrace = std::chrono::seconds(5); // for the other ranks to end, before the failure is told

train::Reports reports_of(const ProcessRank& of) {
  train::Reports out = of.reports;
  if (of.environment.rank != 0 || of.job.server()) return out;
  out.step = [&job = of.job, drawn = of.reports.step](const report::StepRecord& record) {
    if (drawn) drawn(record);
    job.tell(kStep, to_line(record));
  };
  return out;
}

/// For a moment: who serves should be the last to go.
void wait_for_others(const control::Server& server) {
  const auto began = steady_clock::now();
  const auto somebody_is_here = [&server] {
    const std::vector<control::RankStatus> ranks = server.ranks();
    return std::any_of(ranks.begin() + 1, ranks.end(),
                       [](const auto& rank) { return rank.state == control::RankStatus::State::here; });
  };
  while (somebody_is_here() && steady_clock::now() - began < kGrace)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// Where others have started the ranks, rank 0 tells what became of them.
void report_failure(const ProcessRank& of, const Layout& layout) {
  const control::Server* server = of.job.server();
  if (!server) {
    if (of.job.abort().rank() < 0) of.log.error("{}", of.job.abort().reason()); // the server itself is lost
    return;
  }
  const auto began = steady_clock::now();
  wait_for_others(*server);
  const std::optional<control::Failure> failure = server->failure();
  if (!failure) return; // this rank could not even tell
  const double seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
  const FailureFacts facts{layout, *failure, server->ranks(), seconds};
  of.log.error("{}", to_text(facts));
  write_failure(facts, of.run.folder);
}

std::optional<train::LoopResult> finish(const ProcessRank& of, const train::LoopResult& own) {
  of.job.tell(kResult, to_line(own));
  of.job.finish(of.run.train.stall_timeout_s);
  if (!of.job.server()) return own;
  JobResult all;
  for (const control::Told& told : of.job.server()->take_told()) all.take(told);
  wait_for_others(*of.job.server());
  return all.together();
}

} // namespace

std::optional<train::LoopResult> train_process(const ProcessRank& of) {
  const Layout layout = train::layout_of(of.run);
  train::RankOptions options;
  options.threads = of.threads;
  std::optional<train::LoopResult> result =
      train_rank({of.run, layout, of.environment.rank, of.job.store(), of.job.abort(), of.log, of.signals,
                  reports_of(of), options, [&](const train::Rank* rank) { of.job.watch(rank); }});
  try {
    if (result) result = finish(of, *result);
  } catch (const Error& error) { // others were lost after their last step
    of.log.error("{}", error.what());
    result.reset();
  }
  if (!result) report_failure(of, layout);
  of.job.leave();
  return result;
}

} // namespace triax::launch
