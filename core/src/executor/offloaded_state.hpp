// SPDX-License-Identifier: Apache-2.0
// The optimizer's state of a rank outside of the memory of its device: moments, and master weights that are separate
// from the weights that layers read. A step updates it block by block: in buffers, if it is in a storage (Rajbhandari
// et al., "ZeRO-Infinity", SC'21), or where it is in the memory of the host (Ren et al., "ZeRO-Offload", USENIX
// ATC'21).
//
// Threads: the rank's main thread; OffloadedTensor::read() any, while no step runs, after finish(). Ownership: owns the
// storage, after open(); borrows the parameters, and what use_host() gives. Blocking: acquire(), finish(),
// refresh_working() wait; OffloadedTensor reads and writes. Errors: those of the storage, and of the device.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/delayed_update.hpp"
#include "executor/host_update.hpp"
#include "executor/memory.hpp"
#include "executor/offload_layout.hpp"
#include "executor/offload_stream.hpp"
#include "executor/parameters.hpp"

namespace triax::executor {

/// none: the state is in the memory of the device; storage: in a StateStorage; host: in the memory of the host, which
/// updates it for a device of another kind.
enum class OffloadTarget : std::uint8_t { none, storage, host };

struct OffloadRequest {
  OffloadTarget target = OffloadTarget::none;
  std::size_t buffer_bytes = 0; // of state in a block, if parameters may be divided
  DType gradients = DType::f32; // with `host`: the type in which gradients are sent to it
  bool delayed = false;         // with `host`: updates may be one step late, see DelayedUpdate
};

/// The shards of one call of Optimizer::step().
struct OptimizerCall {
  std::vector<ParameterShard> shards;
  std::optional<std::size_t> block; // block of offloaded state that must be acquired before the call
};

class OffloadedState {
 public:
  struct StageParameters {
    int stage = 0, first_layer = 0, end_layer = 0;
  };
  /// `stages`: in the order in which a step updates them. `states`: tensors of the optimizer for each parameter.
  OffloadedState(const Parameters& parameters, std::span<const StageParameters> stages, const MemoryTypes& types,
                 std::size_t states, const OffloadRequest& request, bool divides);

  /// Whether the memory of the host has the state.
  bool is_on_host() const { return request_.target == OffloadTarget::host; }
  /// Bytes of the storage; 0 if the state is in memory.
  std::uint64_t storage_bytes() const { return is_on_host() ? 0 : layout_.bytes(); }
  bool has_master() const { return has_master_; }
  bool may_delay() const { return is_on_host() && request_.delayed; }
  /// The type of the weights that layers read.
  DType working() const { return types_.compute; }

  /// Buffers, or all of the state, as zeros; then makes the calls. After the memory of the parameters.
  void assign_memory(RankMemory& memory);
  /// The calls of a stage, in order. Views are valid until the memory is assigned anew.
  std::vector<OptimizerCall> calls(int stage) const;
  const OptimizerCall& call(std::size_t block) const { return calls_[block]; }

  /// `storage` holds zeros. Before start(), OffloadedTensor may write to it.
  void open(std::unique_ptr<StateStorage> storage) { storage_ = std::move(storage); }
  /// The same for state in the memory of the host: what updates it.
  void use_host(const HostKernels& host) { host_.emplace(host); }
  /// Once the memory is assigned. `compute`: the stream that writes gradients and reads weights.
  void start(Device& device, Stream& compute);
  /// See OffloadStream and HostUpdate. acquire() and release() in the order of calls(), over all stages; not of state
  /// that may_delay().
  /// @{
  void acquire(std::size_t block, Device& device, Deadline deadline);
  void release(std::size_t block);
  void finish(Device& device, Deadline deadline);
  /// @}
  /// After start(); null unless may_delay().
  DelayedUpdate* delayed() const { return delayed_.get(); }
  /// The kernel set that computes the calls; null: that of the rank.
  const HostKernels* host() const { return host_ ? &*host_ : nullptr; }
  /// Between device and host: in a step, and in all steps since start().
  /// @{
  HostTraffic step_traffic() const;
  HostTraffic traffic() const;
  /// @}
  /// Makes the working weights that the rank updates from the master weights. If OffloadedTensor::write() has written
  /// delayed weights since the last call, layers read these, and the others are a pending update.
  void refresh_working(Device& device, Stream& stream, Deadline deadline);

 private:
  friend class OffloadedTensor;
  void assign_buffers(RankMemory& memory);
  void assign_on_host(RankMemory& memory, std::span<const ParameterShard> shards);
  void make_calls(std::span<const ParameterShard> shards);
  StagedTypes staged_types() const { return {types_.master, types_.compute, request_.gradients}; }
  std::byte* memory_of(std::size_t block) const;
  ParameterShard shard_of(const ParameterShard& whole, std::size_t piece);

  const Parameters& parameters_;
  const MemoryTypes types_;
  const std::size_t states_;
  const OffloadRequest request_;
  const bool has_master_;
  OffloadLayout layout_;
  std::vector<std::vector<std::size_t>> pieces_of_; // by parameter
  std::array<TensorView, OffloadStream::kMaxBuffers> buffers_{};
  std::size_t used_buffers_ = 0;
  TensorView hosted_;                                // u8: all blocks, in the memory of the host
  std::vector<StagedPiece> staged_;                  // of state in the memory of the host
  std::vector<std::vector<TensorView>> state_views_; // by piece
  std::vector<OptimizerCall> calls_;                 // by block
  std::unique_ptr<StateStorage> storage_;
  std::optional<HostKernels> host_;
  std::unique_ptr<HostUpdate> update_;
  bool has_read_weights_ = false; // OffloadedTensor::write() has written delayed weights
  // Destroyed first: their threads use what is above.
  std::unique_ptr<DelayedUpdate> delayed_;
  std::optional<OffloadStream> stream_;
};

/// A tensor of a parameter in the storage: the elements that the rank updates.
class OffloadedTensor {
 public:
  /// The weights that layers read, while an update may be pending. They are valid after OffloadedState::finish().
  static constexpr std::size_t kReadWeights = static_cast<std::size_t>(-1);

  OffloadedTensor() = default;
  /// `tensor`: 0 for the master weights, if they are offloaded; then the optimizer's state; or kReadWeights.
  OffloadedTensor(OffloadedState& state, std::size_t parameter, std::size_t tensor)
      : state_(&state), parameter_(parameter), tensor_(tensor) {}
  /// Whether there is one. Else the tensor is in memory.
  explicit operator bool() const { return state_ != nullptr; }

  /// Bytes from `begin` on.
  /// @{
  void read(std::uint64_t begin, std::span<std::byte> to) const;
  void write(std::uint64_t begin, std::span<const std::byte> from) const;
  /// @}

 private:
  bool is_read_weights() const { return tensor_ == kReadWeights; }
  template <class Bytes, class Move>
  void for_each_part(std::uint64_t begin, Bytes bytes, Move move) const;
  /// Where the tensor's bytes of a piece begin in the storage.
  std::uint64_t in_storage(std::size_t piece) const;
  std::byte* read_weights(std::size_t piece) const;

  OffloadedState* state_ = nullptr;
  std::size_t parameter_ = 0, tensor_ = 0;
};

} // namespace triax::executor
