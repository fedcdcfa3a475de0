// SPDX-License-Identifier: Apache-2.0
#include "support/host_cuda/launch.hpp"

#include <cuda_runtime.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "support/fibers.hpp"
#include "support/host_cuda/streams.hpp"
#include "triax/error.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace triax::test::host_cuda {

namespace {

constexpr unsigned kMaxThreads = 1024, kWarp = 32, kMaxRows = 65535, kAllLanes = 0xFFFFFFFFu;
constexpr unsigned kMaxBlocks = 0x7FFFFFFF;
constexpr int kPoison = 0xFF; // a NaN in every floating type

/// Threads of a block or warp that arrive at one barrier or shuffle together.
struct Meeting {
  const char* what = nullptr; // name of the first thread's operation
  Place at{};
  unsigned arrived = 0;
  std::vector<int> waiting{};
  bool any = false, all = true;
  unsigned ballot = 0;
};

/// Runs one block at a time: the emulated GPU.
class Machine {
 public:
  void seed(std::uint32_t seed) {
    const std::lock_guard lock(mutex_);
    random_.seed(seed);
  }
  void limit(unsigned most_blocks) {
    const std::lock_guard lock(mutex_);
    most_blocks_ = most_blocks;
  }
  void run(dim3 grid, dim3 block, std::span<char> shared, const std::function<void()>& kernel);

  bool meet_block(const char* what, bool mine, bool any, const Place& at);
  unsigned ballot(bool mine, const Place& at);
  unsigned long long shuffle(unsigned long long mine, unsigned from, const Place& at);

 private:
  void run_block(const std::function<void()>& kernel);
  /// Waits until `count` threads are here; true for the last one.
  bool meet(Meeting& meeting, unsigned count, const char* what, const Place& at);
  void release(Meeting& meeting);
  std::string who_waits() const;

  std::mutex mutex_;
  std::mt19937 random_{1};
  Fibers fibers_{random_};
  unsigned most_blocks_ = 0;
  unsigned threads_ = 0;
  int self_ = 0; // the running thread
  Meeting block_;
  bool answer_ = false; // result of the last block-wide vote
  std::array<Meeting, kMaxThreads / kWarp> warps_;
  std::array<unsigned long long, kMaxThreads> brought_{};
  std::array<unsigned, kMaxThreads> from_{};
};

Machine machine;

std::string text_of(const Place& at) {
  const std::string_view file = at.file;
  return text("{}:{}", file.substr(file.rfind('/') + 1), at.line);
}

uint3 place_of(std::uint64_t number, dim3 of) {
  return {static_cast<unsigned>(number % of.x), static_cast<unsigned>(number / of.x % of.y),
          static_cast<unsigned>(number / of.x / of.y)};
}

void Machine::run(dim3 grid, dim3 block, std::span<char> shared, const std::function<void()>& kernel) {
  const std::lock_guard lock(mutex_);
  if (most_blocks_ != 0) grid = dim3(std::min(grid.x, most_blocks_), grid.y, grid.z);
  threads_ = block.x * block.y * block.z;
  gridDim = grid;
  blockDim = block;
  std::vector<std::uint64_t> order(std::uint64_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random_);
  for (const std::uint64_t number : order) {
    blockIdx = place_of(number, grid);
    std::memset(shared.data(), kPoison, shared.size());
    run_block(kernel);
  }
}

void Machine::run_block(const std::function<void()>& kernel) {
  block_ = {};
  for (unsigned warp = 0; warp < (threads_ + kWarp - 1) / kWarp; ++warp) warps_[warp] = {};
  try {
    fibers_.run(static_cast<int>(threads_), [&](int thread) {
      self_ = thread;
      threadIdx = place_of(static_cast<std::uint64_t>(thread), blockDim);
      kernel();
    });
  } catch (const Error& error) {
    throw Error(text("block {}, {}, {}: {}{}", blockIdx.x, blockIdx.y, blockIdx.z, error.message(), who_waits()));
  }
}

std::string Machine::who_waits() const {
  std::string out;
  if (block_.arrived > 0) out += text("; {} at {}, {}", block_.arrived, block_.what, text_of(block_.at));
  for (std::size_t warp = 0; warp < warps_.size(); ++warp) {
    const Meeting& one = warps_[warp];
    if (one.arrived > 0) out += text("; {} of warp {} at {}, {}", one.arrived, warp, one.what, text_of(one.at));
  }
  return out;
}

bool Machine::meet(Meeting& meeting, unsigned count, const char* what, const Place& at) {
  if (meeting.arrived == 0) {
    meeting.what = what;
    meeting.at = at;
  } else if (meeting.at.line != at.line || (meeting.at.file != at.file && std::strcmp(meeting.at.file, at.file) != 0)) {
    throw Error(text("thread {} is at {}, {}", self_, what, text_of(at)));
  }
  if (++meeting.arrived == count) return true;
  const int self = self_;
  const uint3 place = threadIdx;
  meeting.waiting.push_back(self);
  fibers_.wait(self);
  self_ = self;
  threadIdx = place;
  return false;
}

void Machine::release(Meeting& meeting) {
  for (const int thread : meeting.waiting) fibers_.wake(thread);
  meeting.waiting.clear();
  meeting.arrived = 0;
  meeting.any = false;
  meeting.all = true;
  meeting.ballot = 0;
}

bool Machine::meet_block(const char* what, bool mine, bool any, const Place& at) {
  block_.any = block_.any || mine;
  block_.all = block_.all && mine;
  if (meet(block_, threads_, what, at)) {
    answer_ = any ? block_.any : block_.all;
    release(block_);
  }
  return answer_; // no other vote starts before all have read it
}

unsigned Machine::ballot(bool mine, const Place& at) {
  const auto self = static_cast<unsigned>(self_), first = self / kWarp * kWarp;
  Meeting& warp = warps_[self / kWarp];
  if (mine) warp.ballot |= 1u << (self % kWarp);
  if (meet(warp, kWarp, "a ballot", at)) {
    for (unsigned lane = 0; lane < kWarp; ++lane) brought_[first + lane] = warp.ballot;
    release(warp);
  }
  return static_cast<unsigned>(brought_[self]);
}

unsigned long long Machine::shuffle(unsigned long long mine, unsigned from, const Place& at) {
  const auto self = static_cast<unsigned>(self_), first = self / kWarp * kWarp;
  Meeting& warp = warps_[self / kWarp];
  brought_[self] = mine;
  from_[self] = from;
  if (meet(warp, kWarp, "a shuffle", at)) {
    std::array<unsigned long long, kWarp> all{};
    std::copy_n(brought_.begin() + first, kWarp, all.begin());
    for (unsigned lane = 0; lane < kWarp; ++lane) brought_[first + lane] = all[from_[first + lane] % kWarp];
    release(warp);
  }
  return brought_[self];
}

/// The thread_local memory of the library that contains `inside`.
std::span<char> thread_local_memory(const char* inside) {
  struct Search {
    const char* inside;
    std::span<char> found{};
  } search{inside};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          auto* begin = static_cast<char*>(info->dlpi_tls_data);
          if (part.p_type != PT_TLS || !begin) continue;
          if (wanted.inside >= begin && wanted.inside < begin + part.p_memsz) wanted.found = {begin, part.p_memsz};
        }
        return 0;
      },
      &search);
  TRIAX_REQUIRE(!search.found.empty(), "the shared memory of a kernel is not found");
  return search.found;
}

[[noreturn]] void refuse_lanes(unsigned mask, const Place& at) {
  throw Error(text("{}: lanes {} alone; here only all of a warp", text_of(at), mask));
}

bool fits(const cudaLaunchConfig_t& config) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const auto within = [](unsigned value, unsigned most) { return value > 0 && value <= most; };
  return within(grid.x, kMaxBlocks) && within(grid.y, kMaxRows) && within(grid.z, kMaxRows) &&
         within(block.x, kMaxThreads) && within(block.y, kMaxThreads) && within(block.z, 64) &&
         std::uint64_t{block.x} * block.y * block.z <= kMaxThreads;
}

} // namespace

void set_seed(std::uint32_t seed) {
  machine.seed(seed);
}
void set_most_blocks(unsigned most) {
  machine.limit(most);
}

cudaError_t launch(const cudaLaunchConfig_t& config, const char* in_shared, std::function<void()> kernel) {
  if (!fits(config)) return failed_with(cudaErrorInvalidConfiguration);
  TRIAX_REQUIRE(config.dynamicSmemBytes == 0 && config.numAttrs == 0,
                "a launch with dynamic shared memory or attributes: CUDA of the host has none");
  put(config.stream, [grid = config.gridDim, block = config.blockDim, in_shared, kernel = std::move(kernel)] {
    machine.run(grid, block, thread_local_memory(in_shared), kernel);
  });
  return cudaSuccess;
}

void block_barrier(const Place& at) {
  machine.meet_block("a barrier", false, true, at);
}
bool block_any(bool mine, const Place& at) {
  return machine.meet_block("a barrier", mine, true, at);
}
bool block_all(bool mine, const Place& at) {
  return machine.meet_block("a barrier", mine, false, at);
}
unsigned warp_ballot(unsigned mask, bool mine, const Place& at) {
  if (mask != kAllLanes) refuse_lanes(mask, at);
  return machine.ballot(mine, at);
}
unsigned long long warp_shuffle(unsigned mask, unsigned long long mine, unsigned from, const Place& at) {
  if (mask != kAllLanes) refuse_lanes(mask, at);
  return machine.shuffle(mine, from, at);
}

} // namespace triax::test::host_cuda
