// SPDX-License-Identifier: Apache-2.0
// An optimizer with the tensors that the engine keeps for it, on the host. The tensors are named, so that steps of
// whole parameters and of parts can be compared.
//
// Threads: one; of several ranks, each has its own. Ownership: a Stepper owns all its memory, its optimizer and its
// kernel set; it borrows the layout, device and communicators of a rank. Blocking: as step() does. Errors: those of the
// plugins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fixed_parameters.hpp"
#include "guarded_memory.hpp"
#include "named_tensors.hpp"
#include "triax/conformance/optimizer_checks.hpp"

namespace triax::conformance {

struct StepTypes {
  DType master = DType::f32;
  std::optional<DType> working; // empty: layers read the master weights
};
std::string to_text(const StepTypes& types); // "f32 with working weights in bf16"

/// The first kernel set of the subject that supports the types; null if there is none.
Object<KernelSet> kernels_for(const OptimizerSubject& subject, const StepTypes& types);

/// Creates an object of the optimizer under test. The layout must outlive it.
Object<Optimizer> make_optimizer(const OptimizerSubject& subject, const Layout& layout, int rank);
/// The same for one rank.
Object<Optimizer> make_optimizer(const OptimizerSubject& subject);

/// A rank of several, whose objects a Stepper borrows.
struct SteppedRank {
  const Layout& layout;
  int rank = 0;
  Device* device = nullptr;       // null: its own
  const Groups* groups = nullptr; // null: none, for dry runs
};

/// The input of a step.
struct StepInput {
  float lr = 0.125f, clip = 0.5f;
  double weight_decay = 0.25;
  double gradient = 1; // factor of the fixed gradients
  bool skip = false, nan_gradient = false;
};

class Stepper {
 public:
  Stepper(const OptimizerSubject& subject, const StepTypes& types, const std::vector<Part>& parts = whole_parameters());
  Stepper(const OptimizerSubject& subject, const StepTypes& types, const std::vector<Part>& parts,
          const SteppedRank& rank);

  /// Steps all shards, in one call.
  void step(const StepInput& input = {});
  void steps(int count, const StepInput& input = {});
  /// The parts of a step: sets scalars and gradients, and then steps some shards.
  void begin_step(const StepInput& input);
  void call(std::span<const ParameterShard> shards);

  /// Continues with a new optimizer, which gets the tensors and the saved state.
  void replace_optimizer();

  std::span<const ParameterShard> shards() const { return shards_; }
  std::span<const Part> parts() const { return parts_; }
  Optimizer& optimizer() { return *optimizer_; }
  KernelSet& kernels() { return *kernels_; }
  Device& device() { return device_; }
  Stream& stream() { return *stream_; }
  StepScalars& scalars() { return *scalars_; }
  /// A new object of the optimizer, as the Stepper's was created.
  Object<Optimizer> another_optimizer() const { return make_optimizer(subject_, rank_.layout, rank_.rank); }
  StepArgs arguments(Stream& stream, const Groups& groups) const;
  /// Master, working and state tensors, parts at their elements of the whole.
  Tensors tensors() const;
  /// Adds the tensors of another shard of the same parameters.
  void add_to(Tensors& whole) const;
  /// The tensors of one shard, by its number.
  Tensors tensors_of(std::size_t shard) const;
  /// Their views, which have the elements of parts()[shard].
  std::vector<std::pair<std::string, TensorView>> views_of(std::size_t shard) const;
  void fill_working(double value);
  void put_gradients(double factor);
  void fill_gradients(double value);
  void fill_scratch(std::byte value);
  /// Names of the tensors whose guards were overwritten.
  std::vector<std::string> overwritten() const;
  bool is_scratch_intact() const { return scratch_->is_intact(); }

 private:
  TensorView tensor(const std::string& name, DType dtype, std::int64_t elements);
  void add_shard(const Part& part, const std::vector<std::string>& state);
  void add_tensors(Tensors& whole, std::size_t shard) const;

  const OptimizerSubject& subject_;
  const StepTypes types_;
  const std::vector<Part> parts_; // shards refer to their specs
  const SteppedRank rank_;
  const std::unique_ptr<Device> own_device_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
  Object<KernelSet> kernels_;
  Object<Optimizer> optimizer_;
  std::vector<std::string> state_names_;
  std::vector<std::pair<std::string, std::unique_ptr<GuardedMemory>>> memory_;
  std::vector<std::vector<TensorView>> states_;
  std::vector<ParameterShard> shards_;
  std::unique_ptr<StepScalars> scalars_;
  std::unique_ptr<GuardedMemory> scratch_, operation_scratch_;
  double weight_decay_ = 0;
};

} // namespace triax::conformance
