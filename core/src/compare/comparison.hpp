// SPDX-License-Identifier: Apache-2.0
// Compares two sides: gives them turns in the order A B B A, B A A B..., and computes the ratio of their times.
//
// Threads: one. Blocking: until all rounds are done, or the comparison is stopped. Errors: SideEnded if a side ends;
// Stopped before kMinRounds are complete; Error for too few steps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/numbers.hpp"
#include "compare/paired_ratio.hpp"
#include "compare/phases.hpp"
#include "compare/side.hpp"

namespace triax::compare {

/// How a comparison is carried out.
struct Plan {
  std::int64_t rounds = 20;
  std::int64_t warm_up = 3;   // steps of each side before its first turn, or with `restarts` before each turn
  double turn_ms = 200;       // time of the measured steps of a turn
  std::int64_t max_steps = 0; // that a side can do: train.steps
  bool restarts = false;      // each turn is a separate start; the sides do not exist together

  /// Steps of a turn that are not measured: the first, in which caches are cold, and the last, whose timeline is
  /// recorded.
  static constexpr std::int64_t kOtherSteps = 2;
  /// The fewest steps that a side needs.
  std::int64_t min_steps() const;
};

/// A turn of a side.
struct TurnResult {
  double step_ms = 0; // median of the measured steps
  Phases phases;      // of its last step; all 0 on a GPU
};

/// A plugin of a side, and the XXH3 of its file when the side had started: 32 hexadecimal digits.
struct UsedPlugin {
  report::PluginFile of;
  std::string checksum;
};

struct SideResult {
  std::vector<TurnResult> turns;
  std::vector<double> steps_ms;              // of all measured steps
  std::vector<SideStep> steps;               // all, in their order; with restarts, of the first start
  std::vector<report::GroupTraffic> traffic; // of all ranks, per step
  std::vector<UsedPlugin> plugins;
  std::uint64_t memory_bytes = 0;   // planned: of the rank that needs most
  std::uint64_t resident_bytes = 0; // peak of all processes together; 0 if not known
  std::int64_t tokens_per_sample = 0;
  bool has_phases = false;
  std::vector<report::RankTimeline> timelines; // of the last turn; empty on a GPU
};

struct Compared {
  SideResult a, b;
  std::int64_t steps_per_turn = 0; // measured
  std::int64_t steps_wanted = 0;   // in turns of Plan::turn_ms; more than steps_per_turn if train.steps is too small
  std::vector<Round> rounds;       // step times in ms; fewer than planned if the comparison was stopped
  Ratio step_time;
  Agreement losses, grad_norms;
};

/// The ratio of a part of the step, such as its forward passes; empty if a side does not have it.
std::optional<Ratio> ratio_of(const Compared& compared, const std::function<double(const Phases&)>& part);

struct Progress {
  /// Called before the first turn with an estimate of the time of all; may be empty.
  std::function<void(std::int64_t turns, double seconds)> begins = {};
  /// Called after each turn; may be empty.
  std::function<void(std::int64_t done, std::int64_t turns)> turn = {};
  /// Called when both sides have done their warm-up, before the first turn, with what they have sent; throws to end
  /// the comparison. May be empty.
  std::function<void(const SideResult& a, const SideResult& b)> warmed_up = {};
};

Compared compare_sides(const SideRequest& a, const SideRequest& b, const Plan& plan, const Progress& progress);

} // namespace triax::compare
