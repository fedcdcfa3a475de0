// SPDX-License-Identifier: Apache-2.0
// Counts and allocates a rank's memory.
#include "executor/memory.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

std::unique_ptr<Memory> block(Device& device, const char* what, std::size_t bytes, MemoryKind kind, Stream& stream) {
  std::unique_ptr<Memory> memory;
  try {
    memory = device.allocate(bytes, kind);
  } catch (const Error& error) {
    throw Error(text("{} do not fit into memory: {}", what, error.message()), error.where(), error.hint());
  }
  if (kind == MemoryKind::device && bytes > 0)
    device.fill({memory->data(), DType::u8, {static_cast<std::int64_t>(bytes)}}, 0, stream);
  return memory;
}

} // namespace

TensorView ReusedBlock::tensor(DType dtype, const Shape& shape) {
  const TensorView view(base_ ? base_ + used_ : nullptr, dtype, shape);
  used_ += Arena::aligned(view.bytes());
  peak_ = std::max(peak_, used_);
  return view;
}

RankMemory::RankMemory() = default;

std::size_t RankMemory::workspace() const {
  return transient.peak() + between[0].peak() + between[1].peak();
}

RankMemory RankMemory::allocated(Device& device, const RankMemory& counted, const ScratchBytes& scratch,
                                 Stream& stream) {
  RankMemory out;
  const auto arena = [&](const char* what, const Arena& of, MemoryKind kind) {
    return Arena(what, block(device, what, of.used(), kind, stream));
  };
  out.weights = arena("weights", counted.weights, MemoryKind::device);
  out.working = arena("working weights", counted.working, MemoryKind::device);
  out.gradients = arena("gradients", counted.gradients, MemoryKind::device);
  out.optimizer = arena("optimizer state", counted.optimizer, MemoryKind::device);
  out.activations = arena("activations", counted.activations, MemoryKind::device);
  out.batches = arena("batches", counted.batches, MemoryKind::device);
  out.values = arena("step values", counted.values, MemoryKind::device);
  out.staging = arena("staging", counted.staging, MemoryKind::pinned);

  out.workspace_ = block(device, "activations between layers", counted.workspace(), MemoryKind::device, stream);
  auto* base = static_cast<std::byte*>(out.workspace_->data());
  out.transient = ReusedBlock(base);
  out.between[0] = ReusedBlock(base + counted.transient.peak());
  out.between[1] = ReusedBlock(base + counted.transient.peak() + counted.between[0].peak());

  out.scratch_ = block(device, "scratch", scratch.total(), MemoryKind::device, stream);
  auto* temporary = static_cast<std::byte*>(out.scratch_->data());
  out.scratch = {temporary, scratch.operations};
  out.optimizer_scratch = {temporary + (scratch.total() - scratch.optimizer), scratch.optimizer};
  return out;
}

std::vector<RankMemory::Row> RankMemory::rows(const ScratchBytes& scratch_bytes) const {
  return {{"weights", weights.used()},
          {"working weights", working.used()},
          {"gradients", gradients.used()},
          {"optimizer state", optimizer.used()},
          {"activations", activations.used() + workspace()},
          {"batches", batches.used() + values.used() + staging.used()},
          {"scratch", scratch_bytes.total()}};
}

std::vector<std::span<std::byte>> RankMemory::blocks() const {
  std::vector<std::span<std::byte>> out;
  const auto add = [&out](void* data, std::size_t bytes) {
    if (data && bytes > 0) out.emplace_back(static_cast<std::byte*>(data), bytes);
  };
  for (const Arena* arena : {&weights, &working, &gradients, &optimizer, &activations, &batches, &values})
    add(arena->data(), arena->capacity());
  for (const Memory* memory : {workspace_.get(), scratch_.get()})
    if (memory) add(memory->data(), memory->bytes());
  return out;
}

} // namespace triax::executor
