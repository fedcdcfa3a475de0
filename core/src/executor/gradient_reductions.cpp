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
      const TensorView& view = parameter.exchanged[at];
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
    for (const Bucket& bucket : state_.parameters().buckets_of(number)) reduce(bucket, stream, id);
  });
}

void GradientReductions::reduce(const Bucket& bucket, Stream& stream, ActionId id) {
  if (bucket.reduction.axes.empty()) return;
  Communicator* group = groups_.find(bucket.reduction.group);
  TRIAX_REQUIRE(group, "there is no communicator of {} for a gradient", bucket.reduction.group);
  const TensorView& all = bucket.gradients;
  group->wait(bucket.reduced.empty() ? group->all_reduce(all, all, Reduce::sum, stream, id)
                                     : group->reduce_scatter(all, bucket.reduced, Reduce::sum, stream, id),
              stream);
}

void GradientReductions::reduce_tied(Stream& stream, ActionId id) {
  if (!tied_.empty()) {
    Communicator* group = groups_.find(kPipelineAxis);
    TRIAX_REQUIRE(group, "there is no communicator of {} for a tied gradient", kPipelineAxis);
    group->wait(group->exchange(tied_, stream, id), stream);
  }
  for (const Parameter& parameter : state_.parameters().all())
    for (std::size_t at = 1; at < parameter.exchanged.size(); ++at)
      device_.add(parameter.exchanged.front(), parameter.exchanged[at], stream);
}

} // namespace triax::executor
