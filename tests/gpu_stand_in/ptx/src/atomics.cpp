// SPDX-License-Identifier: Apache-2.0
// atom and red, one lane after the other. Atomics are not a hazard for each other; a plain access of another warp or
// block to the same place is, before and after.
#include <mutex>

#include "global_checks.hpp"
#include "profile.hpp"
#include "shared_hazards.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

std::mutex global_atomics; // over all launches of the process

template <class T>
T next_value(Atomic how, T old, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) {
    (void)c;
    return how == Atomic::kAdd ? old + b : b;
  } else {
    using U = std::make_unsigned_t<T>;
    switch (how) {
      case Atomic::kAdd:
        return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
      case Atomic::kInc:
        return static_cast<U>(old) >= static_cast<U>(b) ? T{0} : static_cast<T>(old + 1);
      case Atomic::kDec:
        return old == 0 || static_cast<U>(old) > static_cast<U>(b) ? b : static_cast<T>(old - 1);
      case Atomic::kExch:
        return b;
      case Atomic::kCas:
        return old == b ? c : old;
      case Atomic::kMin:
        return old < b ? old : b;
      case Atomic::kMax:
        return old > b ? old : b;
      case Atomic::kAnd:
        return old & b;
      case Atomic::kOr:
        return old | b;
      default:
        return old ^ b;
    }
  }
}

// The tag of an atomic where tag `written` is, of a write that lies before it or of another atomic. A plain write of
// this lane in the same interval keeps its tag: it is not before atomics of other lanes, and its tag orders those that
// follow as that of the atomic would.
std::uint32_t atomic_tag(const Warp& w, std::uint32_t written, bool is_before, std::uint32_t mine) {
  if (written == mine) return written;
  if (is_before) return mine | kAtomicBit;
  const bool of_this_warp = (written >> 6 & 31) == w.index && (written & 63) != kLanesOfWarps;
  return of_this_warp ? mine | kAtomicBit | kManyLanes : w.block->clock << kTagClockShift | kAtomicBit | kLanesOfWarps;
}

template <class T>
std::byte* shared_place(Warp& w, const Instruction& i, int l, std::uint64_t address) {
  Block& b = *w.block;
  if (address >= b.shared_bytes || sizeof(T) > b.shared_bytes - address) {
    fail(w, i, l, ErrorKind::kIllegalAddress,
         "atomic at shared address " + std::to_string(address) + "; the block has " + std::to_string(b.shared_bytes) +
             " bytes of shared memory");
  }
  const auto offset = static_cast<std::uint32_t>(address);
  const std::uint32_t limit = ordered_limit(w), mine = shared_tag(w, l);
  for (std::uint32_t g = offset / 2; g < (offset + sizeof(T)) / 2; ++g) {
    std::uint32_t& written = b.write_tags[g];
    const std::uint32_t read = b.read_tags[g];
    if (is_unwritten(b, written))
      fail(w, i, l, ErrorKind::kUnwritten,
           "reads shared memory that nothing wrote, at shared address " + std::to_string(2 * g));
    if (written == kPending) fail(w, i, l, ErrorKind::kHazard, "atomic where a cp.async copies, before its wait");
    const bool is_before = written < limit || write_is_before(w, written, mine);
    if (!is_before && (written & kAtomicBit) == 0)
      shared_hazard(w, i, l, 2 * g, written, "atomic where was written by ");
    if (read >= limit && !before(w, read, mine)) shared_hazard(w, i, l, 2 * g, read, "atomic where was read by ");
    written = atomic_tag(w, written, is_before, mine);
  }
  return b.shared_at(offset);
}

template <class T>
std::byte* global_place(Warp& w, const Instruction& i, int l, std::uint64_t address) {
  check_bounds(w, i, l, address, sizeof(T), sizeof(T), "atomic on ");
  check_written(w, i, l, address, sizeof(T), sizeof(T));
  Block& b = *w.block;
  if (!w.range.write_tags) return data_at(w, address);
  const std::uint64_t first = (address - w.range.begin) / 2;
  for (std::uint64_t g = first; g < first + sizeof(T) / 2; ++g) {
    std::uint32_t& written = w.range.write_tags[g];
    for (const std::uint32_t tag : {written, w.range.read_tags[g]}) {
      if (!(tag & kAtomicTag) && is_hazard(b, tag))
        global_hazard(w, i, l, address, tag, "atomic where plain accesses were made by ");
    }
    // An atomic comes after those whose value it reads, so the last one stands for all. It does not order a plain
    // write of this block before the atomics of others.
    if ((written & kAtomicTag) || !is_of_this_block(b, written)) written = b.tag | kAtomicTag;
  }
  b.tag_used = true;
  return data_at(w, address);
}

void count_atomic(Warp& w, const Instruction& i, std::uint32_t lanes, std::uint32_t bytes) {
  std::uint64_t addresses[kLanes];
  for (int l = 0; l < kLanes; ++l) addresses[l] = w.value(i.o[0], l) + static_cast<std::uint64_t>(i.displacement);
  count_access(w, i.space, Access::kUpdate, addresses, lanes, bytes);
}

template <class T>
void atomic(Warp& w, const Instruction& i, std::uint32_t lanes) {
  const bool global = i.space == Space::kGlobal;
  if (w.block->launch->profile) count_atomic(w, i, lanes, sizeof(T));
  std::unique_lock lock(global_atomics, std::defer_lock);
  if (i.releases) release(*w.block);
  if (global) lock.lock();
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const std::uint64_t address = w.value(i.o[0], l) + static_cast<std::uint64_t>(i.displacement);
    if (address % sizeof(T))
      fail(w, i, l, ErrorKind::kMisalignedAddress,
           "address " + hexadecimal(address) + " is not a multiple of " + std::to_string(sizeof(T)));
    std::byte* place = global ? global_place<T>(w, i, l, address) : shared_place<T>(w, i, l, address);
    T old;
    std::memcpy(&old, place, sizeof(T));
    const T b = get<T>(static_cast<Word<T>>(w.value(i.o[2], l)));
    const T c = i.count > 3 ? get<T>(static_cast<Word<T>>(w.value(i.o[3], l))) : T{};
    const T next = next_value(static_cast<Atomic>(i.sub), old, b, c);
    std::memcpy(place, &next, sizeof(T));
    if (i.o[1].base != Ref::kSink) w.set(i.o[1], l, put<T>(old));
  }
  if (i.acquires) acquire(*w.block);
}

} // namespace

Execute choose_atomic(const Instruction& i) {
  const auto how = static_cast<Atomic>(i.sub);
  if (i.count != (how == Atomic::kCas ? 4 : 3)) return nullptr;
  if (i.space != Space::kGlobal && i.space != Space::kShared) return nullptr; // generic addresses
  switch (i.type) {
    case Type::kB32:
    case Type::kU32:
      return atomic<std::uint32_t>;
    case Type::kS32:
      return how == Atomic::kInc || how == Atomic::kDec ? nullptr : atomic<std::int32_t>;
    case Type::kB64:
    case Type::kU64:
      return how == Atomic::kInc || how == Atomic::kDec ? nullptr : atomic<std::uint64_t>;
    case Type::kS64:
      return how == Atomic::kInc || how == Atomic::kDec ? nullptr : atomic<std::int64_t>;
    case Type::kF32:
      return how == Atomic::kAdd ? atomic<float> : nullptr;
    case Type::kF64:
      return how == Atomic::kAdd ? atomic<double> : nullptr;
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
