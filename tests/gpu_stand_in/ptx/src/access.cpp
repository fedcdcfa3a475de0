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

// Of the lanes from `lane` on, names the first that is not within shared memory.
template <bool kLoad>
[[gnu::noinline]] void beyond_shared(const Warp& w, const Instruction& i, int lane, std::uint64_t address,
                                     std::uint32_t lane_bytes) {
  const std::uint32_t end = w.block->shared_bytes;
  const std::uint64_t good = address >= end ? 0 : (end - address) / lane_bytes;
  fail(w, i, lane + static_cast<int>(good), ErrorKind::kIllegalAddress,
       (kLoad ? "reads " : "writes ") + std::to_string(lane_bytes) + " bytes at shared address " +
           std::to_string(address + good * lane_bytes) + "; the block has " + std::to_string(w.block->shared_bytes) +
           " bytes of shared memory");
}

// `count` lanes from `lane` on, each with `kBytes` behind those of the one before. `many`: several lanes load the
// range, which is one element then.
template <bool kLoad, std::uint32_t kBytes>
STAND_IN_INLINE void range(Warp& w, const Instruction& i, Space space, int lane, std::uint32_t count,
                           std::uint64_t address, bool many, std::byte* data) {
  Block& b = *w.block;
  const std::uint32_t bytes = count * kBytes;
  std::byte* memory = nullptr;
  const bool plain = kBytes > 1 && !i.strong;
  if (space == Space::kGlobal) {
    check_bounds(w, i, lane, address, bytes, kBytes, kLoad ? "reads " : "writes ");
    memory = data_at(w, address);
    if constexpr (kLoad) {
      check_written(w, i, lane, address, bytes, kBytes);
      if (plain) check_global_read(w, i, lane, address, bytes, kBytes);
      if (i.strong) observe_atomics(w, address, bytes);
    } else {
      if (plain) check_global_write(w, i, lane, address, bytes, kBytes, data);
      mark_written(w, address, bytes);
    }
  } else {
    if (address >= b.shared_bytes || bytes > b.shared_bytes - address)
      beyond_shared<kLoad>(w, i, lane, address, kBytes);
    const auto offset = static_cast<std::uint32_t>(address);
    memory = b.shared_at(offset);
    if constexpr (kLoad)
      check_shared_read(w, i, lane, offset, bytes, many && kBytes > 1 ? 0 : kBytes);
    else
      check_shared_write(w, i, lane, offset, bytes, kBytes, data);
  }
  if constexpr (kLoad) {
    std::memcpy(data, memory, bytes);
  } else {
    std::memcpy(memory, data, bytes);
    if (space == Space::kGlobal && plain) tag_global_write(w, address, bytes);
  }
}

template <std::uint32_t kBytes>
[[gnu::noinline]] void misaligned(const Warp& w, const Instruction& i, const std::uint64_t* a, std::uint32_t lanes) {
  for (int l = 0; l < kLanes; ++l) {
    if ((lanes >> l & 1) && a[l] % kBytes != 0) {
      fail(w, i, l, ErrorKind::kMisalignedAddress,
           "address " + hexadecimal(a[l]) + " is not a multiple of " + std::to_string(kBytes));
    }
  }
}

// Lanes of `among` with this address.
STAND_IN_INLINE std::uint32_t lanes_at(const std::uint64_t* a, std::uint64_t address, std::uint32_t among) {
  using Four [[gnu::vector_size(32)]] = std::uint64_t;
  Four found{};
  for (int l = 0; l < kLanes; l += 4) {
    Four addresses;
    std::memcpy(&addresses, a + l, sizeof(addresses));
    found |= (addresses == address) & (Four{1, 2, 4, 8} << l);
  }
  return static_cast<std::uint32_t>(found[0] | found[1] | found[2] | found[3]) & among;
}

template <std::uint32_t kBytes>
STAND_IN_INLINE void repeat(std::byte* data, int from, std::uint32_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1)
    std::memcpy(data + std::countr_zero(lanes) * kBytes, data + from * kBytes, kBytes);
}

// Lanes whose addresses are not all adjacent and not all equal: ranges of lanes with adjacent addresses, and groups of
// lanes that load from one address. After a bar.warp.sync of some lanes, each lane is looked at.
template <bool kLoad, std::uint32_t kBytes>
[[gnu::noinline]] void ranges(Warp& w, const Instruction& i, Space space, const std::uint64_t* a, std::uint32_t lanes,
                              std::byte* data) {
  int alone = 0; // lanes that share their address with no other one; after several of them, no lane is expected to
  while (lanes != 0) {
    const int l = std::countr_zero(lanes);
    int last = l;
    while (last + 1 < kLanes && (lanes >> (last + 1) & 1) && a[last + 1] == a[last] + kBytes) ++last;
    const auto count = static_cast<std::uint32_t>(last - l + 1);
    if (count > 1) {
      range<kLoad, kBytes>(w, i, space, l, count, a[l], false, data + l * kBytes);
      lanes &= ~(((std::uint64_t{1} << count) - 1) << l);
      continue;
    }
    std::uint32_t same = 1u << l;
    if (kLoad && alone < 4 && w.lane_order.empty()) {
      same = lanes_at(a, a[l], lanes);
      alone += std::has_single_bit(same);
    }
    range<kLoad, kBytes>(w, i, space, l, 1, a[l], !std::has_single_bit(same), data + l * kBytes);
    lanes &= ~same;
    if (kLoad) repeat<kBytes>(data, l, same & (same - 1));
  }
}

// Global and shared memory.
template <bool kLoad, std::uint32_t kBytes>
void checked(Warp& w, const Instruction& i, Space space, const std::uint64_t* a, std::uint32_t lanes, Staged& staged) {
  std::uint64_t low_bits = 0, apart = 0, unequal = 0;
  for (int l = 0; l < kLanes; ++l) {
    low_bits |= a[l];
    apart |= a[l] ^ (a[0] + static_cast<std::uint64_t>(l) * kBytes);
    unequal |= a[l] ^ a[0];
  }
  if (low_bits & (kBytes - 1)) misaligned<kBytes>(w, i, a, lanes);
  if (lanes == kAllLanes && apart == 0) return range<kLoad, kBytes>(w, i, space, 0, kLanes, a[0], false, staged.bytes);
  if (kLoad && lanes == kAllLanes && unequal == 0 && w.lane_order.empty()) {
    range<kLoad, kBytes>(w, i, space, 0, 1, a[0], true, staged.bytes);
    return repeat<kBytes>(staged.bytes, 0, kAllLanes & ~1u);
  }
  ranges<kLoad, kBytes>(w, i, space, a, lanes, staged.bytes);
}

template <bool kLoad, std::uint32_t kBytes>
void unchecked(Warp& w, const Instruction& i, Space space, const std::uint64_t* a, std::uint32_t lanes,
               Staged& staged) {
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const std::size_t limit = space == Space::kParam ? w.block->launch->params.size() : w.block->kernel->local_bytes;
    if (a[l] > limit || kBytes > limit - a[l]) {
      fail(w, i, l, ErrorKind::kIllegalAddress,
           std::string("address ") + std::to_string(a[l]) + " is behind the end of " +
               (space == Space::kParam ? "the parameters" : "local memory") + " (" + std::to_string(limit) + " bytes)");
    }
    if (a[l] % kBytes)
      fail(w, i, l, ErrorKind::kMisalignedAddress,
           "address " + std::to_string(a[l]) + " is not a multiple of " + std::to_string(kBytes));
    std::byte* data = staged.bytes + l * kBytes;
    if (space == Space::kParam) {
      if (!kLoad) fail(w, i, l, ErrorKind::kIllegalAddress, "writes to the parameters of the kernel");
      std::memcpy(data, w.block->launch->params.data() + a[l], kBytes);
    } else {
      std::byte* memory = w.local.data() + l * limit + a[l];
      std::memcpy(kLoad ? data : memory, kLoad ? memory : data, kBytes);
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

template <bool kLoad, std::uint32_t kBytes>
void transfer(Warp& w, const Instruction& i, std::uint32_t lanes, Staged& staged) {
  std::uint64_t addresses[kLanes];
  load_addresses(w, i, addresses);
  const Space space = resolve(w, i, addresses, lanes);
  if (!kLoad && i.releases) release(*w.block);
  if (w.block->launch->profile)
    count_access(w, space, kLoad ? Access::kRead : Access::kWrite, addresses, lanes, kBytes);
  if (space == Space::kParam || space == Space::kLocal)
    unchecked<kLoad, kBytes>(w, i, space, addresses, lanes, staged);
  else
    checked<kLoad, kBytes>(w, i, space, addresses, lanes, staged);
  if (kLoad && i.acquires) acquire(*w.block);
}

// Memory holds T; a lane of the register holds W.
template <class W, class T>
W widened(T value) {
  if constexpr (sizeof(T) == 2 && sizeof(W) == 4)
    return static_cast<std::uint16_t>(value);
  else
    return static_cast<W>(static_cast<std::conditional_t<std::is_signed_v<T>, std::make_signed_t<W>, W>>(value));
}

template <class T, class W, int kVec>
void load(Warp& w, const Instruction& i, std::uint32_t lanes) {
  Staged staged;
  transfer<true, sizeof(T) * kVec>(w, i, lanes, staged);
  const T* from = reinterpret_cast<const T*>(staged.bytes);
  for (int v = 0; v < kVec; ++v) {
    alignas(64) W results[kLanes];
    for (int l = 0; l < kLanes; ++l) results[l] = widened<W>(from[l * kVec + v]);
    store_lanes(w.at<W>(i.o[1 + v]), results, lanes);
  }
}

// A parameter at an address that is the same for all lanes.
template <class T, class W, int kVec>
void load_param(Warp& w, const Instruction& i, std::uint32_t lanes) {
  const std::uint64_t address = w.value(i.o[0], 0) + static_cast<std::uint64_t>(i.displacement);
  const std::span<const std::byte> params = w.block->launch->params;
  T from[kVec];
  if (address > params.size() || sizeof(from) > params.size() - address || address % sizeof(from) != 0)
    return load<T, W, kVec>(w, i, lanes); // reports the error
  std::memcpy(from, params.data() + address, sizeof(from));
  for (int v = 0; v < kVec; ++v) {
    alignas(64) W results[kLanes];
    for (W& result : results) result = widened<W>(from[v]);
    store_lanes(w.at<W>(i.o[1 + v]), results, lanes);
  }
}

template <class T, class W, int kVec>
void store(Warp& w, const Instruction& i, std::uint32_t lanes) {
  Staged staged;
  T* to = reinterpret_cast<T*>(staged.bytes);
  for (int v = 0; v < kVec; ++v) {
    const W* from = w.at<const W>(i.o[1 + v]);
    for (int l = 0; l < kLanes; ++l) to[l * kVec + v] = static_cast<T>(from[l]);
  }
  transfer<false, sizeof(T) * kVec>(w, i, lanes, staged);
}

template <class T, class W, int kVec>
Execute choose_vector(const Instruction& i) {
  if constexpr (sizeof(T) * kVec > 16) {
    return nullptr;
  } else {
    if (i.op != Op::kLd) return store<T, W, kVec>;
    const bool one_address = i.space == Space::kParam && i.o[0].base == Ref::kConstant;
    return one_address ? load_param<T, W, kVec> : load<T, W, kVec>;
  }
}

template <class T, class W>
Execute choose_width(const Instruction& i) {
  return i.vec == 1   ? choose_vector<T, W, 1>(i)
         : i.vec == 2 ? choose_vector<T, W, 2>(i)
         : i.vec == 4 ? choose_vector<T, W, 4>(i)
                      : nullptr;
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
  if (i.count != 1 + i.vec) return nullptr;
  const bool wide = i.o[1].width == 8;
  for (int v = 1; v < i.vec; ++v)
    if (i.o[1 + v].base != Ref::kSink && i.o[1 + v].width != i.o[1].width) return nullptr;
  auto with = [&]<class T>(T) -> Execute {
    return wide ? choose_width<T, std::uint64_t>(i) : choose_width<T, std::uint32_t>(i);
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
      return wide ? choose_width<std::uint64_t, std::uint64_t>(i) : nullptr;
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
