// SPDX-License-Identifier: Apache-2.0
// Blocks of offloaded state, and the order in which they are read and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "executor/offload_layout.hpp"
#include "executor/offload_stream.hpp"
#include "support/error_of.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {
namespace {

using Updated = OffloadLayout::Updated;
using ::testing::HasSubstr;

/// Elements of each parameter, by block.
std::vector<std::map<std::size_t, std::int64_t>> counts(const OffloadLayout& layout) {
  std::vector<std::map<std::size_t, std::int64_t>> out;
  for (const OffloadBlock& block : layout.blocks()) {
    out.emplace_back();
    for (std::size_t i = block.first; i < block.end; ++i)
      out.back()[layout.pieces()[i].parameter] += layout.pieces()[i].count;
  }
  return out;
}

/// Pieces of a parameter follow one another; tensors and blocks do not overlap.
void expect_disjoint(const OffloadLayout& layout, std::size_t tensors) {
  std::map<std::size_t, std::int64_t> next;
  std::uint64_t end = 0;
  for (const OffloadBlock& block : layout.blocks()) {
    EXPECT_EQ(block.offset % 4096, 0u);
    EXPECT_GE(block.offset, end);
    end = block.offset + block.bytes;
    std::size_t used = 0;
    for (std::size_t i = block.first; i < block.end; ++i) {
      const OffloadedPiece& piece = layout.pieces()[i];
      EXPECT_EQ(piece.first, next[piece.parameter]);
      next[piece.parameter] += piece.count;
      EXPECT_EQ(piece.offset, used);
      EXPECT_GE(piece.stride, static_cast<std::size_t>(piece.count) * 4);
      used += tensors * piece.stride;
    }
    EXPECT_EQ(used, block.bytes);
  }
  EXPECT_EQ(end, layout.bytes());
}

TEST(OffloadLayout, DividesLargeParametersAndJoinsSmallOnes) {
  OffloadLayout layout({.tensors = 2, .buffer_bytes = 4096});
  layout.add_stage(0, std::vector<Updated>{{0, 600}, {1, 10}, {2, 0}, {3, 20}});
  layout.add_stage(1, std::vector<Updated>{{4, 512}, {5, 1}});
  expect_disjoint(layout, 2);
  using Of = std::map<std::size_t, std::int64_t>;
  EXPECT_EQ(counts(layout), (std::vector<Of>{{{0, 512}}, {{0, 88}, {1, 10}, {3, 20}}, {{4, 512}}, {{5, 1}}}));
  EXPECT_EQ(layout.blocks()[1].stage, 0);
  EXPECT_EQ(layout.blocks()[2].stage, 1);
}

/// A buffer that is smaller than one unit of each tensor is exceeded.
TEST(OffloadLayout, HasAtLeastOneUnitOfEachTensor) {
  OffloadLayout layout({.tensors = 20, .buffer_bytes = 4096});
  layout.add_stage(0, std::vector<Updated>{{0, 100}});
  expect_disjoint(layout, 20);
  ASSERT_EQ(layout.blocks().size(), 2u);
  EXPECT_EQ(layout.blocks().front().bytes, 20u * 256u);
}

TEST(OffloadLayout, KeepsWholeParametersForOptimizersThatNeedThem) {
  OffloadLayout layout({.tensors = 3, .buffer_bytes = 4096, .divides = false});
  layout.add_stage(0, std::vector<Updated>{{0, 6000}, {1, 0}, {2, 3}});
  expect_disjoint(layout, 3);
  using Of = std::map<std::size_t, std::int64_t>;
  EXPECT_EQ(counts(layout), (std::vector<Of>{{{0, 6000}}, {{1, 0}}, {{2, 3}}}));
}

class MemoryStorage final : public StateStorage {
 public:
  explicit MemoryStorage(std::size_t bytes) : bytes_(bytes) {}
  void read(std::uint64_t offset, std::span<std::byte> to) override {
    if (++reads > fails_after) throw Error("cannot be read", "a file, byte 7", "choose another folder");
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }
  void write(std::uint64_t offset, std::span<const std::byte> from) override {
    ++writes;
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
  }
  std::byte& operator[](std::size_t at) { return bytes_.at(at); }
  std::atomic<int> reads = 0, writes = 0;
  int fails_after = 1000000;

 private:
  std::vector<std::byte> bytes_;
};

/// Blocks of 8 bytes.
class Streamed {
 public:
  Streamed(StateStorage& storage, std::size_t blocks) : bytes_(8 * OffloadStream::kMaxBuffers) {
    for (std::size_t i = 0; i < blocks; ++i) blocks_.push_back({.offset = 8 * i, .bytes = 8});
    std::vector<std::span<std::byte>> buffers;
    for (std::size_t i = 0; i < std::min(blocks, OffloadStream::kMaxBuffers); ++i)
      buffers.push_back(std::span(bytes_).subspan(8 * i, 8));
    stream_.emplace(storage, blocks_, buffers);
  }
  /// Adds 1 to the first byte of each block.
  void step() {
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      stream_->acquire(block, *device_, deadline_in(60));
      std::byte& first = bytes_[8 * (block % std::min(blocks_.size(), OffloadStream::kMaxBuffers))];
      first = static_cast<std::byte>(static_cast<int>(first) + 1);
      stream_->release(block, true);
    }
  }
  void finish() { stream_->finish(*device_, deadline_in(60)); }
  OffloadStream& operator*() { return *stream_; }

 private:
  const std::unique_ptr<Device> device_ = make_host_device();
  std::vector<OffloadBlock> blocks_;
  std::vector<std::byte> bytes_;
  std::optional<OffloadStream> stream_;
};

TEST(OffloadStream, UpdatesEachBlockOnceInAStep) {
  for (const std::size_t blocks : {1, 2, 3, 4, 7}) {
    MemoryStorage storage(8 * blocks);
    Streamed streamed(storage, blocks);
    for (int step = 0; step < 5; ++step) streamed.step();
    streamed.finish();
    for (std::size_t block = 0; block < blocks; ++block) EXPECT_EQ(storage[8 * block], std::byte{5}) << blocks;
    EXPECT_EQ(storage.writes, static_cast<int>(5 * blocks));
  }
}

TEST(OffloadStream, ReadsAheadForTheNextStepAndAgainAfterAChange) {
  MemoryStorage storage(8 * 7);
  Streamed streamed(storage, 7);
  streamed.step();
  streamed.finish();
  EXPECT_EQ(storage.reads, 7 + 3);
  (*streamed).discard();
  for (std::size_t block = 0; block < 7; ++block) storage[8 * block] = std::byte{100};
  streamed.step();
  streamed.finish();
  for (std::size_t block = 0; block < 7; ++block) EXPECT_EQ(storage[8 * block], std::byte{101}) << block;
}

/// Reads only once the rank has polled, and notes whether it seems to wait for other ranks.
class LateStorage final : public StateStorage, public ProgressSource {
 public:
  void read(std::uint64_t, std::span<std::byte> to) override {
    while (polls < 2) std::this_thread::yield();
    seems_to_wait = activity.polled_wait() % 2 != 0;
    std::ranges::fill(to, std::byte{0});
  }
  void write(std::uint64_t, std::span<const std::byte>) override {}
  void progress() noexcept override { ++polls; }

  RankActivity activity;
  std::atomic<int> polls = 0;
  std::atomic<bool> seems_to_wait = false;
};

/// A disk that hangs is the fault of its rank, not of ranks that it waits for.
TEST(OffloadStream, ARankThatWaitsForItsDiskDoesNotWaitForOtherRanks) {
  LateStorage storage;
  const RankActivity::Binding bound(storage.activity);
  const std::unique_ptr<Device> device = make_host_device();
  device->add_source(storage);
  const std::vector<OffloadBlock> blocks = {{.offset = 0, .bytes = 8}};
  std::vector<std::byte> bytes(8);
  const std::vector<std::span<std::byte>> buffers = {bytes};
  OffloadStream stream(storage, blocks, buffers);
  stream.acquire(0, *device, deadline_in(60));
  EXPECT_FALSE(storage.seems_to_wait);
  device->remove_source(storage);
}

TEST(OffloadStream, TimesOutWithTheKeyOfTheFolder) {
  LateStorage storage;
  const std::unique_ptr<Device> device = make_host_device();
  const std::vector<OffloadBlock> blocks = {{.offset = 0, .bytes = 8}};
  std::vector<std::byte> bytes(8);
  const std::vector<std::span<std::byte>> buffers = {bytes};
  OffloadStream stream(storage, blocks, buffers);
  EXPECT_THAT(test::error_of([&] { stream.acquire(0, *device, deadline_in(0.01)); }),
              HasSubstr("timed out waiting for offloaded state\n  the disk of memory.offload_path"));
  storage.polls = 2; // ends the read
}

TEST(OffloadStream, ThrowsTheErrorOfTheStorageEachTime) {
  MemoryStorage storage(8 * 7);
  storage.fails_after = 9;
  Streamed streamed(storage, 7);
  for (int call = 0; call < 2; ++call) {
    const std::string error = test::error_of([&] {
      for (int step = 0; step < 3; ++step) streamed.step();
    });
    EXPECT_THAT(error, HasSubstr("a file, byte 7"));
  }
}

} // namespace
} // namespace triax::executor
