// SPDX-License-Identifier: Apache-2.0
// The result of a step: its values, and the errors of a step that must end the run.
#include <utility>

#include "executor/executor.hpp"
#include "triax/error.hpp"

namespace triax::executor {

/// All values are on the host by now.
StepOutcome Executor::outcome(const Walk& walk, double lr) {
  const StepReductions& values = parts_.state.values();
  StepOutcome out;
  const std::int64_t samples = parts_.state.batches().shape().global();
  out.loss = values.loss_sum(samples) / static_cast<double>(parts_.state.batches().shape().tokens());
  out.request = values.largest_request();
  out.grad_norm = values.decided().grad_norm;
  out.loss_scale = std::exchange(loss_scale_, static_cast<double>(values.decided().loss_scale));
  out.next_loss_scale = loss_scale_;
  const Clock::duration elapsed = walk.last_ended - walk.first_began;
  if (elapsed.count() > 0)
    out.bubble_rate = static_cast<double>(walk.idle.count()) / static_cast<double>(elapsed.count());
  const std::string loss = values.nonfinite_loss(first_sample(walk.step), samples);
  if (values.decided().skip != 0) out.skipped = loss.empty() ? values.nonfinite_gradient() : loss;
  if (!loss.empty() || (!out.skipped.empty() && !settings_.loss_scale))
    out.nonfinite.emplace(out.skipped, location(walk, walk.norm, {}),
                          text("the weights are still those of step {}; use {}a smaller optimizer.lr (this step's is "
                               "{}), a longer lr.warmup_steps, or train.clip_grad",
                               walk.step - 1, smaller_decay(lr), static_cast<float>(lr)));
  count_skipped(walk, out, lr);
  return out;
}

/// A run that only skips steps must end.
void Executor::count_skipped(const Walk& walk, const StepOutcome& outcome, double lr) {
  const bool at_min = outcome.loss_scale <= static_cast<double>(rules().min);
  skipped_at_min_ = at_min && !outcome.skipped.empty() ? skipped_at_min_ + 1 : 0;
  if (skipped_at_min_ < kMaxSkipped) return;
  const bool scales = settings_.loss_scale.has_value();
  const std::string at_scale = scales ? text(" at the smallest loss scale, {}", rules().min) : "";
  const std::string other_scale =
      scales ? text(", or a smaller loss_scale.{}", rules().window > 0 ? "min" : "initial") : "";
  throw NonfiniteError(
      Error(text("{}, in {} steps one after another{}", outcome.skipped, kMaxSkipped, at_scale),
            location(walk, walk.norm, {}),
            text("the weights are still those of step {}; use {}{}a smaller optimizer.lr{}", walk.step - 1,
                 smaller_decay(lr), scales ? "train.precision bf16 or fp32, " : "", other_scale)));
}

/// Decay multiplies a weight by 1 - lr x weight_decay per step. If that is below -1, the weight grows until it
/// overflows.
std::string Executor::smaller_decay(double lr) const {
  const double product = lr * settings_.weight_decay;
  if (product <= 2) return {};
  return text("a smaller optimizer.weight_decay ({}; multiplied by the learning rate it is {}, above 2), ",
              settings_.weight_decay, static_cast<float>(product));
}

const LossScaling& Executor::rules() const {
  static constexpr LossScaling kNone;
  return settings_.loss_scale ? settings_.loss_scale->rules : kNone;
}

} // namespace triax::executor
