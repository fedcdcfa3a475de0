// SPDX-License-Identifier: Apache-2.0
#include "executor/offload_layout.hpp"

#include <algorithm>

#include "triax/device.hpp"

namespace triax::executor {

namespace {

constexpr std::uint64_t kPage = 4096; // blocks share no page of a file

} // namespace

std::uint64_t OffloadLayout::bytes() const {
  return blocks_.empty() ? 0 : blocks_.back().offset + blocks_.back().bytes;
}

void OffloadLayout::begin_block(int stage) {
  const std::uint64_t offset = (bytes() + kPage - 1) / kPage * kPage;
  blocks_.push_back({.stage = stage, .offset = offset, .first = pieces_.size(), .end = pieces_.size()});
}

void OffloadLayout::add_piece(std::size_t parameter, std::int64_t first, std::int64_t count) {
  const std::size_t stride = Arena::aligned(static_cast<std::size_t>(count) * settings_.element_bytes);
  OffloadBlock& block = blocks_.back();
  pieces_.push_back({parameter, first, count, block.bytes, stride});
  block.bytes += settings_.tensors * stride;
  block.end = pieces_.size();
}

/// Into the current block; its first piece has at least as many as an arena aligns to.
std::int64_t OffloadLayout::elements_that_fit() const {
  const std::size_t used = blocks_.back().bytes;
  const std::size_t left = settings_.buffer_bytes > used ? settings_.buffer_bytes - used : 0;
  const std::size_t units = left / settings_.tensors / Arena::kAlignment;
  const std::size_t bytes = Arena::kAlignment * (used == 0 ? std::max<std::size_t>(units, 1) : units);
  return static_cast<std::int64_t>(bytes / settings_.element_bytes);
}

void OffloadLayout::add_stage(int stage, std::span<const Updated> parameters) {
  bool is_open = false;
  for (const Updated& updated : parameters) {
    if (!settings_.divides) { // also without an element: all data ranks make the same calls
      begin_block(stage);
      add_piece(updated.parameter, 0, updated.count);
      continue;
    }
    for (std::int64_t first = 0; first < updated.count;) {
      if (!is_open || elements_that_fit() == 0) begin_block(stage);
      is_open = true;
      const std::int64_t count = std::min(updated.count - first, elements_that_fit());
      add_piece(updated.parameter, first, count);
      first += count;
    }
  }
}

} // namespace triax::executor
