// SPDX-License-Identifier: Apache-2.0
#include "staging.hpp"

#include <algorithm>

#include "triax/text.hpp"

namespace triax::p2p {

namespace {

TensorView bytes_at(const std::byte* data, std::size_t bytes) {
  return {const_cast<std::byte*>(data), DType::u8, {static_cast<std::int64_t>(bytes)}};
}

} // namespace

Staging::Staging(Device& device, std::string_view plugin, std::size_t bytes, std::size_t device_bytes)
    : device_(device),
      downloads_(device.make_stream(text("{} downloads", plugin))),
      uploads_(device.make_stream(text("{} uploads", plugin))) {
  pinned_.blocks.push_back(device_.allocate(bytes, MemoryKind::pinned));
  on_device_.blocks.push_back(device_.allocate(device_bytes, MemoryKind::device));
}

std::byte* Staging::Pool::take(Device& device, std::size_t bytes) {
  const std::size_t needed = Arena::aligned(bytes);
  if (blocks.back()->bytes() - used < needed) {
    blocks.push_back(device.allocate(needed, kind));
    used = 0;
  }
  std::byte* begin = static_cast<std::byte*>(blocks.back()->data()) + used;
  used += needed;
  return begin;
}

std::byte* Staging::Pool::buffers(Device& device, const Stream& stream, std::size_t bytes) {
  const auto known = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.stream == &stream; });
  if (known == slots.end()) return slots.emplace_back(Slot{&stream, take(device, bytes), bytes}).begin;
  // Calls in progress keep the smaller buffer.
  if (known->bytes < bytes) *known = {&stream, take(device, bytes), bytes};
  return known->begin;
}

Event Staging::download(std::byte* buffer, const std::byte* device, std::size_t bytes) {
  device_.download(bytes_at(buffer, bytes), bytes_at(device, bytes), *downloads_);
  return downloads_->record();
}

Event Staging::upload(std::byte* device, const std::byte* buffer, std::size_t bytes) {
  device_.upload(bytes_at(device, bytes), bytes_at(buffer, bytes), *uploads_);
  return uploads_->record();
}

Event Staging::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  device_.copy(bytes_at(to, bytes), bytes_at(from, bytes), *uploads_);
  return uploads_->record();
}

DType Staging::type_of_sums(DType dtype) noexcept {
  return dtype == DType::bf16 || dtype == DType::f16 ? DType::f32 : dtype;
}

Event Staging::sum(DType dtype, std::span<const std::byte* const> sources, std::byte* sums, std::byte* out,
                   std::int64_t elements) {
  const auto view = [&](const std::byte* data) { return TensorView(const_cast<std::byte*>(data), dtype, {elements}); };
  const TensorView sum(sums, type_of_sums(dtype), {elements});
  device_.convert(sum, view(sources.front()), *uploads_);
  for (const std::byte* source : sources.subspan(1)) device_.add(sum, view(source), *uploads_);
  device_.convert(view(out), sum, *uploads_);
  return uploads_->record();
}

} // namespace triax::p2p
