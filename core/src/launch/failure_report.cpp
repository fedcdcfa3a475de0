#include "launch/failure_report.hpp"

#include <array>
#include <fstream>

#include "report/json.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::launch {

namespace {

using control::RankStatus;

constexpr int kShown = 16;       // ranks whose place is told
constexpr double kBeatsLate = 3; // seconds; ranks beat four times a second

std::string_view state_name(RankStatus::State state) {
  constexpr std::array<std::string_view, 4> kNames = {"missing", "here", "left", "lost"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string who(const FailureFacts& facts, int rank) {
  const auto at = [&](std::string_view axis) { return facts.layout.coordinate(rank, axis); };
  std::string out = text("rank {} (pipeline {}, data {}, tensor {}", rank, at("pipeline"), at("data"), at("tensor"));
  const RankStatus& status = facts.ranks.at(static_cast<std::size_t>(rank));
  if (status.pid != 0) out += text("; host {}, pid {}", status.host, status.pid);
  return out + ")";
}

/// Where a rank stood when it was last heard of.
std::string where(const FailureFacts& facts, int rank) {
  const RankStatus& status = facts.ranks.at(static_cast<std::size_t>(rank));
  if (status.state == RankStatus::State::missing) return "it never came";
  std::string out = !status.place.empty() ? status.place : facts.last_step > 0 ? "unknown" : "it was starting";
  if (status.state == RankStatus::State::here && status.silent_s > kBeatsLate)
    out += text("; not heard of for {} s: its process is stopped, or its host is gone",
                report::decimals_text(status.silent_s, 1));
  if (status.state == RankStatus::State::lost && !status.place.empty()) // it may have been elsewhere since
    out += text(" (told {} s before)", report::decimals_text(status.place_age_s, 1));
  return out;
}

} // namespace

std::string to_text(const FailureFacts& facts) {
  const control::Failure& failure = facts.failure;
  std::string out = who(facts, failure.rank) + (failure.lost ? " was lost" : " gave up");
  out += facts.last_step > 0 ? text(" after step {}", facts.last_step) : std::string(" before the end of step 1");
  if (failure.lost) out += ": " + failure.why;
  out += "\n  its last place: " + where(facts, failure.rank);
  int shown = 0, hidden = 0;
  for (int rank = 0; rank < facts.layout.world(); ++rank) {
    if (rank == failure.rank) continue;
    if (shown++ < kShown) {
      out += text("\n  rank {}: {}", rank, where(facts, rank));
    } else {
      ++hidden;
    }
  }
  if (hidden > 0) out += text("\n  ... and {} more ranks: see failure.json", hidden);
  return out + text("\n  all ranks stopped after {} s", report::decimals_text(facts.seconds, 1));
}

void write_failure(const FailureFacts& facts, const std::filesystem::path& folder) {
  std::vector<report::JsonObject> ranks;
  for (std::size_t rank = 0; rank < facts.ranks.size(); ++rank) {
    const RankStatus& status = facts.ranks[rank];
    report::JsonObject row;
    row.set("rank", rank).set("state", state_name(status.state)).set("host", status.host).set("pid", status.pid);
    row.set("place", status.place).set("silent_s", status.silent_s);
    row.set("place_age_s", status.place_age_s);
    ranks.push_back(std::move(row));
  }
  report::JsonObject out;
  out.set("rank", facts.failure.rank).set("lost", facts.failure.lost).set("why", facts.failure.why);
  out.set("last_step", facts.last_step);
  out.set("seconds_to_stop", facts.seconds).set("ranks", std::move(ranks));
  std::ofstream(folder / "failure.json") << out.line() << '\n';
}

} // namespace triax::launch
