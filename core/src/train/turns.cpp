// SPDX-License-Identifier: Apache-2.0
#include "train/turns.hpp"

#include <unistd.h>

#include <chrono>
#include <vector>

#include "report/turn_messages.hpp"
#include "train/plugins.hpp"
#include "triax/layout.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

// After this number of periods without progress, a rank leaves the processor to the other side.
constexpr int kBusyPeriods = 100;
constexpr std::chrono::milliseconds kBusyPeriod{1}, kIdlePeriod{100};

report::PluginFile file_of(const std::string& role, const config::PluginChoice& choice) {
  if (!choice.library) return {role, choice.name, "", ""};
  return {role, choice.name, choice.library->descriptor->version, choice.library->file.string()};
}

/// The plugins of a run; communicators by axis, if it has ranks.
std::vector<report::PluginFile> plugins_of(const config::RunConfig& run) {
  std::vector<report::PluginFile> out;
  const Layout layout = layout_of(run);
  const auto is_unused = [&layout](const std::string& use) {
    const std::string_view comm = "comm.";
    return use.starts_with(comm) && layout.size(use.substr(comm.size())) == 1;
  };
  for (const auto& [use, choice] : run.plugins())
    if (!is_unused(use)) out.push_back(file_of(use, *choice));
  return out;
}

} // namespace

void Turns::report(Rank& rank) {
  report::WaitingRank out;
  out.rank = rank_;
  out.process = ::getpid();
  out.next_step = rank.steps_done() + 1;
  out.on_host = rank.device().kind() == DeviceKind::host;
  for (const MemoryRow& row : rank.memory()) out.memory_bytes += row.is_on_host ? 0 : row.bytes;
  out.tokens_per_sample = rank.sequence();
  out.traffic = rank.traffic();
  if (rank_ == 0 && until_ == 0) out.plugins = plugins_of(run_);
  connection_.write_line(report::to_line(out));
}

bool Turns::await(Rank& rank, const AbortFlag& aborted) {
  if (rank.steps_done() < until_) return true;
  rank.finish(); // work of this side must not run during the other's turn
  report(rank);
  const ActivityScope phase(ActivityScope::Kind::engine, "waiting for its turn");
  int idle = 0; // periods without progress
  while (!connection_.is_closed()) {
    idle = rank.device().progress() ? 0 : idle + 1;
    const std::chrono::milliseconds period = idle < kBusyPeriods ? kBusyPeriod : kIdlePeriod;
    if (const std::optional<std::string> line = connection_.read_line(Clock::now() + period)) {
      const report::Turn turn = report::read_turn(*line);
      until_ = turn.until;
      if (turn.timeline > 0) rank.record_timeline(turn.timeline);
      return rank.steps_done() < until_;
    }
    if (aborted.raised()) throw Error(aborted.reason());
    if (RankActivity* const activity = RankActivity::current()) activity->make_progress();
  }
  // An error, because it ends all ranks: some may have got this turn before, and wait for this one in their step.
  throw Error("the process that compares this run has ended", "", "repeat triax compare");
}

} // namespace triax::train
