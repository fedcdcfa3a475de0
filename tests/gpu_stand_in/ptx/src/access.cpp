// SPDX-License-Identifier: Apache-2.0
// ld, st and cvta. Lanes with adjacent addresses are checked and copied as one range.
#include <cstdio>

#include "global_checks.hpp"
#include "profile.hpp"
#include "shared_hazards.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

constexpr std::uint64_t kLocalWindow = std::uint64_t{1} << 62, kSharedWindow = std::uint64_t{1} << 61;

struct alignas(64) Staged {
  std::byte bytes[kLanes * 16]; // what the lanes load or store, in the order of lanes
};

void load_addresses(const Warp& w, const Instruction& i, std::uint64_t* addresses) {
  if (i.o[0].width == 8) {
    const auto* base = w.at<const std::uint64_t>(i.o[0]);
    for (int l = 0; l < kLanes; ++l) addresses[l] = base[l] + static_cast<std::uint64_t>(i.displacement);
  } else {
    const auto* base = w.at<const std::uint32_t>(i.o[0]);
    for (int l = 0; l < kLanes; ++l) addresses[l] = base[l] + static_cast<std::uint64_t>(i.displacement);
  }
}

// `many`: several lanes load the range, which is one element then.
template <bool kLoad>
void range(Warp& w, const Instruction& i, Space space, int lane, int last, std::uint64_t address,
           std::uint32_t lane_bytes, bool many, std::byte* data) {
  Block& b = *w.block;
  const std::uint32_t bytes = static_cast<std::uint32_t>(last - lane + 1) * lane_bytes;
  std::byte* memory = nullptr;
  const bool plain = lane_bytes > 1 && !i.strong;
  if (space == Space::kGlobal) {
    check_bounds(w, i, lane, address, bytes, lane_bytes, kLoad ? "reads " : "writes ");
    memory = data_at(w, address);
    if constexpr (kLoad) {
      check_written(w, i, lane, address, bytes, lane_bytes);
      if (plain) check_global_read(w, i, lane, address, bytes, lane_bytes);
    } else {
      if (plain) check_global_write(w, i, lane, address, bytes, lane_bytes, data);
      mark_written(w, address, bytes);
    }
  } else {
    if (address >= b.shared_bytes || bytes > b.shared_bytes - address) {
      fail(w, i, lane, ErrorKind::kIllegalAddress,
           (kLoad ? "reads " : "writes ") + std::to_string(bytes) + " bytes at shared address " +
               std::to_string(address) + "; the block has " + std::to_string(b.shared_bytes) +
               " bytes of shared memory");
    }
    const auto offset = static_cast<std::uint32_t>(address);
    memory = b.shared_at(offset);
    if constexpr (kLoad)
      check_shared_read(w, i, lane, offset, bytes, many && lane_bytes > 1 ? 0 : lane_bytes);
    else
      check_shared_write(w, i, lane, offset, bytes, lane_bytes, data);
  }
  if constexpr (kLoad) {
    std::memcpy(data, memory, bytes);
  } else {
    std::memcpy(memory, data, bytes);
    if (space == Space::kGlobal && plain) tag_global_write(w, address, bytes);
  }
}

// Global and shared memory.
template <bool kLoad>
void checked(Warp& w, const Instruction& i, Space space, const std::uint64_t* a, std::uint32_t lanes,
             std::uint32_t lane_bytes, Staged& staged) {
  std::uint64_t low_bits = 0, apart = 0;
  for (int l = 0; l < kLanes; ++l) {
    low_bits |= lanes >> l & 1 ? a[l] : 0;
    apart |= a[l] ^ (a[0] + static_cast<std::uint64_t>(l) * lane_bytes);
  }
  if (low_bits & (lane_bytes - 1)) {
    for (int l = 0; l < kLanes; ++l) {
      if ((lanes >> l & 1) && a[l] % lane_bytes != 0) {
        fail(w, i, l, ErrorKind::kMisalignedAddress,
             "address " + hexadecimal(a[l]) + " is not a multiple of " + std::to_string(lane_bytes));
      }
    }
  }
  if (lanes == kAllLanes && apart == 0)
    return range<kLoad>(w, i, space, 0, kLanes - 1, a[0], lane_bytes, false, staged.bytes);
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    int last = l;
    while (last + 1 < kLanes && (lanes >> (last + 1) & 1) && a[last + 1] == a[last] + lane_bytes) ++last;
    // Further lanes that load what the last one does.
    int same = last;
    while (kLoad && same + 1 < kLanes && (lanes >> (same + 1) & 1) && a[same + 1] == a[last]) ++same;
    const bool many = same > last && last == l;
    range<kLoad>(w, i, space, l, last, a[l], lane_bytes, many, staged.bytes + l * lane_bytes);
    if (same > last && !many && space == Space::kShared) {
      check_shared_read(w, i, same, static_cast<std::uint32_t>(a[last]), lane_bytes, lane_bytes > 1 ? 0 : 1);
    }
    for (int copy = last + 1; copy <= same; ++copy) {
      std::memcpy(staged.bytes + copy * lane_bytes, staged.bytes + last * lane_bytes, lane_bytes);
    }
    last = same;
    l = last;
  }
}

template <bool kLoad>
void unchecked(Warp& w, const Instruction& i, Space space, const std::uint64_t* a, std::uint32_t lanes,
               std::uint32_t lane_bytes, Staged& staged) {
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const std::size_t limit = space == Space::kParam ? w.block->launch->params.size() : w.block->kernel->local_bytes;
    if (a[l] > limit || lane_bytes > limit - a[l]) {
      fail(w, i, l, ErrorKind::kIllegalAddress,
           std::string("address ") + std::to_string(a[l]) + " is behind the end of " +
               (space == Space::kParam ? "the parameters" : "local memory") + " (" + std::to_string(limit) + " bytes)");
    }
    if (a[l] % lane_bytes)
      fail(w, i, l, ErrorKind::kMisalignedAddress,
           "address " + std::to_string(a[l]) + " is not a multiple of " + std::to_string(lane_bytes));
    std::byte* data = staged.bytes + l * lane_bytes;
    if (space == Space::kParam) {
      if (!kLoad) fail(w, i, l, ErrorKind::kIllegalAddress, "writes to the parameters of the kernel");
      std::memcpy(data, w.block->launch->params.data() + a[l], lane_bytes);
    } else {
      std::byte* memory = w.local.data() + l * limit + a[l];
      std::memcpy(kLoad ? data : memory, kLoad ? memory : data, lane_bytes);
    }
  }
}

Space resolve(Warp& w, const Instruction& i, std::uint64_t* a, std::uint32_t lanes) {
  if (i.space != Space::kGeneric) return i.space;
  const std::uint64_t window = a[__builtin_ctz(lanes)] & (kLocalWindow | kSharedWindow);
  for (int l = 0; l < kLanes; ++l) {
    if ((lanes >> l & 1) && (a[l] & (kLocalWindow | kSharedWindow)) != window) {
      fail(w, i, l, ErrorKind::kIllegalAddress,
           "lanes of one generic access address different spaces, which is not supported");
    }
    a[l] &= ~window;
  }
  return window == kLocalWindow ? Space::kLocal : window == kSharedWindow ? Space::kShared : Space::kGlobal;
}

template <bool kLoad>
void transfer(Warp& w, const Instruction& i, std::uint32_t lanes, Staged& staged) {
  std::uint64_t addresses[kLanes];
  load_addresses(w, i, addresses);
  const auto lane_bytes = static_cast<std::uint32_t>(bytes_of(i.type)) * i.vec;
  const Space space = resolve(w, i, addresses, lanes);
  if (w.block->launch->profile) count_access(w, space, addresses, lanes, lane_bytes);
  if (space == Space::kParam || space == Space::kLocal)
    unchecked<kLoad>(w, i, space, addresses, lanes, lane_bytes, staged);
  else
    checked<kLoad>(w, i, space, addresses, lanes, lane_bytes, staged);
}

// Memory holds T; a lane of the register holds W.
template <class T, class W>
void load(Warp& w, const Instruction& i, std::uint32_t lanes) {
  Staged staged;
  transfer<true>(w, i, lanes, staged);
  const T* from = reinterpret_cast<const T*>(staged.bytes);
  for (int v = 0; v < i.vec; ++v) {
    alignas(64) W results[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const T value = from[l * i.vec + v];
      if constexpr (sizeof(T) == 2 && sizeof(W) == 4)
        results[l] = static_cast<std::uint16_t>(value);
      else
        results[l] =
            static_cast<W>(static_cast<std::conditional_t<std::is_signed_v<T>, std::make_signed_t<W>, W>>(value));
    }
    store_lanes(w.at<W>(i.o[1 + v]), results, lanes);
  }
}

template <class T, class W>
void store(Warp& w, const Instruction& i, std::uint32_t lanes) {
  Staged staged;
  T* to = reinterpret_cast<T*>(staged.bytes);
  for (int v = 0; v < i.vec; ++v) {
    const W* from = w.at<const W>(i.o[1 + v]);
    for (int l = 0; l < kLanes; ++l) to[l * i.vec + v] = static_cast<T>(from[l]);
  }
  transfer<false>(w, i, lanes, staged);
}

template <bool kAdd, std::uint64_t kWindow>
void generic(Warp& w, const Instruction& i, std::uint32_t lanes) {
  each<[](std::uint64_t a) { return kAdd ? a | kWindow : a & ~kWindow; }, std::uint64_t, std::uint64_t>(w, i, lanes);
}

} // namespace

Execute choose_access(const Instruction& i) {
  if (i.op == Op::kCvta) {
    if (i.space == Space::kShared) return i.sub ? generic<false, kSharedWindow> : generic<true, kSharedWindow>;
    if (i.space == Space::kLocal) return i.sub ? generic<false, kLocalWindow> : generic<true, kLocalWindow>;
    return i.space == Space::kGlobal ? generic<false, 0> : nullptr;
  }
  if (i.count != 1 + i.vec || bytes_of(i.type) * i.vec > 16) return nullptr;
  const bool wide = i.o[1].width == 8;
  for (int v = 1; v < i.vec; ++v)
    if (i.o[1 + v].base != Ref::kSink && i.o[1 + v].width != i.o[1].width) return nullptr;
  auto with = [&]<class T>(T) -> Execute {
    if (i.op == Op::kLd) return wide ? load<T, std::uint64_t> : load<T, std::uint32_t>;
    return wide ? store<T, std::uint64_t> : store<T, std::uint32_t>;
  };
  switch (i.type) {
    case Type::kS8:
      return with(std::int8_t{});
    case Type::kB8:
    case Type::kU8:
      return with(std::uint8_t{});
    case Type::kS16:
      return with(std::int16_t{});
    case Type::kB16:
    case Type::kU16:
      return with(std::uint16_t{});
    case Type::kS32:
      return with(std::int32_t{});
    case Type::kB32:
    case Type::kU32:
    case Type::kF32:
      return with(std::uint32_t{});
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      if (!wide) return nullptr;
      return i.op == Op::kLd ? load<std::uint64_t, std::uint64_t> : store<std::uint64_t, std::uint64_t>;
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
