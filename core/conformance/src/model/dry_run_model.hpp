// SPDX-License-Identifier: Apache-2.0
// Dry run of the passes of one rank: views without data, a device without memory, communicators that record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "created_model.hpp"
#include "triax/cheap_recompute.hpp"
#include "triax/recompute_steps.hpp"

namespace triax::conformance {

/// Its calls complete at once; nothing is transferred.
class RecordingCommunicator final : public Communicator {
 public:
  explicit RecordingCommunicator(const Group& group) : Communicator(group) { collectives_.reserve(kReserved); }

  const std::vector<Collective>& collectives() const { return collectives_; }
  void clear() { collectives_.clear(); }
  void progress() noexcept override {}
  void barrier(Deadline) override {}
  void abort(std::string_view) noexcept override {}

 protected:
  Work do_collective(const Collective& collective, const TensorView&, const TensorView&, Stream&,
                     ActionId action) override {
    collectives_.push_back(collective);
    count(payload_of(collective));
    return {{}, action};
  }
  Work do_exchange(std::span<const Transfer>, Stream&, ActionId action) override { return {{}, action}; }

 private:
  static constexpr std::size_t kReserved = 256;

  std::vector<Collective> collectives_;
};

class DryRunModel {
 public:
  /// `model` and `kernels` must outlive it.
  DryRunModel(const CreatedModel& model, KernelSet& kernels);

  /// Not `trains`: an evaluation, without dropout.
  void run(std::size_t layer, Pass pass, bool trains = true);
  /// CheapRecompute::recompute() of a layer.
  void recompute(CheapRecompute& cheap, std::size_t layer);
  /// RecomputeSteps::recompute_step() of a layer.
  void recompute_step(RecomputeSteps& offered, int step, std::size_t layer);
  /// The passes of every layer that its purpose has.
  void run_all();
  RecordingCommunicator& tensor() { return tensor_; }

 private:
  LayerCall call_of(bool trains);

  const CreatedModel& model_;
  KernelSet& kernels_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  RecordingCommunicator tensor_;
  Groups groups_;
  const TensorView samples_;
  const StepScalars scalars_;
  std::vector<LayerViews> views_;
};

/// "all_gather of 8 f32, all_reduce of 8 f32 (sum)", or "nothing".
std::string collectives_text(const std::vector<Collective>& collectives);

/// The collectives that a rank posts and rank 0 does not, as the failures of a check: empty if all post the same.
std::vector<std::string> collective_differences(const ModelSubject& subject, const ModelShape& shape);

} // namespace triax::conformance
