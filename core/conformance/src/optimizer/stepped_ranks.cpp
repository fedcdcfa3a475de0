// SPDX-License-Identifier: Apache-2.0
#include "stepped_ranks.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "dry_run_stepper.hpp"

namespace triax::conformance {

namespace {

/// The communicators of a rank, which write one log.
class LoggedGroups {
 public:
  /// `real`: the communicator of a group; null in a dry run.
  LoggedGroups(const Layout& layout, int rank, CollectiveLog& log,
               const std::function<Communicator*(const Group&)>& real) {
    for (const std::vector<std::string>& axes : axes_of_groups(layout)) {
      const Group group = layout.group(rank, axes);
      communicators_.push_back(std::make_unique<LoggedCommunicator>(group, log, real(group)));
      groups_.set(Layout::product_name(axes), communicators_.back().get());
    }
  }
  const Groups& groups() const { return groups_; }

 private:
  std::vector<std::unique_ptr<LoggedCommunicator>> communicators_;
  Groups groups_;
};

std::vector<Posted> dry_run_posts_of(const OptimizerSubject& subject, const StepTypes& types,
                                     const RankDivision& division, int rank) {
  const Layout layout = division.layout();
  Stepper stepper(subject, types, parts_of_rank(division, rank), {.layout = layout, .rank = rank});
  CollectiveLog log;
  const LoggedGroups logged(layout, rank, log, [](const Group&) { return nullptr; });
  DryRunKernels kernels(stepper.kernels());
  DryRunStepper dry_run(stepper, {.scalars = &stepper.scalars(), .groups = &logged.groups()});
  dry_run.call(dry_run.shards().first(kFirstStage), kernels);
  dry_run.call(dry_run.shards().subspan(kFirstStage), kernels);
  return log.posts();
}

void step_rank(const OptimizerSubject& subject, const StepTypes& types, const RankDivision& division,
               const std::vector<Posted>& of_dry_run, Rank& rank, MergedTensors& merged) {
  CollectiveLog log(of_dry_run);
  const LoggedGroups logged(rank.layout(), rank.index(), log, [&](const Group& group) { return &rank.join(group); });
  Stepper stepper(
      subject, types, parts_of_rank(division, rank.index()),
      {.layout = rank.layout(), .rank = rank.index(), .device = &rank.device(), .groups = &logged.groups()});
  for (int i = 0; i < kDividedSteps; ++i) {
    stepper.begin_step({});
    stepper.call(stepper.shards().first(kFirstStage));
    stepper.call(stepper.shards().subspan(kFirstStage));
    log.end_step();
  }
  stepper.stream().ready();
  merged.add(stepper, rank.index());
  rank.barrier("the end of the steps");
}

} // namespace

std::vector<RankDivision> divisions_of(const OptimizerSubject& subject) {
  std::vector<RankDivision> out{{.tensor = 2}};
  const bool may_be_sharded = make_optimizer(subject)->traits().may_be_sharded();
  for (const int tensor : {1, 2}) {
    out.push_back({.tensor = tensor, .data = 2});
    if (may_be_sharded) out.push_back({.tensor = tensor, .data = 2, .sharded = true});
  }
  return out;
}

PostsOfRanks dry_run_posts(const OptimizerSubject& subject, const StepTypes& types, const RankDivision& division) {
  PostsOfRanks out;
  for (int rank = 0; rank < division.layout().world_size(); ++rank)
    out.push_back(dry_run_posts_of(subject, types, division, rank));
  return out;
}

std::vector<std::string> post_differences(const RankDivision& division, const PostsOfRanks& posts) {
  const Layout layout = division.layout();
  std::vector<std::string> out;
  for (int rank = 0; rank < layout.world_size(); ++rank)
    for (const std::vector<std::string>& axes : axes_of_groups(layout)) {
      const std::string name = Layout::product_name(axes);
      const int first = layout.group(rank, axes).ranks.front();
      const std::vector<Posted>&wanted = posts[static_cast<std::size_t>(first)],
            &got = posts[static_cast<std::size_t>(rank)];
      const std::vector<Posted> seen = seen_by_group(got, name), seen_by_first = seen_by_group(wanted, name);
      if (seen == seen_by_first) continue;
      const auto at = static_cast<std::size_t>(std::ranges::mismatch(seen, seen_by_first).in1 - seen.begin());
      out.push_back(text("{}: call {} of a step on a communicator is {} on rank {}, but {} on rank {} of its {} group",
                         to_text(division), at, call_text(got, at), rank, call_text(wanted, at), first, name));
      break; // the next groups differ in the same calls
    }
  return out;
}

std::string MergedTensors::add_tensor(const std::string& name, const TensorView& view, const Part& part, int rank) {
  const std::size_t width = bytes_of(view.dtype()), elements = static_cast<std::size_t>(part.spec.global.elements());
  TensorBytes& tensor = whole_[name];
  tensor.dtype = view.dtype();
  tensor.bytes.resize(elements * width);
  std::vector<int>& ranks = ranks_[name];
  ranks.resize(elements, -1);
  for (std::int64_t i = 0; i < part.elements; ++i) {
    const auto global = static_cast<std::size_t>(part.global(i));
    const std::byte* const got = view.as<const std::byte>() + static_cast<std::size_t>(i) * width;
    std::byte* const held = tensor.bytes.data() + global * width;
    if (ranks[global] >= 0 && std::memcmp(held, got, width) != 0)
      return text("element {} of {} has other bits on rank {} than on rank {}", global, name, rank, ranks[global]);
    std::memcpy(held, got, width);
    ranks[global] = rank;
  }
  return {};
}

void MergedTensors::add(const Stepper& stepper, int rank) {
  const std::lock_guard lock(mutex_);
  std::string differs;
  for (std::size_t shard = 0; shard < stepper.shards().size(); ++shard)
    for (const auto& [name, view] : stepper.views_of(shard)) {
      std::string of_tensor = add_tensor(name, view, stepper.parts()[shard], rank);
      if (differs.empty()) differs = std::move(of_tensor);
    }
  if (!differs.empty()) differences_.push_back(std::move(differs));
}

void step_ranks(const OptimizerSubject& subject, const StepTypes& types, const RankDivision& division,
                MergedTensors& merged, Report& report) {
  const PostsOfRanks posts = dry_run_posts(subject, types, division);
  if (!post_differences(division, posts).empty())
    return report.fail(text("{}: not run, because the ranks post different collectives: see the check {}",
                            to_text(division), "Ranks.PostTheSameCollectives"));
  const Layout layout = division.layout();
  run_ranks(subject.ranks, layout, report, [&](Rank& rank) {
    step_rank(subject, types, division, posts[static_cast<std::size_t>(rank.index())], rank, merged);
  });
}

} // namespace triax::conformance
