// SPDX-License-Identifier: Apache-2.0
// cp.async: the copy is made at its wait. Until then its bytes in shared memory are marked as pending.
#include "global_checks.hpp"
#include "profile.hpp"
#include "shared_hazards.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

// Lanes that only write zeros read nothing. All lanes copy the same number of bytes, which is a constant in PTX.
void count_copy(Warp& w, const Instruction& i, std::uint32_t lanes) {
  std::uint64_t to[kLanes] = {}, from[kLanes] = {};
  std::uint32_t bytes = 0, reading = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    to[l] = w.value(i.o[0], l) + static_cast<std::uint64_t>(i.displacement);
    from[l] = w.value(i.o[1], l) + static_cast<std::uint64_t>(i.displacement2);
    bytes = static_cast<std::uint32_t>(w.value(i.o[2], l));
    if (i.count <= 3 || w.value(i.o[3], l) > 0) reading |= 1u << l;
  }
  count_access(w, Space::kShared, Access::kWrite, to, lanes, bytes);
  if (reading) count_access(w, Space::kGlobal, Access::kRead, from, reading, bytes);
}

void begin_copy(Warp& w, const Instruction& i, std::uint32_t lanes) {
  Block& b = *w.block;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const std::uint64_t to = w.value(i.o[0], l) + static_cast<std::uint64_t>(i.displacement);
    const std::uint64_t from = w.value(i.o[1], l) + static_cast<std::uint64_t>(i.displacement2);
    const auto bytes = static_cast<std::uint32_t>(w.value(i.o[2], l));
    const auto source = i.count > 3 ? static_cast<std::uint32_t>(w.value(i.o[3], l)) : bytes;
    if (bytes != 4 && bytes != 8 && bytes != 16)
      fail(w, i, l, ErrorKind::kMisalignedAddress,
           "cp.async of " + std::to_string(bytes) + " bytes; 4, 8 and 16 are allowed");
    if (source > bytes) fail(w, i, l, ErrorKind::kIllegalAddress, "cp.async reads more bytes than it writes");
    if (to % bytes || from % bytes)
      fail(w, i, l, ErrorKind::kMisalignedAddress,
           "addresses " + std::to_string(to) + " and " + hexadecimal(from) + " must be multiples of " +
               std::to_string(bytes));
    if (to >= b.shared_bytes || bytes > b.shared_bytes - to) {
      fail(w, i, l, ErrorKind::kIllegalAddress,
           "writes " + std::to_string(bytes) + " bytes at shared address " + std::to_string(to) + "; the block has " +
               std::to_string(b.shared_bytes) + " bytes of shared memory");
    }
    if (source > 0) {
      check_bounds(w, i, l, from, source, source, "reads ");
      check_written(w, i, l, from, source, bytes);
      check_global_read(w, i, l, from, source, bytes);
    }
    const auto offset = static_cast<std::uint32_t>(to);
    check_shared_write(w, i, l, offset, bytes, bytes, nullptr);
    std::memset(b.shared_at(offset), 0xFF, bytes);
    for (std::uint32_t g = 0; g < bytes / 2; ++g) b.write_tags[offset / 2 + g] = kPending;
    w.copies.push_back({offset, bytes, source, from, static_cast<std::uint8_t>(l), w.groups[l], &i});
    if (source > 0) std::memcpy(w.copies.back().source, data_at(w, from), source);
  }
  if (b.launch->profile) count_copy(w, i, lanes);
}

void end_copy(Warp& w, const Instruction& i, const PendingCopy& copy) {
  Block& b = *w.block;
  std::byte* to = b.shared_at(copy.to);
  if (copy.source_bytes > 0) {
    check_bounds(w, i, copy.lane, copy.from, copy.source_bytes, copy.source_bytes, "reads ");
    std::memcpy(to, data_at(w, copy.from), copy.source_bytes);
    if (std::memcmp(to, copy.source, copy.source_bytes) != 0) {
      fail(w, *copy.instruction, copy.lane, ErrorKind::kHazard,
           "what this cp.async reads was written before its wait, at " + hexadecimal(copy.from) + ": " +
               b.memory->describe(copy.from));
    }
  }
  std::memset(to + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
  for (std::uint32_t g = 0; g < copy.bytes / 2; ++g) b.write_tags[copy.to / 2 + g] = shared_tag(w, copy.lane);
}

void commit(Warp& w, const Instruction&, std::uint32_t lanes) {
  for (int l = 0; l < kLanes; ++l) w.groups[l] += lanes >> l & 1;
}

// wait_group N: all groups of a lane but its last N committed ones. wait_all: those not committed too.
void wait(Warp& w, const Instruction& i, std::uint32_t lanes) {
  std::size_t kept = 0;
  for (const PendingCopy& copy : w.copies) {
    const std::uint64_t pending = i.sub ? 0 : w.value(i.o[0], copy.lane);
    const bool ends = (lanes >> copy.lane & 1) && (i.sub || copy.group + pending < w.groups[copy.lane]);
    if (ends)
      end_copy(w, i, copy);
    else
      w.copies[kept++] = copy;
  }
  w.copies.resize(kept);
}

} // namespace

Execute choose_copy(const Instruction& i) {
  switch (i.op) {
    case Op::kCpAsync:
      return i.count == 3 || i.count == 4 ? begin_copy : nullptr;
    case Op::kCpCommit:
      return commit;
    case Op::kCpWait:
      return i.sub || i.count == 1 ? wait : nullptr;
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
