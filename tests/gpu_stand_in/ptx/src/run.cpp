// SPDX-License-Identifier: Apache-2.0
// Runs a launch: blocks in parallel over threads of the host.
#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "fences.hpp"
#include "pool.hpp"
#include "scheduler.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr std::uint64_t kMaxBlocks = (1u << 30) - 1; // tags have 32 bits, and each block has two

std::string text_of(Dim3 d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

void check_launch(const Launch& l) {
  if (!l.kernel || !l.kernel->code) throw MachineError(ErrorKind::kLaunch, "launch without a kernel");
  const Kernel& k = *l.kernel;
  auto refuse = [&](const std::string& why) {
    throw MachineError(ErrorKind::kLaunch, why + " (kernel " + k.name + ")");
  };
  const std::uint64_t threads = l.block.count();
  if (threads == 0 || threads > 1024) refuse("block of " + std::to_string(threads) + " threads; 1 to 1024 are allowed");
  if (l.grid.count() == 0) refuse("grid " + text_of(l.grid) + " has no block");
  if (l.grid.count() > kMaxBlocks) refuse("grid " + text_of(l.grid) + " has more blocks than the machine can count");
  if (l.params.size() != k.param_bytes) {
    refuse("parameters of " + std::to_string(l.params.size()) + " bytes; the kernel takes " +
           std::to_string(k.param_bytes));
  }
  if (k.max_threads.x != 0 && threads > k.max_threads.count()) {
    refuse("block of " + std::to_string(threads) + " threads; the kernel was compiled for at most " +
           std::to_string(k.max_threads.count()));
  }
  const Dim3& r = k.required_threads;
  if (r.x != 0 && (l.block.x != r.x || l.block.y != r.y || l.block.z != r.z)) {
    refuse("block " + text_of(l.block) + "; the kernel was compiled for " + text_of(r));
  }
}

std::uint32_t special(Special what, const Block& b, std::uint32_t warp, std::uint32_t lane) {
  const Dim3 &size = b.launch->block, &grid = b.launch->grid;
  const std::uint32_t t = warp * kLanes + lane;
  const std::uint32_t bit = 1u << lane;
  switch (what) {
    case Special::kThreadX:
      return t % size.x;
    case Special::kThreadY:
      return t / size.x % size.y;
    case Special::kThreadZ:
      return t / size.x / size.y;
    case Special::kThreadsX:
      return size.x;
    case Special::kThreadsY:
      return size.y;
    case Special::kThreadsZ:
      return size.z;
    case Special::kBlockX:
      return b.at.x;
    case Special::kBlockY:
      return b.at.y;
    case Special::kBlockZ:
      return b.at.z;
    case Special::kBlocksX:
      return grid.x;
    case Special::kBlocksY:
      return grid.y;
    case Special::kBlocksZ:
      return grid.z;
    case Special::kLane:
      return lane;
    case Special::kWarp:
      return warp;
    case Special::kLanesLess:
      return bit - 1;
    case Special::kLanesUpTo:
      return bit | (bit - 1);
    case Special::kLanesGreater:
      return ~(bit | (bit - 1));
    case Special::kLanesFrom:
      return ~(bit - 1);
    case Special::kLanesEqual:
      return bit;
    case Special::kClock:
      break; // read where it stands
  }
  return 0;
}

void set_special(const Block& b, Warp& w, const SpecialRegister& s) {
  auto* lanes = w.at<std::uint32_t>({s.offset, Ref::kRegister, 4});
  for (std::uint32_t l = 0; l < kLanes; ++l) lanes[l] = special(s.what, b, w.index, l);
}

// What stays from block to block of a launch.
void prepare_warp(Block& b, Warp& w, std::uint32_t index) {
  const KernelCode& code = *b.kernel->code;
  w.block = &b;
  w.code = &code;
  w.after_of = nullptr;
  w.index = index;
  const std::size_t parts = code.register_bytes / sizeof(Aligned) + 1;
  if (w.registers.size() < parts) w.registers.resize(parts);
  w.bases[Ref::kRegister] = reinterpret_cast<std::byte*>(w.registers.data());
  w.bases[Ref::kConstant] = const_cast<std::byte*>(code.constants.data());
  w.sink.resize(kSinkBytes / sizeof(Aligned));
  w.bases[Ref::kSink] = reinterpret_cast<std::byte*>(w.sink.data());
  for (const auto& s : code.specials)
    if (s.what != Special::kClock && !changes_with_block(s.what)) set_special(b, w, s);
  for (const auto& v : code.variables) {
    const std::uint64_t address = variable_address(*v.variable, *b.memory) + static_cast<std::uint64_t>(v.addend);
    for (int l = 0; l < kLanes; ++l) w.set({v.offset, Ref::kRegister, 8}, l, address);
  }
}

void begin_warp(Block& b, Warp& w) {
  w.local.assign(kLanes * b.kernel->local_bytes, std::byte{0xFF});
  std::fill(std::begin(w.pc), std::end(w.pc), 0);
  const std::uint32_t left = b.threads - w.index * kLanes;
  w.live = left >= kLanes ? kAllLanes : (1u << left) - 1;
  w.waiting = w.held = 0;
  w.barrier = nullptr;
  w.stuck = false;
  w.passed = 0;
  w.copies.clear();
  std::fill(std::begin(w.groups), std::end(w.groups), 0);
  w.since = w.clock = ++b.clock;
  w.floor = b.first_clock;
  w.ordered.assign(b.warps.size(), b.first_clock);
  w.lane_order.clear();
  w.counts = {};
  *reinterpret_cast<std::uint32_t*>(w.bases[Ref::kRegister] + w.code->carry) = 0;
  for (const auto& s : w.code->specials)
    if (changes_with_block(s.what)) set_special(b, w, s);
}

// Warps keep their registers' memory from block to block.
void resize_warps(Block& b, std::size_t count) {
  while (b.warps.size() > count) {
    b.spare.push_back(std::move(b.warps.back()));
    b.warps.pop_back();
  }
  while (b.warps.size() < count) {
    if (b.spare.empty()) {
      b.warps.emplace_back();
    } else {
      b.warps.push_back(std::move(b.spare.back()));
      b.spare.pop_back();
    }
  }
}

// Once for a launch.
void prepare_block(Block& b) {
  const std::size_t parts = b.shared_bytes / sizeof(Aligned) + 1, tags = b.shared_bytes / 2 + 8;
  if (b.shared.size() < parts) b.shared.resize(parts);
  if (b.write_tags.size() < tags) {
    b.write_tags.resize(tags);
    b.read_tags.resize(tags);
  }
  resize_warps(b, (b.threads + kLanes - 1) / kLanes);
  for (std::uint32_t n = 0; n < b.warps.size(); ++n) prepare_warp(b, b.warps[n], n);
}

void begin_block(Block& b, std::uint64_t number) {
  const Launch& l = *b.launch;
  b.at = {static_cast<unsigned>(number % l.grid.x), static_cast<unsigned>(number / l.grid.x % l.grid.y),
          static_cast<unsigned>(number / l.grid.x / l.grid.y)};
  b.number = static_cast<std::uint32_t>(number);
  b.tag = b.first_tag + 2 * b.number;
  b.tag_used = false;
  b.acquired = 0;
  begin_clock(b);
  for (BarrierState& state : b.barriers) state = {};
  for (Warp& w : b.warps) begin_warp(b, w);
}

// What the threads of a launch share.
struct Shared {
  const Launch& launch;
  DeviceMemory& memory;
  FenceLog fences{static_cast<std::uint32_t>(launch.grid.count()), launch.kernel->code->has_fences};
  std::uint32_t first_tag = memory.new_tags(fences.tag_pairs());
  std::vector<std::uint32_t> order{}; // empty: by launch.order
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex{};
  std::uint64_t failed_at = 0;
  std::exception_ptr error{};
  Profile counts{};
  SectorSet read_sectors{}, written_sectors{};
};

std::uint64_t block_number(const Shared& s, std::uint64_t n) {
  if (!s.order.empty()) return s.order[n];
  return s.launch.order == BlockOrder::kBackward ? s.launch.grid.count() - 1 - n : n;
}

void run_blocks(Shared& s) {
  static thread_local Block cached; // keeps its memory from launch to launch
  Block& b = cached;
  b.launch = &s.launch;
  b.kernel = s.launch.kernel;
  b.memory = &s.memory;
  b.threads = static_cast<std::uint32_t>(s.launch.block.count());
  b.shared_bytes = static_cast<std::uint32_t>(s.launch.kernel->static_shared_bytes + s.launch.dynamic_shared_bytes);
  b.first_tag = s.first_tag;
  b.many_tag = s.first_tag + 2 * (s.fences.tag_pairs() - 1);
  b.fences = &s.fences;
  b.read_sectors.clear();
  b.written_sectors.clear();
  prepare_block(b);
  Profile counts;
  const std::uint64_t blocks = s.launch.grid.count();
  for (std::uint64_t n = s.next++; n < blocks && !s.failed; n = s.next++) {
    try {
      begin_block(b, block_number(s, n));
      run_block(b);
      for (const Warp& w : b.warps) counts += w.counts;
      ++counts.blocks;
    } catch (...) {
      forget_clock(b);
      std::lock_guard lock(s.mutex);
      if (!s.error || n < s.failed_at) {
        s.error = std::current_exception();
        s.failed_at = n;
      }
      s.failed = true;
    }
  }
  std::lock_guard lock(s.mutex);
  s.counts += counts;
  s.read_sectors.insert(b.read_sectors);
  s.written_sectors.insert(b.written_sectors);
}

void shuffle_order(Shared& s) {
  if (s.launch.order != BlockOrder::kSeeded) return;
  s.order.resize(s.launch.grid.count());
  for (std::uint32_t n = 0; n < s.order.size(); ++n) s.order[n] = n;
  std::uint64_t state = s.launch.seed * 0x9E3779B97F4A7C15u + 1;
  for (std::size_t n = s.order.size(); n > 1; --n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(s.order[n - 1], s.order[(state >> 33) % n]);
  }
}

} // namespace

void fail(const Warp& w, const Instruction& i, int lane, ErrorKind kind, const std::string& what) {
  const Block& b = *w.block;
  throw MachineError(kind, what + " (kernel " + b.kernel->name + ", PTX line " + std::to_string(i.line) + ": " +
                               w.code->texts[i.text] + "; block " + text_of(b.at) + ", warp " +
                               std::to_string(w.index) + ", lane " + std::to_string(lane) + ")");
}

void run_block(Block& b) {
  const bool backward = b.launch->order == BlockOrder::kBackward;
  const auto count = b.warps.size();
  for (;;) {
    bool all_ended = true;
    for (std::size_t n = 0; n < count; ++n) {
      Warp& w = b.warps[backward ? count - 1 - n : n];
      while (w.live && !w.waiting) {
        run_warp(w);
        if (w.waiting) arrive(w);
      }
      all_ended &= w.live == 0;
    }
    if (all_ended) return;
    if (!open_barriers(b)) fail_deadlock(b);
  }
}

std::uint64_t variable_address(const GlobalVariable& variable, DeviceMemory& memory) {
  static std::mutex mutex;
  static std::map<std::pair<const DeviceMemory*, std::uint64_t>, std::uint64_t> addresses;
  std::lock_guard lock(mutex);
  std::uint64_t& address = addresses[{&memory, variable.id}];
  if (address == 0) {
    const auto made = memory.map(std::max<std::size_t>(variable.bytes, 1), "variable " + variable.name);
    if (!made) throw MachineError(ErrorKind::kLaunch, "no device memory is left for variable " + variable.name);
    address = *made;
    std::memcpy(memory.alias(address), variable.initial.data(), variable.initial.size());
    memory.mark_written(address, variable.bytes);
  }
  return address;
}

void run(const Launch& launch, DeviceMemory& memory) {
  check_launch(launch);
  const std::uint64_t blocks = launch.grid.count();
  Shared s{launch, memory};
  shuffle_order(s);
  const unsigned wanted = launch.threads ? launch.threads : std::max(1u, std::thread::hardware_concurrency());
  const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(wanted, blocks));
  parallel(threads, [&s] { run_blocks(s); });
  if (launch.counts) {
    s.counts.launches = 1;
    s.counts.memory_sectors = s.read_sectors.size() + s.written_sectors.size();
    *launch.counts += s.counts;
  }
  if (s.error) std::rethrow_exception(s.error);
}

} // namespace triax::gpu_stand_in
