// SPDX-License-Identifier: Apache-2.0
// Ranks that divide parameters, against one rank that has all of them.
#include <string>
#include <vector>

#include "stepped_ranks.hpp"

namespace triax::conformance {

namespace {

/// The tolerance, in roundings of the largest magnitude of a tensor. Sums of a few thousand terms are added in another
/// order, and an iteration on matrices amplifies the difference.
constexpr double kRoundingsOfSums = 1 << 14;

std::vector<double> values_of_bytes(const TensorBytes& tensor) {
  std::vector<std::byte> bytes = tensor.bytes;
  const auto elements = static_cast<std::int64_t>(bytes.size() / bytes_of(tensor.dtype));
  return values_of(TensorView(bytes.data(), tensor.dtype, {elements}));
}

/// Working weights are compared with master weights instead: rounded to fewer bits, they may differ by one of those.
std::string difference_beyond_roundings(const Tensors& got, const Tensors& expected) {
  for (const auto& [name, wanted] : expected) {
    if (name.ends_with(", working")) continue;
    const std::vector<double> of_one = values_of_bytes(wanted);
    const double tolerance = kRoundingsOfSums * epsilon_of(wanted.dtype) * magnitude_of(of_one);
    if (const std::string differs = difference(values_of_bytes(got.at(name)), of_one, tolerance); !differs.empty())
      return text("{}: {}", name, differs);
  }
  return {};
}

void working_is_rounded(const StepTypes& types, const RankDivision& division, const Tensors& whole, Report& report) {
  if (!types.working) return;
  for (const auto& [name, tensor] : whole) {
    if (!name.ends_with(", working")) continue;
    const std::string parameter = name.substr(0, name.rfind(','));
    std::vector<std::byte> working = tensor.bytes, master = whole.at(parameter + ", master").bytes;
    const auto elements = static_cast<std::int64_t>(working.size() / bytes_of(tensor.dtype));
    const std::string differs =
        rounding_difference({working.data(), tensor.dtype, {elements}}, {master.data(), types.master, {elements}});
    report.expect(differs.empty(), "{}, {}, working weights of {}: {}", to_text(types), to_text(division), parameter,
                  differs);
  }
}

void ranks_have_the_parameters_of_one(const OptimizerSubject& subject, Report& report) {
  const bool is_elementwise = make_optimizer(subject)->traits().elementwise;
  for_types(subject, [&](const StepTypes& types) {
    Stepper one(subject, types);
    one.steps(kDividedSteps);
    const Tensors expected = one.tensors();
    for (const RankDivision& division : divisions_of(subject)) {
      if (report.has_failed()) return;
      MergedTensors merged;
      step_ranks(subject, types, division, merged, report);
      if (report.has_failed()) return;
      const std::string differs =
          is_elementwise ? difference(merged.whole(), expected) : difference_beyond_roundings(merged.whole(), expected);
      report.expect(differs.empty(), "{}, {}, against one rank: {}", to_text(types), to_text(division), differs);
      working_is_rounded(types, division, merged.whole(), report);
    }
  });
}

/// Without working weights, which ranks_have_the_parameters_of_one() compares.
void ranks_have_the_same_bits(const OptimizerSubject& subject, Report& report) {
  for (const DType master : accepted_types(subject))
    for (const RankDivision& division : divisions_of(subject)) {
      if (report.has_failed()) return;
      MergedTensors merged;
      step_ranks(subject, {master, {}}, division, merged, report);
      for (const std::string& differs : merged.differences())
        report.fail(text("{}, {}: {}", name_of(master), to_text(division), differs));
    }
}

void sharding_changes_no_bit(const OptimizerSubject& subject, Report& report) {
  for (const DType master : accepted_types(subject))
    for (RankDivision division : divisions_of(subject)) {
      if (!division.sharded) continue;
      if (report.has_failed()) return;
      const StepTypes types{master, {}};
      MergedTensors sharded, unsharded;
      step_ranks(subject, types, division, sharded, report);
      division.sharded = false;
      step_ranks(subject, types, division, unsharded, report);
      if (report.has_failed()) return;
      expect_equal(report, types, text("{}, with optimizer.shard against without it", to_text(division)),
                   sharded.whole(), unsharded.whole());
    }
}

void steps_post_what_a_dry_run_posts(const OptimizerSubject& subject, Report& report) {
  for (const DType master : accepted_types(subject))
    for (const RankDivision& division : divisions_of(subject)) {
      if (report.has_failed()) return;
      MergedTensors merged;
      step_ranks(subject, {master, {}}, division, merged, report);
    }
}

void ranks_post_the_same_calls(const OptimizerSubject& subject, Report& report) {
  const bool is_elementwise = make_optimizer(subject)->traits().elementwise;
  for (const DType master : accepted_types(subject))
    for (const RankDivision& division : divisions_of(subject)) {
      const PostsOfRanks posts = dry_run_posts(subject, {master, {}}, division);
      for (const std::string& differs : post_differences(division, posts)) report.fail(differs);
      for (std::size_t rank = 0; is_elementwise && rank < posts.size(); ++rank)
        report.expect(posts[rank].empty(),
                      "{}: step() posts {} on rank {}; ranks of an elementwise optimizer may make different calls",
                      to_text(division), to_text(posts[rank]), rank);
    }
}

std::string unless_communicators(const OptimizerSubject& subject) {
  return subject.ranks.backend ? "" : "this program has no communicator";
}

constexpr OptimizerCheck kDivisionChecks[] = {
    {"Ranks.PostTheSameCollectives", "O23", nullptr, ranks_post_the_same_calls},
    {"Ranks.PostWhatADryRunPosts", "O16", unless_communicators, steps_post_what_a_dry_run_posts},
    {"Ranks.EqualOneRank", "O20", unless_communicators, ranks_have_the_parameters_of_one},
    {"Ranks.HaveEqualBits", "O21", unless_communicators, ranks_have_the_same_bits},
    {"Sharding.ChangesNoBit", "O22", unless_communicators, sharding_changes_no_bit},
};

} // namespace

std::span<const OptimizerCheck> division_checks() {
  return kDivisionChecks;
}

} // namespace triax::conformance
