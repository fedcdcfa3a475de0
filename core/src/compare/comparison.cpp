// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <span>
#include <utility>

#include "checksum/checksum.hpp"
#include "report/traffic.hpp"
#include "triax/text.hpp"

namespace triax::compare {

namespace {

/// Empty if the file cannot be read.
std::string checksum_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  Checksum sum;
  std::array<char, 65536> buffer{};
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0)
    sum.add(std::as_bytes(std::span(buffer.data(), static_cast<std::size_t>(in.gcount()))));
  return in.bad() || !in.eof() ? "" : sum.text();
}

/// A side and what it has done.
class Runner {
 public:
  Runner(SideRequest request, const Plan& plan) : request_(std::move(request)), plan_(plan) {}

  /// Starts the side, and runs its first steps. Returns the time of one in ms.
  double warm_up() {
    start();
    const std::vector<report::GroupTraffic> before = totals();
    const std::vector<SideStep> steps = side_->run(plan_.warm_up);
    keep(steps);
    measure_traffic(before);
    if (plan_.restarts) end();
    return steps.back().step_ms;
  }

  void turn(std::int64_t measured) {
    if (plan_.restarts) {
      start();
      keep(side_->run(plan_.warm_up));
    }
    const std::vector<SideStep> steps = side_->run(measured + Plan::kOtherSteps, on_host());
    keep(steps);
    std::vector<double> times;
    for (std::int64_t i = 1; i <= measured; ++i) times.push_back(steps[static_cast<std::size_t>(i)].step_ms);
    TurnResult out{median(times), {}};
    if (on_host()) {
      out_.timelines = side_->timelines();
      out.phases = phases_of(out_.timelines);
    }
    out_.turns.push_back(out);
    out_.steps_ms.insert(out_.steps_ms.end(), times.begin(), times.end());
    measure_memory();
    if (plan_.restarts) end();
  }

  void end() {
    side_->end();
    side_.reset();
    ++starts_;
  }

  /// The results of the complete rounds. Destroys the side if it has not ended.
  SideResult take(std::size_t rounds) {
    side_.reset();
    out_.turns.resize(2 * rounds);
    return std::move(out_);
  }
  const SideResult& result() const { return out_; }
  std::int64_t steps_at_start() const { return steps_at_start_; }

 private:
  bool on_host() const { return side_->ranks().front().on_host; }

  void start() {
    SideRequest request = request_;
    if (plan_.restarts) // each start has a separate folder
      request.folder /= text("start-{}", starts_ + 1);
    side_.emplace(std::move(request));
    out_.has_phases = on_host();
    out_.tokens_per_sample = side_->ranks().front().tokens_per_sample;
    steps_at_start_ = side_->steps_at_start();
    if (out_.plugins.empty())
      for (const report::PluginFile& of : side_->ranks().front().plugins)
        out_.plugins.push_back({of, checksum_of(of.file)});
    for (const report::WaitingRank& rank : side_->ranks())
      out_.memory_bytes = std::max(out_.memory_bytes, rank.memory_bytes);
  }

  /// Later starts repeat the steps of the first.
  void keep(const std::vector<SideStep>& steps) {
    if (out_.steps.empty() || steps.front().step > out_.steps.back().step)
      out_.steps.insert(out_.steps.end(), steps.begin(), steps.end());
  }

  /// The traffic of all ranks since their start.
  std::vector<report::GroupTraffic> totals() const {
    std::vector<report::GroupTraffic> out;
    for (const report::WaitingRank& rank : side_->ranks()) report::add_traffic(out, rank.traffic);
    return out;
  }

  void measure_traffic(const std::vector<report::GroupTraffic>& before) {
    out_.traffic = report::difference(totals(), before);
    for (report::GroupTraffic& of : out_.traffic) {
      const auto steps = static_cast<std::uint64_t>(plan_.warm_up);
      of.ops /= steps;
      of.bytes_out /= steps;
      of.bytes_in /= steps;
    }
  }

  void measure_memory() { out_.resident_bytes = std::max(out_.resident_bytes, side_->peak_resident()); }

  const SideRequest request_;
  const Plan& plan_;
  std::optional<Side> side_;
  int starts_ = 0;
  std::int64_t steps_at_start_ = 0;
  SideResult out_;
};

/// Returns the number of complete rounds. Throws Stopped if they are too few for a result.
std::int64_t run_rounds(std::span<Runner, 2> runners, const Plan& plan, std::int64_t measured,
                        const Progress& progress) {
  std::int64_t round = 0, done = 0;
  try {
    for (; round < plan.rounds; ++round)
      for (const std::size_t side : turns_of_round(round)) {
        runners[side].turn(measured);
        if (progress.turn) progress.turn(++done, 4 * plan.rounds);
      }
    if (!plan.restarts)
      for (Runner& runner : runners) runner.end();
  } catch (const Stopped&) {
    if (round < kMinRounds) throw;
  }
  return round;
}

/// How many measured steps fill a turn.
std::int64_t steps_wanted(const Plan& plan, double step_ms) {
  constexpr double kMinSteps = 3, kMaxSteps = 1e9;
  return static_cast<std::int64_t>(std::clamp(std::ceil(plan.turn_ms / step_ms), kMinSteps, kMaxSteps));
}

/// How many measured steps of a turn train.steps allows.
std::int64_t steps_available(const Plan& plan, std::int64_t at_start) {
  const std::int64_t turns = plan.restarts ? 1 : 2 * plan.rounds;
  return (plan.max_steps - at_start - plan.warm_up) / turns - Plan::kOtherSteps;
}

std::vector<Pair> pairs(const Compared& of, double SideStep::*value) {
  std::vector<Pair> out;
  for (std::size_t i = 0; i < std::min(of.a.steps.size(), of.b.steps.size()); ++i)
    out.push_back({of.a.steps[i].step, of.a.steps[i].*value, of.b.steps[i].*value});
  return out;
}

/// The rounds of the turns of both sides.
template <class Part>
std::vector<Round> rounds_of_turns(const Compared& of, const Part& part) {
  const auto values = [&part](const std::vector<TurnResult>& turns) {
    std::vector<double> out;
    out.reserve(turns.size());
    for (const TurnResult& turn : turns) out.push_back(part(turn));
    return out;
  };
  return rounds_of(values(of.a.turns), values(of.b.turns));
}

} // namespace

std::int64_t Plan::min_steps() const {
  return warm_up + (restarts ? 1 : 2 * rounds) * (1 + kOtherSteps);
}

Compared compare_sides(const SideRequest& a, const SideRequest& b, const Plan& plan, const Progress& progress) {
  if (plan.max_steps < plan.min_steps())
    throw Error(text("{} steps are too few, {} are needed", plan.max_steps, plan.min_steps()), "comparison");
  Runner runners[] = {{a, plan}, {b, plan}};
  const double of_a = runners[0].warm_up(), of_b = runners[1].warm_up(); // A starts first
  if (progress.warmed_up) progress.warmed_up(runners[0].result(), runners[1].result());
  Compared out;
  const std::int64_t at_start = std::max(runners[0].steps_at_start(), runners[1].steps_at_start());
  out.steps_wanted = steps_wanted(plan, std::max(of_a, of_b));
  out.steps_per_turn = std::min(out.steps_wanted, steps_available(plan, at_start));
  if (out.steps_per_turn < 1)
    throw Error(text("the sides begin after step {}, but {} steps are left; {} are needed", at_start,
                     plan.max_steps - at_start, plan.min_steps()),
                "comparison", "increase train.steps, or use fewer rounds");
  const std::int64_t turns = 4 * plan.rounds;
  const std::int64_t steps = out.steps_per_turn + Plan::kOtherSteps + (plan.restarts ? plan.warm_up : 0);
  if (progress.begins) progress.begins(turns, static_cast<double>(turns * steps) * (of_a + of_b) / 2e3);
  const auto rounds = static_cast<std::size_t>(run_rounds(runners, plan, out.steps_per_turn, progress));
  out.a = runners[0].take(rounds);
  out.b = runners[1].take(rounds);
  out.rounds = rounds_of_turns(out, [](const TurnResult& turn) { return turn.step_ms; });
  out.step_time = paired_ratio(out.rounds);
  out.losses = agreement_of(pairs(out, &SideStep::loss));
  out.grad_norms = agreement_of(pairs(out, &SideStep::grad_norm));
  return out;
}

std::optional<Ratio> ratio_of(const Compared& compared, const std::function<double(const Phases&)>& part) {
  const std::vector<Round> rounds =
      rounds_of_turns(compared, [&part](const TurnResult& turn) { return part(turn.phases); });
  const auto is_measured = [](const Round& round) { return round.a > 0 && round.b > 0; };
  if (!std::ranges::all_of(rounds, is_measured)) return std::nullopt;
  return paired_ratio(rounds);
}

} // namespace triax::compare
