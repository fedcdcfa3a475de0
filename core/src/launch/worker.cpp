// SPDX-License-Identifier: Apache-2.0
#include "launch/worker.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "launch/failure_report.hpp"
#include "launch/start_tracker.hpp"
#include "launch/text_messages.hpp"
#include "launch/train_rank.hpp"
#include "launch/worker_messages.hpp"
#include "os/exit_guard.hpp"
#include "os/fault_guard.hpp"
#include "os/library_of.hpp"
#include "os/signal_name.hpp"
#include "report/run_log.hpp"
#include "train/plugins.hpp"
#include "train/wait_for_ranks.hpp"

namespace triax::launch {

namespace {

constexpr const char* kRecorded = "launch/recorded"; // the last step that rank 0 has recorded in any case

FailureFacts facts_of(const control::Failure& failure, const control::Server& server, const Layout& layout,
                      const train::RunFolder* folder) {
  FailureFacts facts{layout, failure, server.ranks()};
  facts.seconds = std::chrono::duration<double>(Clock::now() - server.failed_at().value_or(Clock::now())).count();
  if (folder) facts.file = folder->failure_file();
  facts.server = kJobServer;
  facts.rejections = server.rejections();
  return facts;
}

class OneRank {
 public:
  explicit OneRank(const ProcessRank& of) : of_(of), layout_(train::layout_of(of.run)) {
    if (of.text) text_ = sends() ? sent_job(sender(), *of.text) : *of.text;
  }

  std::optional<train::LoopResult> train() {
    train::RankOptions options;
    options.threads = of_.threads;
    options.local_rank = of_.environment.local_rank;
    options.local_ranks = of_.environment.local_world;
    options.plugins_created = [this] { fault_guard_.install(); };
    Watchdog watchdog({.stall_timeout_s = of_.run.train.stall_timeout_s, .signals = of_.signals, .each_period = [this] {
                         look_for_fault();
                         report_signal();
                       }});
    const os::FaultStack stack;
    const os::ExitGuard exit_guard([this] { end_at_exit(); });
    of_.job.set_before_end([this] { report_failure(true); });
    std::optional<train::LoopResult> result = train_rank({of_.run,
                                                          layout_,
                                                          of_.environment.rank,
                                                          of_.job.store(),
                                                          of_.job.abort(),
                                                          of_.log,
                                                          of_.signals,
                                                          reports(),
                                                          options,
                                                          [this](const train::LoopResult& own) { return finish(own); },
                                                          watchdog,
                                                          [this](const ObservedRank* rank) { observe(rank); },
                                                          [this] { made(); },
                                                          {},
                                                          [this] { return of_.job.is_first_failure(); },
                                                          [this](std::int64_t steps) { await_record(steps); },
                                                          of_.text ? &text_ : nullptr});
    of_.job.set_before_end({});
    leave(!result);
    if (!result) {
      report_lost_server();
      report_failure(false);
    }
    return result;
  }

 private:
  /// Whether the process of the job server prints what this rank generates.
  bool sends() const { return of_.environment.rank == 0 && of_.environment.launcher == Launcher::triax; }

  SendMessage sender() const {
    return [this](std::string_view topic, std::string_view message) { of_.job.send(topic, message); };
  }

  train::Reports reports() {
    train::Reports out = of_.reports;
    if (of_.environment.rank != 0) return out;
    out.step = [this](const report::StepRecord& record) {
      if (of_.reports.step) of_.reports.step(record);
      count_record(record.step);
      if (!of_.job.server()) of_.job.send(kStep, to_line(record));
    };
    out.evaluating = [this](std::int64_t step) { send_step(kEvaluating, step); };
    out.continuing = [this](std::int64_t step) { send_step(kContinuing, step); };
    out.note = [this](const std::string& line) {
      of_.log.info("{}", line);
      if (!of_.job.server()) of_.job.send(kNote, line);
    };
    if (sends()) out.generating = [this] { send_generating(sender()); };
    return out;
  }

  void send_step(const char* topic, std::int64_t step) {
    count_record(step);
    if (!of_.job.server()) of_.job.send(topic, std::to_string(step));
  }

  /// Before the evaluation after a step, if there is one. The counter has the last step, which a rewind decreases.
  void count_record(std::int64_t step) {
    const std::int64_t before = last_step_.exchange(step);
    if (before != step) of_.job.count(kRecorded, step - before);
  }

  void await_record(std::int64_t steps) {
    const auto end = Clock::now() + kRecordGrace;
    try {
      while (of_.job.store().add(kRecorded, 0) < steps && !of_.job.abort().raised() && Clock::now() < end)
        std::this_thread::sleep_for(kRecordPoll);
    } catch (const Error& error) { // the job has been aborted, or the server is lost
      of_.log.debug("{}", error.what());
    }
  }

  void observe(const ObservedRank* rank) {
    of_.job.observe(rank);
    const std::lock_guard lock(mutex_);
    observed_ = rank;
  }

  /// Where the rank is if the thread of this activity ends the process. `code`: what it runs; null: not known.
  std::string position_of(const RankActivity* activity, const void* code) {
    const std::lock_guard lock(mutex_);
    if (!observed_) return "starting";
    if (&observed_->activity() != activity)
      return text("{}, in a thread that is not the rank's{}", observed_->position(), in_file_of(code));
    const std::string call = observed_->activity().to_text();
    return call.empty() ? observed_->position() : text("{}, {}", observed_->position(), call);
  }

  /// Called on the watchdog's thread: the thread that crashed waits in its signal handler.
  void look_for_fault() {
    const std::optional<os::Fault> fault = fault_guard_.take();
    if (!fault) return;
    end_at(position_of(fault->activity, fault->code), os::to_text(*fault));
    fault_guard_.reported();
  }

  /// Called ten times a second, and at the end: the rank may end at once. The launcher says which rank received the
  /// signal that stops the job; another launcher's ranks log it themselves.
  void report_signal() {
    const int signal = of_.signals.received();
    if (signal == 0 || of_.environment.launcher != Launcher::triax || has_reported_signal_.exchange(true)) return;
    of_.log.info("{}: received by this process; all ranks stop at the end of a step", signal_name(signal));
    try {
      of_.job.send(kSignal, triax::to_text(signal));
    } catch (const Error& error) { // the server is lost
      of_.log.debug("{}", error.what());
    }
  }

  /// A plugin called exit(). The status is kept: the process of the job server reports a lost rank.
  void end_at_exit() { end_at(position_of(RankActivity::current(), nullptr), "the process was ended by exit()"); }

  /// Triax's launcher knows how this process ends, and reports it with the position.
  void end_at(const std::string& position, const std::string& why) {
    of_.job.end_at(position);
    const std::string line =
        text("{}: {}\n  a plugin that crashes or calls exit() has a defect: report it to its author", why, position);
    if (of_.environment.launcher == Launcher::triax) {
      of_.log.debug("{}", line);
    } else {
      of_.log.error("{}", line);
    }
  }

  void made() {
    of_.job.start_steps();
    of_.job.count(ready_key(of_.environment.rank), 1);
    of_.job.store().add(kReady, 1);
  }

  std::optional<train::LoopResult> finish(train::LoopResult own) {
    report_signal();
    own.missing.log_lines = report::lost_lines(of_.log);
    of_.job.send(kResult, to_line(own));
    train::wait_for_ranks([this] { of_.job.finish(train::no_deadline()); });
    if (!of_.job.server()) return own;
    JobResult all;
    for (const control::WorkerMessage& message : of_.job.server()->drain_worker_messages()) all.take(message);
    return all.together();
  }

  void leave(bool failed) {
    try {
      of_.job.leave();
    } catch (const Error& error) { // the server is lost
      if (failed) of_.log.debug("{}", error.what());
      if (!failed) of_.log.warn("{}", error.what());
    }
  }

  /// If an external launcher started the ranks, rank 0 reports the failure. Also called before the process is ended
  /// because its rank is stuck. So it must not lock the flag's mutex: a listener that hangs may hold it.
  void report_failure(bool is_ended) {
    const control::Server* server = of_.job.server();
    const std::optional<control::Failure> failure = server ? server->failure() : std::nullopt;
    if (of_.failed && failure) of_.failed(failure->rank, failure->why, kFailedStatus);
    if (!failure) return;
    FailureFacts facts = facts_of(*failure, *server, layout_, of_.folder);
    facts.last_step = last_step_;
    facts.is_ended = is_ended;
    facts.evaluates = of_.run.evaluates;
    facts.generates = of_.text && !of_.text->scores;
    of_.log.error("{}", to_text(facts));
    if (of_.folder) write_failure(facts, of_.log);
  }

  /// Under Triax's launcher, which runs the server, either the launcher reports this for all ranks or nothing reads it.
  void report_lost_server() {
    const control::JobAbort& flag = of_.job.abort();
    const control::Server* server = of_.job.server();
    if (of_.failed && !(server && server->failure())) of_.failed(flag.rank(), flag.reason(), kFailedStatus);
    if (!flag.raised() || flag.rank() >= 0 || (server && server->failure())) return;
    if (of_.environment.launcher == Launcher::triax) {
      of_.log.info("{}", flag.reason());
    } else {
      of_.log.error("{}", flag.reason());
    }
  }

  const ProcessRank& of_;
  const Layout layout_;
  train::TextJob text_; // of a run that generates
  std::atomic<std::int64_t> last_step_{0};
  std::atomic<bool> has_reported_signal_{false};
  std::mutex mutex_; // protects the member below
  const ObservedRank* observed_ = nullptr;
  os::FaultGuard fault_guard_;
};

} // namespace

std::optional<train::LoopResult> run_worker(const ProcessRank& rank) {
  return OneRank(rank).train();
}

std::optional<control::Failure> write_failed_start(const config::RunConfig& run, const control::Server& server,
                                                   const train::RunFolder& folder, Log& log) {
  std::optional<control::Failure> failure = server.failure();
  if (failure) write_failure(facts_of(*failure, server, train::layout_of(run), &folder), log);
  return failure;
}

} // namespace triax::launch
