// SPDX-License-Identifier: Apache-2.0
#include "launch/failure_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>

#include "control/rank_ranges.hpp"
#include "os/replace_file.hpp"
#include "report/json.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::launch {

namespace {

using control::RankStatus;

constexpr int kShown = 16;       // ranks listed with their position
constexpr double kBeatsLate = 3; // seconds; a heartbeat this late is mentioned

std::string_view state_name(RankStatus::State state) {
  constexpr std::array<std::string_view, 4> kNames = {"missing", "joined", "left", "lost"};
  return kNames.at(static_cast<std::size_t>(state));
}

bool is_rank(const FailureFacts& facts) {
  return facts.failure.rank != control::kNoRank;
}

std::string who(const FailureFacts& facts, int rank) {
  std::string out = text("rank {} ({}", rank, facts.layout.describe(rank));
  const RankStatus& status = facts.ranks.at(static_cast<std::size_t>(rank));
  if (status.pid != 0) out += text("; host {}, pid {}", status.host, status.pid);
  return out + ")";
}

/// The last known position of a rank.
std::string where(const FailureFacts& facts, int rank) {
  const RankStatus& status = facts.ranks.at(static_cast<std::size_t>(rank));
  using State = RankStatus::State;
  if (status.state == State::missing || (status.state == State::lost && status.pid == 0)) return "did not join";
  std::string out = !status.position.empty() ? status.position : facts.last_step > 0 ? "unknown" : "starting";
  if (status.state == State::joined && status.silent_s > kBeatsLate)
    out += text("; no message for {} s: its process may be stopped, or its host down",
                report::decimals_text(status.silent_s, 1));
  if (status.state == State::lost && !status.position.empty()) // it may have moved since
    out += text(" ({} s ago)", report::decimals_text(status.position_age_s, 1));
  return out;
}

/// The last step that all ranks have completed, as far as is known. Rank 0 records a step when its own part is done;
/// then all ranks have completed the step before. The failed rank may still be in the recorded step, and says so in its
/// position, which may also be old.
std::int64_t completed_steps(const FailureFacts& facts) {
  if (!is_rank(facts)) return facts.last_step;
  const std::string& position = facts.ranks.at(static_cast<std::size_t>(facts.failure.rank)).position;
  constexpr std::string_view kInStep = "step ";
  std::int64_t step = 0;
  if (!position.starts_with(kInStep)) return facts.last_step;
  const char* const end = position.data() + position.size();
  if (std::from_chars(position.data() + kInStep.size(), end, step).ec != std::errc()) return facts.last_step;
  return std::clamp(step - 1, std::max<std::int64_t>(facts.last_step - 1, 0), facts.last_step);
}

std::string when(const FailureFacts& facts) {
  const std::int64_t completed = completed_steps(facts);
  if (facts.generates) return " before the end of the text";
  if (facts.evaluates) return " before the end of the evaluation";
  // The position of a lost rank may be old: it may have completed the recorded step.
  if (facts.failure.lost && completed < facts.last_step) return text(" during or after step {}", facts.last_step);
  return completed > 0 ? text(" after step {}", completed) : " before the end of its first step";
}

std::string to_json(const FailureFacts& facts) {
  std::vector<report::JsonObject> ranks;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    const RankStatus& status = facts.ranks[rank];
    report::JsonObject row;
    row.set("rank", rank).set("state", state_name(status.state)).set("host", status.host).set("pid", status.pid);
    row.set("position", status.position).set("silent_s", status.silent_s);
    row.set("position_age_s", status.position_age_s);
    ranks.push_back(std::move(row));
  }
  report::JsonObject out;
  if (is_rank(facts)) {
    out.set("failed", "rank").set("rank", facts.failure.rank);
  } else {
    out.set("failed", facts.server).set_null("rank");
  }
  out.set("lost", facts.failure.lost).set("stuck", facts.failure.stuck).set("reason", facts.failure.why);
  out.set("last_step", completed_steps(facts));
  out.set("seconds_to_stop", facts.seconds).set("ranks", std::move(ranks));
  std::vector<report::JsonObject> rejections;
  for (const control::Rejection& kind : facts.rejections.kinds) {
    report::JsonObject row;
    row.set("rank", kind.rank).set("address", kind.address).set("reason", kind.reason).set("count", kind.count);
    rejections.push_back(std::move(row));
  }
  out.set("rejected_connections", facts.rejections.total).set("rejections", std::move(rejections));
  return out.line();
}

} // namespace

std::string to_text(const FailureFacts& facts) {
  const control::Failure& failure = facts.failure;
  std::string out;
  if (is_rank(facts)) {
    out = who(facts, failure.rank) + (failure.lost ? " was lost" : failure.stuck ? " is stuck" : " failed");
  } else {
    out = text("{} failed (no rank failed)", facts.server);
  }
  out += when(facts);
  if (failure.lost || failure.stuck || !is_rank(facts)) out += ": " + failure.why.substr(0, failure.why.find('\n'));
  if (is_rank(facts)) {
    out += "\n  last position: " + where(facts, failure.rank);
    if (!facts.hint.empty()) out += "\n  " + facts.hint;
  } else if (facts.server != kThisProcess) {
    out += "\n  to pause a run, stop all of its processes together (Ctrl-Z), or raise train.stall_timeout_s";
  }
  int shown = 0, hidden = 0;
  for (int rank = 0; rank < facts.layout.world_size(); ++rank) {
    if (rank == failure.rank) continue;
    if (shown++ < kShown) {
      out += text("\n  rank {}: {}", rank, where(facts, rank));
    } else {
      ++hidden;
    }
  }
  if (hidden > 0) out += text("\n  ... and {} more ranks: see {}", hidden, facts.file.filename().string());
  if (facts.rejections.total > 0) out += "\n  the job server " + control::to_text(facts.rejections);
  return out + text("\n  {} after {} s", facts.is_ended ? "this process is terminated" : "all ranks stopped",
                    report::decimals_text(facts.seconds, 1));
}

control::Failure not_joined(const std::vector<int>& missing, double limit_s) {
  return {missing.front(), true,
          text("did not join within {} s (launch.start_timeout_s); missing ranks: {}", limit_s,
               control::rank_ranges(missing))};
}

void write_failure(const FailureFacts& facts, Log& log) noexcept {
  try {
    os::replace_file(facts.file, to_json(facts) + "\n");
  } catch (const std::exception& error) {
    log.error("{}", error.what());
  }
}

} // namespace triax::launch
