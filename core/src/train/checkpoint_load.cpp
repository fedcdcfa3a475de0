// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_load.hpp"

#include <chrono>
#include <future>
#include <optional>
#include <string>

#include "base/caught_error.hpp"
#include "train/rank_setup.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

using checkpoint::TensorReader;
using executor::KeptTensor;

namespace {

constexpr std::chrono::milliseconds kAbortPoll{50};

/// A checkpoint may take longer to read than train.stall_timeout_s.
void note_progress() {
  if (RankActivity* const activity = RankActivity::current()) activity->make_progress();
}

} // namespace

CheckpointLoad::CheckpointLoad(const config::RunConfig& run, const Layout& layout, int number, Rank& rank,
                               std::span<const KeptTensor> kept)
    : run_(run), layout_(layout), number_(number), rank_(rank), kept_(kept) {}

checkpoint::Manifest CheckpointLoad::load(const std::filesystem::path& folder, bool weights_only) {
  TensorReader reader(folder);
  const AbortFlag& abort = rank_.device().abort_flag();
  std::atomic<bool> stop{false};
  std::future<std::vector<Error>> damage =
      std::async(std::launch::async, [&] { return verify(folder, weights_only, stop); });
  std::optional<Error> failure;
  try {
    for (const KeptTensor& tensor : kept_)
      if (!weights_only || tensor.name == executor::kMasterName) load(reader, tensor);
  } catch (...) {
    failure = caught_error();
  }
  for (std::uint64_t seen = 0; damage.wait_for(kAbortPoll) != std::future_status::ready; seen = compared_) {
    stop = abort.raised();
    if (compared_ != seen) note_progress();
  }
  const std::vector<Error> problems = damage.get(); // damage may be why loading failed
  if (!problems.empty()) throw Error(problems.front());
  if (failure) throw Error(*failure);
  abort.check(); // not all bytes were compared
  checkpoint::Manifest out = reader.manifest();
  if (weights_only) std::erase_if(out.training.plugins, [](const auto& state) { return state.first != "model"; });
  rank_.load_plugins(out.training.plugins);
  reset_loss_scale_on_new_precision(out);
  return out;
}

/// The files are distributed over the ranks.
std::vector<Error> CheckpointLoad::verify(const std::filesystem::path& folder, bool weights_only,
                                          const std::atomic<bool>& stop) {
  const auto gives_up = [&] {
    ++compared_;
    return stop.load();
  };
  return TensorReader(folder).verify(static_cast<std::size_t>(number_), static_cast<std::size_t>(layout_.world()),
                                     gives_up, weights_only ? executor::kMasterName : "");
}

void CheckpointLoad::load(TensorReader& reader, const KeptTensor& tensor) {
  const checkpoint::SavedTensor* saved = reader.find(tensor.parameter, tensor.name);
  if (!saved)
    throw Error(text("{} ({}) is not in the checkpoint", tensor.parameter, tensor.name), reader.folder().string(),
                "run triax check, which compares it with the run");
  if (!(saved->shape == tensor.spec->global) || saved->dtype != tensor.view.dtype())
    throw Error(text("{} is {}{} in the checkpoint, and {}{} in the model", name_of(*saved), name_of(saved->dtype),
                     to_text(saved->shape), name_of(tensor.view.dtype()), to_text(tensor.spec->global)),
                reader.folder().string(), "run triax check, which compares it with the run");
  Device& device = rank_.device();
  device.abort_flag().check();
  note_progress();
  const bool direct = device.kind() == DeviceKind::host;
  if (!direct) host_.resize(tensor.view.bytes());
  std::byte* const to = direct ? tensor.view.as<std::byte>() : host_.data();
  for (const executor::Box& box : executor::boxes_of(*tensor.spec, 0, tensor.view.elements()))
    reader.read(*saved, box.begin, box.size, to + static_cast<std::size_t>(box.offset) * bytes_of(saved->dtype));
  if (direct) return;
  device.upload(tensor.view, TensorView(host_.data(), tensor.view.dtype(), tensor.view.shape()), rank_.stream());
  device.wait(rank_.stream().record(), deadline_in(run_.train.stall_timeout_s));
}

/// A loss scale is valid only for the precision it was saved in.
void CheckpointLoad::reset_loss_scale_on_new_precision(checkpoint::Manifest& manifest) const {
  const auto found = manifest.config.find("train.precision");
  const auto here = run_.values.find("train.precision");
  if (found != manifest.config.end() && here != run_.values.end() && found->second == here->second) return;
  const std::optional<executor::LossScale> scale = loss_scale_of(run_);
  manifest.training.loss_scale = scale ? static_cast<double>(scale->initial) : 1;
  manifest.training.good_steps = 0;
  manifest.training.hysteresis = scale ? scale->rules.hysteresis : 1;
}

} // namespace triax::train
