// SPDX-License-Identifier: Apache-2.0
#include "executor/gradient_reductions.hpp"

#include <set>

#include "triax/error.hpp"

namespace triax::executor {

GradientReductions::GradientReductions(Device& device, const Groups& groups, RankState& state)
    : device_(device), groups_(groups), state_(state) {
  list_tied();
}

/// Each rank with a layer of a tied parameter sends its accumulator to all other ranks that have one.
void GradientReductions::list_tied() {
  const int here = state_.parameters().here();
  for (const Parameter& parameter : state_.parameters().all()) {
    const std::set<int> holders(parameter.ranks.begin(), parameter.ranks.end());
    for (std::size_t at = 0; at < parameter.ranks.size(); ++at) {
      const TensorView& view = at == 0 ? parameter.gradient : parameter.others[at - 1];
      const int from = parameter.ranks[at];
      if (from != here) {
        tied_.push_back({Direction::receive, from, 0, view});
        continue;
      }
      for (const int to : holders)
        if (to != here) tied_.push_back({Direction::send, to, 0, view});
    }
  }
}

void GradientReductions::reduce(int stage, Stream& stream, ActionId id) {
  state_.stage(stage).for_each_layer([&](int number, const Layer&) {
    for (const Bucket& bucket : state_.parameters().buckets_of(number)) all_reduce(bucket, stream, id);
  });
}

void GradientReductions::all_reduce(const Bucket& bucket, Stream& stream, ActionId id) {
  if (bucket.reduction.axes.empty()) return;
  Communicator* group = groups_.find(bucket.reduction.group);
  TRIAX_REQUIRE(group, "there is no communicator of {} for a gradient", bucket.reduction.group);
  group->wait(group->all_reduce(bucket.gradients, bucket.gradients, Reduce::sum, stream, id), stream);
}

void GradientReductions::reduce_tied(Stream& stream, ActionId id) {
  if (!tied_.empty()) {
    Communicator* group = groups_.find(kPipelineAxis);
    group->wait(group->exchange(tied_, stream, id), stream);
  }
  for (const Parameter& parameter : state_.parameters().all())
    for (const TensorView& other : parameter.others) device_.add(parameter.gradient, other, stream);
}

} // namespace triax::executor
