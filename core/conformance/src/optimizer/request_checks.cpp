// SPDX-License-Identifier: Apache-2.0
// Answers before the first step: requests, state names, scratch sizes.
#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "optimizer_check_tables.hpp"
#include "refusal_check.hpp"

namespace triax::conformance {

namespace {

constexpr DType kFloatingTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16};
constexpr std::size_t kMaxStates = 64; // of an engine
constexpr DType kEveryType[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8};

void refuses_requests_with_reasons(const OptimizerSubject& subject, Report& report) {
  const Object<Optimizer> optimizer = make_optimizer(subject);
  int accepted = 0;
  for (const DeviceKind device : {DeviceKind::host, DeviceKind::cuda, DeviceKind::sim})
    for (const DType master : kEveryType) {
      const std::string at = text("{} on {}", name_of(master), name_of(device));
      Refusals refusals;
      const std::string error = error_of([&] { refusals = optimizer->supports({master, device}); });
      report.expect(error.empty(), "{}: supports() throws \"{}\"; it must return refusals", at, error);
      check_reasons(refusals, at, report);
      if (!error.empty() || !refusals.empty()) continue;
      report.expect(is_floating(master), "{}: supports() accepts a type that is not floating", at);
      accepted += device == DeviceKind::host;
    }
  report.expect(accepted > 0, "supports() accepts no type of master weights on the host");
}

void state_names_are_distinct(const OptimizerSubject& subject, Report& report) {
  const Object<Optimizer> one = make_optimizer(subject), other = make_optimizer(subject);
  const OptimizerTraits first = one->traits();
  const std::vector<std::string>& names = first.state;
  for (const Object<Optimizer>* const of : {&one, &other}) {
    const OptimizerTraits again = (*of)->traits();
    const bool is_equal = again.state == names && again.elementwise == first.elementwise &&
                          again.adds_over_group == first.adds_over_group;
    report.expect(is_equal, "traits() differs from call to call, or from object to object");
  }
  report.expect(names.size() <= kMaxStates, "traits() names {} state tensors, which are more than {}", names.size(),
                kMaxStates);
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const bool is_name = !name.empty() && name != "master" && std::ranges::all_of(name, [](char letter) {
      return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-';
    });
    report.expect(is_name, "a state tensor has the name \"{}\"; names have letters, digits, \"_\" and \"-\"", name);
    report.expect(seen.insert(name).second, "two state tensors have the name \"{}\"", name);
  }
}

/// scratch_bytes() of every subset of the parameters is at most that of each subset with one parameter more.
void scratch_grows_with_shards(const OptimizerSubject& subject, Report& report) {
  for (const DType master : accepted_types(subject)) {
    Stepper stepper(subject, {master, {}});
    const std::size_t count = stepper.shards().size();
    const auto bytes_of_subset = [&](std::size_t subset) {
      std::vector<ParameterShard> some;
      for (std::size_t i = 0; i < count; ++i)
        if ((subset >> i & 1) != 0) some.push_back(stepper.shards()[i]);
      return stepper.optimizer().scratch_bytes(some);
    };
    for (std::size_t subset = 0; subset < std::size_t{1} << count; ++subset)
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t less = bytes_of_subset(subset & ~(std::size_t{1} << i)), more = bytes_of_subset(subset);
        report.expect(less <= more, "scratch_bytes() is {} with {}, but {} without it", more, stepper.shards()[i].name,
                      less);
      }
  }
}

void scratch_is_enough(const OptimizerSubject& subject, Report& report) {
  for_types(subject, [&](const StepTypes& types) {
    Stepper stepper(subject, types);
    stepper.steps(2);
    report.expect(stepper.is_scratch_intact(), "{}: a step writes beyond its scratch_bytes()", to_text(types));
  });
}

constexpr OptimizerCheck kRequestChecks[] = {
    {"Supports.RefusesWithReasonsAndKeys", "O1", nullptr, refuses_requests_with_reasons},
    {"State.HasDistinctNames", "O2", nullptr, state_names_are_distinct},
    {"Scratch.GrowsWithTheShards", "O3", nullptr, scratch_grows_with_shards},
    {"Scratch.IsEnough", "O3", nullptr, scratch_is_enough},
};

} // namespace

std::span<const OptimizerCheck> request_checks() {
  return kRequestChecks;
}

std::vector<DType> accepted_types(const OptimizerSubject& subject) {
  const Object<Optimizer> optimizer = make_optimizer(subject);
  std::vector<DType> out;
  for (const DType master : kFloatingTypes)
    if (optimizer->supports({master, DeviceKind::host}).empty() && kernels_for(subject, {master, {}}))
      out.push_back(master);
  TRIAX_REQUIRE(!out.empty(), "{} accepts no type of master weights on the host that a kernel set supports",
                subject.name);
  return out;
}

void for_types(const OptimizerSubject& subject, const std::function<void(const StepTypes&)>& body) {
  for (const DType master : accepted_types(subject)) {
    body({master, {}});
    for (const DType working : {DType::bf16, DType::f16, DType::f32})
      if (bytes_of(working) < bytes_of(master) && kernels_for(subject, {master, working})) body({master, working});
  }
}

std::vector<Check> optimizer_checks(const OptimizerSubject& subject) {
  std::vector<Check> out;
  for (const auto table : {request_checks(), update_checks(), call_checks(), state_checks(), division_checks()})
    for (Check& check : bind_checks(table, subject)) out.push_back(std::move(check));
  return out;
}

} // namespace triax::conformance
