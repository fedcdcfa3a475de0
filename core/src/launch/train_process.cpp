#include "launch/train_process.hpp"

#include <chrono>

#include "launch/failure_report.hpp"
#include "launch/told.hpp"
#include "launch/train_rank.hpp"
#include "train/plugins.hpp"

namespace triax::launch {

namespace {

using std::chrono::steady_clock;

class OneRank {
 public:
  explicit OneRank(const ProcessRank& of) : of_(of), layout_(train::layout_of(of.run)) {}

  std::optional<train::LoopResult> train() {
    train::RankOptions options;
    options.threads = of_.threads;
    options.local_rank = of_.environment.local_rank;
    options.local_ranks = of_.environment.local_world;
    std::optional<train::LoopResult> result = train_rank(
        {of_.run, layout_, of_.environment.rank, of_.job.store(), of_.job.abort(), of_.log, of_.signals, reports(),
         options, [this](const train::LoopResult& own) { return finish(own); },
         [this](const train::Rank* rank) { of_.job.watch(rank); }, [this] { return of_.job.fails_first(); }});
    leave(!result);
    if (!result) report_failure();
    return result;
  }

 private:
  train::Reports reports() {
    train::Reports out = of_.reports;
    if (of_.environment.rank != 0) return out;
    out.step = [this](const report::StepRecord& record) {
      last_step_ = record.step;
      if (of_.reports.step) of_.reports.step(record);
      if (!of_.job.server()) of_.job.tell(kStep, to_line(record));
    };
    return out;
  }

  std::optional<train::LoopResult> finish(const train::LoopResult& own) {
    of_.job.tell(kResult, to_line(own));
    of_.job.finish(of_.run.train.stall_timeout_s);
    if (!of_.job.server()) return own;
    JobResult all;
    for (const control::Told& told : of_.job.server()->take_told()) all.take(told);
    return all.together();
  }

  void leave(bool failed) {
    began_ = steady_clock::now();
    try {
      of_.job.leave();
    } catch (const Error& error) { // the server has gone: nobody is left to be told
      if (failed) of_.log.debug("{}", error.what());
      if (!failed) of_.log.warn("{}", error.what());
    }
  }

  /// Where others have started the ranks, rank 0 tells what became of them.
  void report_failure() {
    const control::AbortFlag& flag = of_.job.abort();
    if (flag.raised() && flag.rank() < 0) of_.log.error("{}", flag.reason()); // the server itself is lost
    const control::Server* server = of_.job.server();
    const std::optional<control::Failure> failure = server ? server->failure() : std::nullopt;
    if (!failure) return;
    const double seconds = std::chrono::duration<double>(steady_clock::now() - began_).count();
    const FailureFacts facts{layout_, *failure, server->ranks(), last_step_, seconds};
    of_.log.error("{}", to_text(facts));
    write_failure(facts, of_.run.folder);
  }

  const ProcessRank& of_;
  const Layout layout_;
  std::int64_t last_step_ = 0;
  steady_clock::time_point began_; // when this rank had stopped
};

} // namespace

std::optional<train::LoopResult> train_process(const ProcessRank& rank) {
  return OneRank(rank).train();
}

} // namespace triax::launch
