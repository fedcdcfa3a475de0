// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_load.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "train/rank_setup.hpp"
#include "train/verified_load.hpp"

namespace triax::train {

using checkpoint::TensorReader;
using executor::KeptTensor;

CheckpointLoad::CheckpointLoad(const config::RunConfig& run, const Layout& layout, int number, Rank& rank,
                               std::span<const KeptTensor> kept)
    : run_(run), layout_(layout), number_(number), rank_(rank), kept_(kept) {}

checkpoint::Manifest CheckpointLoad::load(const std::filesystem::path& folder, bool weights_only) {
  rank_.finish(); // offloaded state may still be written
  TensorReader reader(folder);
  const VerifiedShare share{static_cast<std::size_t>(number_), static_cast<std::size_t>(layout_.world_size()),
                            weights_only ? executor::kMasterName : ""};
  load_verified(reader, share, rank_.device().abort_flag(), [&] {
    for (const KeptTensor& tensor : kept_)
      if (!weights_only || tensor.name == executor::kMasterName) load(reader, tensor);
  });
  checkpoint::Manifest out = reader.manifest();
  if (weights_only) std::erase_if(out.training.plugins, [](const auto& state) { return state.first != "model"; });
  rank_.load_plugins(out.training.plugins);
  set_loss_scale(out);
  return out;
}

void CheckpointLoad::load(TensorReader& reader, const KeptTensor& tensor) {
  const checkpoint::SavedTensor* saved = reader.find(tensor.parameter, tensor.name);
  const bool is_read = tensor.name == executor::kReadWeightsName; // else layers read the master weights, rounded
  if (is_read && (!saved || saved->dtype != tensor.view.dtype())) return;
  if (!saved)
    throw Error(text("{} ({}) is not in the checkpoint", tensor.parameter, tensor.name), reader.folder().string(),
                "run triax check, which compares it with the run");
  if (!(saved->shape == tensor.spec->global) || saved->dtype != tensor.view.dtype())
    throw Error(text("{} is {}{} in the checkpoint, but {}{} in the model", name_of(*saved), name_of(saved->dtype),
                     to_text(saved->shape), name_of(tensor.view.dtype()), to_text(tensor.spec->global)),
                reader.folder().string(), "run triax check, which compares it with the run");
  Device& device = rank_.device();
  device.abort_flag().check();
  note_load_progress();
  if (tensor.held.count == 0) return;
  if (tensor.offloaded) return load_offloaded(reader, *saved, tensor);
  const bool direct = device.kind() == DeviceKind::host;
  if (!direct) host_.resize(tensor.view.bytes());
  std::byte* const to = direct ? tensor.view.as<std::byte>() : host_.data();
  for (const executor::Box& box : executor::boxes_of(*tensor.spec, tensor.held.first, tensor.held.count))
    reader.read(*saved, box.begin, box.size, to + static_cast<std::size_t>(box.offset) * bytes_of(saved->dtype));
  if (direct) return;
  device.upload(tensor.view, TensorView(host_.data(), tensor.view.dtype(), tensor.view.shape()), rank_.stream());
  device.wait(rank_.stream().record(), deadline_in(run_.train.stall_timeout_s));
}

/// In parts, because the memory of a rank that offloads may be smaller than a tensor.
void CheckpointLoad::load_offloaded(TensorReader& reader, const checkpoint::SavedTensor& saved,
                                    const KeptTensor& tensor) {
  constexpr std::int64_t kElements = std::int64_t{1} << 20;
  const std::size_t width = bytes_of(saved.dtype);
  host_.resize(static_cast<std::size_t>(std::min(kElements, tensor.held.count)) * width);
  for (std::int64_t first = 0; first < tensor.held.count; first += kElements) {
    rank_.device().abort_flag().check();
    note_load_progress();
    const std::int64_t count = std::min(kElements, tensor.held.count - first);
    for (const executor::Box& box : executor::boxes_of(*tensor.spec, tensor.held.first + first, count))
      reader.read(saved, box.begin, box.size, host_.data() + static_cast<std::size_t>(box.offset) * width);
    tensor.offloaded.write(static_cast<std::uint64_t>(first) * width,
                           std::span(host_).first(static_cast<std::size_t>(count) * width));
  }
}

/// A loss scale is valid only for the precision it was saved in, and if this run's keys allow it.
void CheckpointLoad::set_loss_scale(checkpoint::Manifest& manifest) const {
  const std::optional<executor::LossScale> scale = loss_scale_of(run_);
  checkpoint::TrainingState& saved = manifest.training;
  const auto found = manifest.config.find("train.precision");
  const auto here = run_.values.find("train.precision");
  const bool is_of_precision =
      found != manifest.config.end() && here != run_.values.end() && found->second == here->second;
  const bool is_constant = run_.train.loss_scale && run_.train.loss_scale->constant;
  if (is_of_precision && !is_constant) {
    if (scale) saved.loss_scale = std::max(saved.loss_scale, static_cast<double>(scale->rules.min));
    return;
  }
  saved.loss_scale = scale ? static_cast<double>(scale->initial) : 1;
  saved.good_steps = 0;
  saved.hysteresis = scale ? scale->rules.hysteresis : 1;
}

} // namespace triax::train
