// SPDX-License-Identifier: Apache-2.0
// Counts and allocates a rank's memory.
#include "executor/memory.hpp"

#include <algorithm>
#include <string_view>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

std::unique_ptr<Memory> block(Device& device, const std::string& what, std::size_t bytes, MemoryKind kind,
                              Stream& stream) {
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

/// Each arena, with the kind of its memory and the row of a report that it belongs to.
struct ArenaPurpose {
  Arena RankMemory::*arena;
  MemoryKind kind;
  const char* row;
};
constexpr ArenaPurpose kPurposes[] = {
    {&RankMemory::weights, MemoryKind::device, "weights"},
    {&RankMemory::working, MemoryKind::device, "working weights"},
    {&RankMemory::gradients, MemoryKind::device, "gradients"},
    {&RankMemory::optimizer, MemoryKind::device, "optimizer state"},
    {&RankMemory::hosted_state, MemoryKind::pinned, "optimizer state"},
    {&RankMemory::offload, MemoryKind::device, "offload staging"},
    {&RankMemory::hosted_staging, MemoryKind::pinned, "offload staging"},
    {&RankMemory::activations, MemoryKind::device, "activations"},
    {&RankMemory::hosted_inputs, MemoryKind::pinned, "activations"},
    {&RankMemory::cache, MemoryKind::device, "cache"},
    {&RankMemory::batches, MemoryKind::device, "batches"},
    {&RankMemory::values, MemoryKind::device, "batches"},
    {&RankMemory::staging, MemoryKind::pinned, "batches"},
};

} // namespace

TensorView ReusedBlock::tensor(DType dtype, const Shape& shape) {
  const TensorView view(base_ ? base_ + used_ : nullptr, dtype, shape);
  used_ += Arena::aligned(view.bytes());
  peak_ = std::max(peak_, used_);
  return view;
}

RankMemory::RankMemory() = default;

std::size_t RankMemory::workspace() const {
  std::size_t bytes = transient.peak();
  const auto add = [&bytes](const auto& blocks) {
    for (const ReusedBlock& block : blocks) bytes += block.peak();
  };
  add(between);
  add(leaving);
  add(arriving);
  return bytes;
}

RankMemory RankMemory::allocated(Device& device, const RankMemory& counted, const ScratchBytes& scratch,
                                 Stream& stream) {
  RankMemory out;
  for (const ArenaPurpose& purpose : kPurposes) {
    const Arena& of = counted.*purpose.arena;
    out.*purpose.arena = Arena(of.name(), block(device, of.name(), of.used(), purpose.kind, stream));
  }

  out.workspace_ = block(device, "activations between layers", counted.workspace(), MemoryKind::device, stream);
  auto* base = static_cast<std::byte*>(out.workspace_->data());
  const auto place = [&base](ReusedBlock& to, const ReusedBlock& of) {
    to = ReusedBlock(base);
    base += of.peak();
  };
  const auto place_all = [&place](auto& to, const auto& of) {
    for (std::size_t at = 0; at < of.size(); ++at) place(to[at], of[at]);
  };
  place(out.transient, counted.transient);
  place_all(out.between, counted.between);
  place_all(out.leaving, counted.leaving);
  place_all(out.arriving, counted.arriving);

  out.scratch_ = block(device, "scratch", scratch.on_device(), MemoryKind::device, stream);
  out.host_scratch_ = block(device, "scratch on the host", scratch.on_host(), MemoryKind::pinned, stream);
  auto* const temporary = static_cast<std::byte*>(out.scratch_->data());
  auto* const hosted = static_cast<std::byte*>(out.host_scratch_->data());
  out.scratch = {temporary, scratch.operations};
  out.host_scratch = {hosted, scratch.hosted};
  out.optimizer_scratch = {scratch.host_updates ? hosted + (scratch.on_host() - scratch.optimizer)
                                                : temporary + (scratch.on_device() - scratch.optimizer),
                           scratch.optimizer};
  return out;
}

std::vector<RankMemory::Row> RankMemory::rows(const ScratchBytes& scratch_bytes) const {
  std::vector<Row> out;
  for (const ArenaPurpose& purpose : kPurposes) {
    if (purpose.arena == &RankMemory::cache && cache.used() == 0) continue;
    if (purpose.arena == &RankMemory::hosted_inputs && !hosts_inputs) continue;
    if (purpose.arena == &RankMemory::offload && !offloads) continue;
    if (purpose.arena == &RankMemory::hosted_state && !hosts_state) continue;
    if (purpose.arena == &RankMemory::hosted_staging && !hosts_state) continue;
    if (out.empty() || std::string_view(out.back().what) != purpose.row || out.back().kind != purpose.kind)
      out.push_back({purpose.row, 0, purpose.kind});
    out.back().bytes += (this->*purpose.arena).used();
    if (purpose.arena == &RankMemory::activations) out.back().bytes += workspace();
  }
  out.push_back({"scratch", scratch_bytes.on_device()});
  if (hosts_state) out.push_back({"scratch", scratch_bytes.on_host(), MemoryKind::pinned});
  return out;
}

std::vector<std::span<std::byte>> RankMemory::blocks() const {
  std::vector<std::span<std::byte>> out;
  const auto add = [&out](void* data, std::size_t bytes) {
    if (data && bytes > 0) out.emplace_back(static_cast<std::byte*>(data), bytes);
  };
  for (const ArenaPurpose& purpose : kPurposes)
    if (purpose.kind == MemoryKind::device) add((this->*purpose.arena).data(), (this->*purpose.arena).capacity());
  for (const Memory* memory : {workspace_.get(), scratch_.get()})
    if (memory) add(memory->data(), memory->bytes());
  return out;
}

} // namespace triax::executor
