// SPDX-License-Identifier: Apache-2.0
#include "executor/offloaded_state.hpp"

#include <algorithm>
#include <utility>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

/// Elements that the rank updates.
std::int64_t updated_elements(const Parameter& parameter) {
  return parameter.sharded ? parameter.owned.count : stored_elements(*parameter.spec);
}

/// State in the memory of a rank as a storage.
class HostedStorage final : public StateStorage {
 public:
  explicit HostedStorage(std::span<std::byte> bytes) : bytes_(bytes) {}
  void read(std::uint64_t offset, std::span<std::byte> to) override {
    std::ranges::copy(bytes_.subspan(static_cast<std::size_t>(offset), to.size()), to.begin());
  }
  void write(std::uint64_t offset, std::span<const std::byte> from) override {
    std::ranges::copy(from, bytes_.subspan(static_cast<std::size_t>(offset), from.size()).begin());
  }

 private:
  const std::span<std::byte> bytes_;
};

TensorView part_of(const TensorView& view, const OffloadedPiece& piece) {
  return view.empty() ? view : view.slice(0, piece.first, piece.first + piece.count);
}

} // namespace

OffloadedState::OffloadedState(const Parameters& parameters, std::span<const StageParameters> stages,
                               const MemoryTypes& types, std::size_t states, const OffloadRequest& request,
                               bool divides)
    : parameters_(parameters),
      types_(types),
      states_(states),
      request_(request),
      has_master_(parameters.separate_working()),
      layout_({.tensors = states + (has_master_ ? 1 : 0),
               .element_bytes = bytes_of(types.master),
               .buffer_bytes = request.buffer_bytes,
               .divides = divides}) {
  const std::vector<Parameter>& all = parameters.all();
  for (const StageParameters& of : stages) {
    std::vector<OffloadLayout::Updated> updated;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].layer >= of.first_layer && all[i].layer < of.end_layer)
        updated.push_back({i, updated_elements(all[i])});
    layout_.add_stage(of.stage, updated);
  }
  pieces_of_.resize(all.size());
  for (std::size_t i = 0; i < layout_.pieces().size(); ++i) pieces_of_[layout_.pieces()[i].parameter].push_back(i);
  used_buffers_ = std::min(layout_.blocks().size(), OffloadStream::kMaxBuffers);
}

void OffloadedState::assign_memory(RankMemory& memory) {
  const std::vector<ParameterShard> whole = parameters_.shards(0, parameters_.layers());
  TRIAX_REQUIRE(whole.size() == parameters_.all().size(), "{} shards of {} parameters", whole.size(),
                parameters_.all().size());
  if (is_on_host()) {
    assign_on_host(memory, whole);
  } else {
    assign_buffers(memory);
  }
  make_calls(whole);
}

void OffloadedState::assign_buffers(RankMemory& memory) {
  std::array<std::size_t, OffloadStream::kMaxBuffers> largest{};
  for (std::size_t i = 0; i < layout_.blocks().size(); ++i)
    largest[i % used_buffers_] = std::max(largest[i % used_buffers_], layout_.blocks()[i].bytes);
  for (std::size_t i = 0; i < used_buffers_; ++i)
    buffers_[i] = memory.offload.tensor(DType::u8, {static_cast<std::int64_t>(largest[i])});
  memory.offloads = true;
}

void OffloadedState::assign_on_host(RankMemory& memory, std::span<const ParameterShard> shards) {
  memory.hosts_state = true;
  memory.offloads = staged_types().rounds();
  hosted_ = memory.hosted_state.tensor(DType::u8, {static_cast<std::int64_t>(layout_.bytes())});
  staged_ = request_.delayed ? stage_all_pieces(layout_, staged_types(), shards, memory)
                             : stage_pieces(layout_, staged_types(), shards, memory);
  if (!hosted_.data()) return;
  const std::span bytes(hosted_.as<std::byte>(), hosted_.bytes());
  std::ranges::fill(bytes, std::byte{0});
  storage_ = std::make_unique<HostedStorage>(bytes);
}

/// Where a block is while it is updated; null in a dry run.
std::byte* OffloadedState::memory_of(std::size_t block) const {
  const TensorView& from = is_on_host() ? hosted_ : buffers_[block % used_buffers_];
  if (!from.data()) return nullptr;
  return from.as<std::byte>() + (is_on_host() ? layout_.blocks()[block].offset : 0);
}

void OffloadedState::make_calls(std::span<const ParameterShard> shards) {
  state_views_.assign(layout_.pieces().size(), {});
  calls_.clear();
  for (std::size_t number = 0; number < layout_.blocks().size(); ++number) {
    const OffloadBlock& block = layout_.blocks()[number];
    std::byte* const memory = memory_of(number);
    OptimizerCall& call = calls_.emplace_back(OptimizerCall{{}, number});
    for (std::size_t i = block.first; i < block.end; ++i) {
      const OffloadedPiece& piece = layout_.pieces()[i];
      std::byte* next = memory ? memory + piece.offset : nullptr;
      std::vector<TensorView> tensors;
      for (std::size_t tensor = 0; tensor < states_ + (has_master_ ? 1 : 0); ++tensor) {
        tensors.emplace_back(next, types_.master, Shape{piece.count});
        if (next) next += piece.stride;
      }
      ParameterShard shard = shard_of(shards[piece.parameter], i);
      if (has_master_) {
        shard.master = tensors.front();
        tensors.erase(tensors.begin());
      }
      if (is_on_host()) {
        shard.gradient = staged_[i].received;
        shard.working = staged_[i].updated;
      }
      state_views_[i] = std::move(tensors);
      shard.state = state_views_[i];
      call.shards.push_back(std::move(shard));
    }
  }
}

/// The owned elements that are in the piece.
ParameterShard OffloadedState::shard_of(const ParameterShard& whole, std::size_t number) {
  const OffloadedPiece& piece = layout_.pieces()[number];
  ParameterShard out = whole;
  out.first += piece.first;
  out.master = part_of(whole.master, piece);
  out.gradient = part_of(whole.gradient, piece);
  out.working = part_of(whole.working, piece);
  const std::int64_t end = out.first + piece.count;
  const std::int64_t from = std::clamp(whole.owned_first, out.first, end);
  out.owned_elements = std::clamp(whole.owned_first + whole.owned_elements, from, end) - from;
  out.owned_first = from;
  return out;
}

std::vector<OptimizerCall> OffloadedState::calls(int stage) const {
  std::vector<OptimizerCall> out;
  for (std::size_t i = 0; i < calls_.size(); ++i)
    if (layout_.blocks()[i].stage == stage) out.push_back(calls_[i]);
  return out;
}

void OffloadedState::start(Device& device, Stream& compute) {
  if (is_on_host()) {
    TRIAX_REQUIRE(host_, "state in the memory of the host, and no kernel set that updates it");
    if (request_.delayed) {
      delayed_ = std::make_unique<DelayedUpdate>(device, compute, *host_, layout_.blocks(), staged_);
    } else {
      update_ = std::make_unique<HostUpdate>(device, compute, *host_, layout_.blocks(), staged_);
    }
    return;
  }
  std::vector<std::span<std::byte>> buffers;
  buffers.reserve(used_buffers_);
  for (std::size_t i = 0; i < used_buffers_; ++i)
    buffers.emplace_back(buffers_[i].as<std::byte>(), buffers_[i].bytes());
  if (!buffers.empty()) stream_.emplace(*storage_, layout_.blocks(), buffers);
}

void OffloadedState::acquire(std::size_t block, Device& device, Deadline deadline) {
  if (update_) {
    update_->acquire(block, deadline);
  } else {
    stream_->acquire(block, device, deadline);
  }
}

void OffloadedState::release(std::size_t block) {
  if (update_) {
    update_->release(block);
  } else {
    stream_->release(block, true);
  }
}

void OffloadedState::finish(Device& device, Deadline deadline) {
  if (stream_) stream_->finish(device, deadline);
  if (delayed_) delayed_->finish();
}

HostTraffic OffloadedState::traffic() const {
  if (delayed_) return delayed_->traffic();
  return update_ ? update_->traffic() : HostTraffic{};
}

HostTraffic OffloadedState::step_traffic() const {
  HostTraffic out;
  for (const StagedPiece& piece : staged_) {
    out.to_host += piece.sent.bytes();
    out.to_device += piece.updated.bytes();
  }
  return out;
}

void OffloadedState::refresh_working(Device& device, Stream& stream, Deadline deadline) {
  if (!has_master_) return;
  for (std::size_t block = 0; block < calls_.size(); ++block) {
    if (delayed_) {
      delayed_->refresh(block, calls_[block].shards, deadline);
      continue;
    }
    if (update_) {
      update_->refresh(block, calls_[block].shards, deadline);
      continue;
    }
    stream_->acquire(block, device, deadline);
    for (const ParameterShard& shard : calls_[block].shards)
      if (shard.master.elements() > 0) device.convert(shard.working, shard.master, stream);
    device.wait(stream.record(), deadline);
    stream_->release(block, false);
  }
  if (std::exchange(has_read_weights_, false)) delayed_->restore(deadline);
}

std::uint64_t OffloadedTensor::in_storage(std::size_t piece) const {
  const OffloadLayout& layout = state_->layout_;
  const auto block = std::ranges::upper_bound(layout.blocks(), piece, {}, &OffloadBlock::first) - 1;
  const OffloadedPiece& of = layout.pieces()[piece];
  return block->offset + of.offset + tensor_ * of.stride;
}

std::byte* OffloadedTensor::read_weights(std::size_t piece) const {
  return state_->delayed_->read_weights(piece).as<std::byte>();
}

template <class Bytes, class Move>
void OffloadedTensor::for_each_part(std::uint64_t begin, Bytes bytes, Move move) const {
  const OffloadLayout& layout = state_->layout_;
  const std::uint64_t width = bytes_of(is_read_weights() ? state_->types_.compute : state_->types_.master),
                      end = begin + bytes.size();
  std::uint64_t moved = 0;
  for (const std::size_t number : state_->pieces_of_[parameter_]) {
    const OffloadedPiece& piece = layout.pieces()[number];
    const std::uint64_t first = static_cast<std::uint64_t>(piece.first) * width,
                        last = first + static_cast<std::uint64_t>(piece.count) * width;
    const std::uint64_t from = std::max(begin, first), to = std::min(end, last);
    if (from >= to) continue;
    move(number, from - first,
         bytes.subspan(static_cast<std::size_t>(from - begin), static_cast<std::size_t>(to - from)));
    moved += to - from;
  }
  TRIAX_REQUIRE(moved == bytes.size(), "bytes [{}, {}) are outside of an offloaded tensor", begin, end);
}

void OffloadedTensor::read(std::uint64_t begin, std::span<std::byte> to) const {
  for_each_part(begin, to, [this](std::size_t piece, std::uint64_t at, std::span<std::byte> part) {
    if (is_read_weights()) {
      std::copy_n(read_weights(piece) + at, part.size(), part.begin());
    } else {
      state_->storage_->read(in_storage(piece) + at, part);
    }
  });
}

void OffloadedTensor::write(std::uint64_t begin, std::span<const std::byte> from) const {
  if (state_->stream_) state_->stream_->discard();
  if (is_read_weights()) state_->has_read_weights_ = true;
  for_each_part(begin, from, [this](std::size_t piece, std::uint64_t at, std::span<const std::byte> part) {
    if (is_read_weights()) {
      std::ranges::copy(part, read_weights(piece) + at);
    } else {
      state_->storage_->write(in_storage(piece) + at, part);
    }
  });
}

} // namespace triax::executor
