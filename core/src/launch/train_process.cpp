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
    std::optional<train::LoopResult> result = train_rank(
        {of_.run, layout_, of_.environment.rank, of_.job.store(), of_.job.abort(), of_.log, of_.signals, reports(),
         options, [this](const train::Rank* rank) { of_.job.watch(rank); }, [this] { return of_.job.fails_first(); }});
    try {
      if (result) result = finish(*result);
    } catch (const Error& error) { // others were lost after their last step
      of_.log.error("{}", error.what());
      result.reset();
    }
    if (!result) report_failure();
    of_.job.leave();
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

  /// Where others have started the ranks, rank 0 tells what became of them.
  void report_failure() {
    const control::Server* server = of_.job.server();
    if (!server) {
      if (of_.job.abort().rank() < 0) of_.log.error("{}", of_.job.abort().reason()); // the server itself is lost
      return;
    }
    const auto began = steady_clock::now();
    of_.job.wait_for_others();
    const std::optional<control::Failure> failure = server->failure();
    if (!failure) return; // this rank could not even tell
    const double seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
    const FailureFacts facts{layout_, *failure, server->ranks(), last_step_, seconds};
    of_.log.error("{}", to_text(facts));
    write_failure(facts, of_.run.folder);
  }

  const ProcessRank& of_;
  const Layout layout_;
  std::int64_t last_step_ = 0;
};

} // namespace

std::optional<train::LoopResult> train_process(const ProcessRank& rank) {
  return OneRank(rank).train();
}

} // namespace triax::launch
