// SPDX-License-Identifier: Apache-2.0
#include "train/model_descriptions.hpp"

namespace triax::train {

namespace {

constexpr std::int64_t kMaxDescribedLayers = 1 << 16; // of all tensor ranks; each has some kB

} // namespace

std::shared_ptr<const executor::ModelDescription> ModelDescriptions::of(int rank, const config::RunConfig& run,
                                                                        const Layout& layout,
                                                                        const RankPlugins& plugins,
                                                                        const Programs& programs) {
  const int tensor = layout.coordinate(rank, kTensorAxis);
  if (const auto found = by_tensor_rank_.find(tensor); found != by_tensor_rank_.end()) return found->second;
  const auto described = static_cast<std::int64_t>(by_tensor_rank_.size()) + 1;
  if (described * plugins.model().count() > kMaxDescribedLayers) by_tensor_rank_.clear();
  auto out = describe_model(run, layout, rank, plugins, programs);
  if (!first_) first_ = out;
  first_->check_ties(*out);
  return by_tensor_rank_[tensor] = std::move(out);
}

} // namespace triax::train
