// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of this machine. A separate launcher process forks the ranks. If the backend has ProcessStart, the
// launcher then runs its server. The launcher is a separate process because a library may leave the threads of its
// server running.
#include "rank_processes.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/caught_error.hpp"
#include "check_process.hpp"
#include "os/forked_process.hpp"
#include "rank_threads.hpp"
#include "store_folder.hpp"
#include "triax/conformance/folder_store.hpp"
#include "triax/process_start.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::conformance {

namespace {

constexpr const char* kStartKeyPrefix = "conformance: start";
constexpr auto kEndTimeout = std::chrono::seconds(5); // for the other ranks to end after the first failure
constexpr int kPollMs = 5;

std::string killed_key(int rank) {
  return text("conformance: rank {} kills itself", rank);
}

class Launcher {
 public:
  Launcher(const RankSetup& setup, const Layout& layout, Report& report, const std::function<void(Rank&)>& body)
      : setup_(setup),
        layout_(layout),
        report_(report),
        body_(body),
        folder_(report.activities()),
        store_(folder_.path()) {}

  void run() {
    for (int index = 0; index < layout_.world_size(); ++index)
      ranks_.push_back(std::make_unique<os::ForkedProcess>([this, index](int) { return run_rank(index); },
                                                           os::ForkedProcess::Output::inherited));
    start();
    handled_.assign(ranks_.size(), false);
    WaitDeadline until(deadline_in(4 * setup_.timeout_s));
    for (std::size_t ended = 0; ended < ranks_.size();) {
      wait_for_any();
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        if (!handled_[rank] && ranks_[rank]->ended()) {
          handled_[rank] = true;
          ++ended;
          take_result(static_cast<int>(rank));
        }
      if (until.passed()) return give_up();
      if (failed_at_ && Clock::now() > *failed_at_ + kEndTimeout) return; // the destructors of ranks_ kill the rest
    }
  }

 private:
  /// In the process of a rank.
  std::string run_rank(int index) {
    Report rank_report(report_.activities());
    const RankActivity::Binding bound(rank_report.activity(index));
    std::string thrown;
    {
      std::optional<Rank> rank; // destroyed after its failure is published
      try {
        set_variables(store_.get(text("{} {}", kStartKeyPrefix, index), deadline_in(setup_.timeout_s)));
        if (setup_.on_rank_start) setup_.on_rank_start(index);
        rank.emplace(index, layout_, store_, setup_, rank_report);
        body_(*rank);
      } catch (...) {
        thrown = caught_error().what();
      }
      // Destroying a rank may wait for the other ranks (MPI_Finalize), so its failure is published first.
      if (!thrown.empty()) store_.set(text("conformance: rank {} failed", index), thrown);
    }
    std::vector<std::string> answer = {thrown};
    for (std::string& failure : rank_report.failures()) answer.push_back(std::move(failure));
    return to_answer(answer);
  }

  static void set_variables(const std::string& lines) {
    for (std::size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = lines.substr(begin, end - begin);
      const std::size_t equals = line.find('=');
      ::setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
    }
  }

  /// Sends each rank the variables that its process needs. Call after all ranks are forked, so that no rank inherits
  /// the server.
  void start() {
    if (setup_.backend) {
      server_backend_ = setup_.backend({setup_.options, *setup_.log, layout_, 0, 1});
      if (auto* const server = find_extension<ProcessStart>(*server_backend_)) {
        server->serve(layout_.world_size());
        for (int rank = 0; rank < layout_.world_size(); ++rank) {
          std::string lines;
          for (const auto& [name, value] : server->variables(rank)) lines += text("{}={}\n", name, value);
          store_.set(text("{} {}", kStartKeyPrefix, rank), lines);
        }
        return;
      }
    }
    for (int rank = 0; rank < layout_.world_size(); ++rank) store_.set(text("{} {}", kStartKeyPrefix, rank), "");
  }

  void wait_for_any() {
    std::vector<pollfd> waiting;
    for (const auto& rank : ranks_)
      if (rank->descriptor() >= 0) waiting.push_back({rank->descriptor(), POLLIN, 0});
    poll(waiting.data(), waiting.size(), kPollMs);
  }

  void take_result(int index) {
    const os::ForkedProcess& rank = *ranks_[static_cast<std::size_t>(index)];
    if (!rank.has_answered()) {
      if (store_.has(killed_key(index)) && WIFSIGNALED(rank.status()) && WTERMSIG(rank.status()) == SIGKILL) return;
      const std::string call = calls_text(report_.activities(), index);
      return fail(text("rank {} {}{}", index, rank.how_it_ended(), call.empty() ? "" : text(" ({})", call)), index);
    }
    const std::vector<std::string> answer = from_answer(rank.answer());
    for (std::size_t i = 1; i < answer.size(); ++i) report_.fail(answer[i], index);
    if (!answer.empty() && !answer.front().empty()) fail(text("rank {}: {}", index, answer.front()), index);
  }

  void fail(const std::string& reason, int rank) {
    if (!failed_at_) report_.fail(reason, rank); // later failures are consequences
    if (!failed_at_) failed_at_ = Clock::now();
  }

  void give_up() {
    std::string late;
    int count = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (handled_[rank]) continue;
      late += text("{}{}", late.empty() ? "" : ", ", rank);
      ++count;
    }
    report_.fail(text("{} {} {} not ended within {} s; {}", count == 1 ? "rank" : "ranks", late,
                      count == 1 ? "has" : "have", 4 * setup_.timeout_s, calls_text(report_.activities())));
  }

  const RankSetup& setup_;
  const Layout& layout_;
  Report& report_;
  const std::function<void(Rank&)>& body_;
  const StoreFolder folder_;
  FolderStore store_;
  std::vector<std::unique_ptr<os::ForkedProcess>> ranks_;
  Object<CommBackend> server_backend_; // must outlive the ranks
  std::vector<bool> handled_;
  std::optional<Clock::time_point> failed_at_;
};

} // namespace

void run_rank_processes(const RankSetup& setup, const Layout& layout, Report& report,
                        const std::function<void(Rank&)>& body) {
  os::ForkedProcess launcher(
      [&](int) {
        Report launcher_report(report.activities());
        try {
          Launcher(setup, layout, launcher_report, body).run();
        } catch (...) {
          launcher_report.fail(text("the launcher of the ranks failed: {}", caught_error().what()));
        }
        return to_answer(launcher_report.failures());
      },
      os::ForkedProcess::Output::inherited);
  while (!launcher.ended()) {
    pollfd waiting{launcher.descriptor(), POLLIN, 0};
    poll(&waiting, 1, kPollMs);
  }
  if (!launcher.has_answered()) return report.fail(text("the launcher of the ranks {}", launcher.how_it_ended()));
  for (std::string& failure : from_answer(launcher.answer())) report.fail(std::move(failure));
  if (setup.on_all_ended) setup.on_all_ended(report);
}

void Rank::kill_process() {
  store_.set(killed_key(index_), "");
  ::kill(::getpid(), SIGKILL);
}

void run_ranks(const RankSetup& setup, const Layout& layout, Report& report, const std::function<void(Rank&)>& body) {
  const auto run = setup.processes ? run_rank_processes : run_rank_threads;
  run(setup, layout, report, body);
}

void run_ranks(const RankSetup& setup, int count, Report& report, const std::function<void(Rank&)>& body) {
  run_ranks(setup, Layout::ptd(1, count, 1), report, body);
}

} // namespace triax::conformance
