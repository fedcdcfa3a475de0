// SPDX-License-Identifier: Apache-2.0
// Checks of step(): parts of parameters, skipped steps, clipping, learning rate and weight decay.
#include <string>
#include <type_traits>
#include <vector>

#include "optimizer_check_tables.hpp"
#include "triax/element_type.hpp"

namespace triax::conformance {

namespace {

constexpr int kSteps = 3;

Tensors tensors_after(const OptimizerSubject& subject, const StepTypes& types, const StepInput& input = {}) {
  Stepper stepper(subject, types);
  stepper.steps(kSteps, input);
  return stepper.tensors();
}

void parts_equal_the_whole(const OptimizerSubject& subject, Report& report) {
  if (!make_optimizer(subject)->traits().elementwise) return;
  for_types(subject, [&](const StepTypes& types) {
    const Tensors expected = tensors_after(subject, types);
    for (const int count : {2, 3, 5}) {
      Tensors whole;
      for (int index = 0; index < count; ++index) {
        Stepper shard(subject, types, parts_of_shard(index, count));
        shard.steps(kSteps);
        shard.add_to(whole);
      }
      expect_equal(report, types, text("after {} steps of {} shards", kSteps, count), whole, expected);
    }
  });
}

void repeats_are_equal(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    expect_equal(report, types, "in another object", tensors_after(subject, types), tensors_after(subject, types));
  });
}

void skip_changes_nothing(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper stepper(subject, types);
    for (const bool nan : {false, true}) {
      const Tensors before = stepper.tensors();
      stepper.step({.skip = true, .nan_gradient = nan});
      expect_equal(report, types, nan ? "after a skipped step with NaN as gradient" : "after a skipped step",
                   stepper.tensors(), before);
      stepper.step();
    }
  });
}

void skip_leaves_no_trace(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper stepper(subject, types);
    for (int i = 0; i < kSteps; ++i) {
      stepper.step({.skip = true, .nan_gradient = i % 2 == 0});
      stepper.step();
    }
    expect_equal(report, types, "after steps with skipped steps between them", stepper.tensors(),
                 tensors_after(subject, types));
  });
}

/// Factors are powers of two, so that both ways round in the same way.
void clip_scales_the_gradient(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    for (const float clip : {0.25f, 0.5f, 2.0f})
      expect_equal(report, types, text("with clip = {}, against a gradient multiplied by it", clip),
                   tensors_after(subject, types, {.clip = clip}),
                   tensors_after(subject, types, {.clip = 1, .gradient = static_cast<double>(clip)}));
  });
}

Tensors masters_of(const Stepper& stepper, std::size_t shard) {
  Tensors out = stepper.tensors_of(shard);
  std::erase_if(out, [](const auto& tensor) { return !tensor.first.ends_with(", master"); });
  return out;
}

void learning_rate_scales_the_change(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper stepper(subject, types);
    const std::size_t count = stepper.shards().size();
    std::vector<Tensors> before;
    for (std::size_t i = 0; i < count; ++i) before.push_back(masters_of(stepper, i));
    stepper.steps(kSteps, {.lr = 0, .weight_decay = 0});
    for (std::size_t i = 0; i < count; ++i)
      expect_equal(report, types, "after steps with lr = 0", masters_of(stepper, i), before[i]);
    stepper.steps(kSteps, {.weight_decay = 0});
    for (std::size_t i = 0; i < count; ++i)
      report.expect(!difference(masters_of(stepper, i), before[i]).empty(),
                    "{}: {} steps with lr = {} change no element of {}", to_text(types), kSteps, StepInput().lr,
                    stepper.shards()[i].name);
  });
}

void decay_is_of_marked_parameters(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper with(subject, types), without(subject, types);
    with.steps(kSteps);
    without.steps(kSteps, {.weight_decay = 0});
    for (std::size_t i = 0; i < with.shards().size(); ++i) {
      const ParameterShard& shard = with.shards()[i];
      const bool is_equal = difference(masters_of(with, i), masters_of(without, i)).empty();
      report.expect(is_equal != shard.spec->decay, "{}: weight decay {} {}, whose ParamSpec::decay is {}",
                    to_text(types), is_equal ? "does not change" : "changes", shard.name, shard.spec->decay);
    }
  });
}

void working_weights_are_rounded(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    if (!types.working) return;
    Stepper stepper(subject, types);
    for (int i = 0; i < kSteps; ++i) {
      stepper.fill_working(77); // all elements must be written
      stepper.step();
      for (const ParameterShard& shard : stepper.shards()) {
        const std::string differs = rounding_difference(shard.working, shard.master);
        report.expect(differs.empty(), "{}, working weights of {}: {}", to_text(types), shard.name, differs);
      }
    }
  });
}

constexpr OptimizerCheck kUpdateChecks[] = {
    {"Update.OfPartsEqualsTheWhole", "O4", nullptr, parts_equal_the_whole},
    {"Update.RepeatsHaveEqualBits", "O6", nullptr, repeats_are_equal},
    {"Skip.ChangesNothing", "O7", nullptr, skip_changes_nothing},
    {"Skip.LeavesNoTrace", "O7", nullptr, skip_leaves_no_trace},
    {"Clip.ScalesTheGradient", "O8", nullptr, clip_scales_the_gradient},
    {"LearningRate.ScalesTheChange", "O9", nullptr, learning_rate_scales_the_change},
    {"WeightDecay.ChangesMarkedParametersOnly", "O10", nullptr, decay_is_of_marked_parameters},
    {"Working.IsTheRoundedMaster", "O11", nullptr, working_weights_are_rounded},
};

} // namespace

std::string rounding_difference(const TensorView& working, const TensorView& master) {
  std::string out;
  with_type_among<float, double, Bf16, F16>(master.dtype(), [&](auto of_master) {
    with_type_among<float, double, Bf16, F16>(working.dtype(), [&](auto of_working) {
      using Master = decltype(of_master);
      using Working = decltype(of_working);
      for (std::int64_t i = 0; i < master.elements() && out.empty(); ++i) {
        const auto value = static_cast<double>(master.as<Master>()[i]);
        const auto has = static_cast<double>(working.as<Working>()[i]);
        const auto rounded = static_cast<double>(Working(value));
        if (has != rounded) out = text("element {} is {}, must be {}, the rounded {}", i, has, rounded, value);
      }
    });
  });
  return out;
}

std::span<const OptimizerCheck> update_checks() {
  return kUpdateChecks;
}

} // namespace triax::conformance
