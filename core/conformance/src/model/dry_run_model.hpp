// SPDX-License-Identifier: Apache-2.0
// Dry run of the passes of one rank: views without data, a device without memory, communicators that record.
#pragma once

#include <memory>
#include <vector>

#include "created_model.hpp"

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
  /// The passes of every layer that its purpose has.
  void run_all();
  RecordingCommunicator& tensor() { return tensor_; }

 private:
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

/// The collectives that a rank posts and rank 0 does not, as the failures of a check: empty if all post the same.
std::vector<std::string> collective_differences(const ModelSubject& subject, const ModelShape& shape);

} // namespace triax::conformance
