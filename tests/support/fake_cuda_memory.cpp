// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cuda_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "support/fake_cuda_device.hpp"
#include "triax/error.hpp"

namespace triax::test::fake_cuda {

namespace {

struct Listed {
  std::uintptr_t end = 0;
  std::byte* alias = nullptr; // alias of the begin
  Place place = Place::plain;
};

/// One list per process, as the driver has for addresses.
struct List {
  std::mutex mutex;
  std::map<std::uintptr_t, Listed> blocks; // by begin address
};
List& list() {
  static List all;
  return all;
}

std::uintptr_t number_of(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// The block that contains an address, and the block's begin.
std::pair<std::uintptr_t, Listed> find(const void* inside) {
  const std::lock_guard lock(list().mutex);
  const auto& blocks = list().blocks;
  auto after = blocks.upper_bound(number_of(inside));
  if (after == blocks.begin()) return {};
  --after;
  if (number_of(inside) >= after->second.end) return {};
  return *after;
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes / page + 1) * page; // an empty block has an address too
}

constexpr std::size_t kFilledBytes = std::size_t{1} << 20;

/// A file of 0xFF bytes, which are NaNs in floating-point types.
int filled_file() {
  static const int file = [] {
    const int made = ::memfd_create("fake CUDA device", MFD_CLOEXEC);
    const std::vector<std::byte> bytes(kFilledBytes, std::byte{0xFF});
    if (made < 0 || ::write(made, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw Error("no memory for the contents of new blocks of the fake CUDA device");
    return made;
  }();
  return file;
}

/// Maps private copies of the file: untouched pages cost nothing.
bool map_filled(std::byte* pages, std::size_t length) {
  for (std::size_t begin = 0; begin < length; begin += kFilledBytes) {
    const std::size_t size = std::min(kFilledBytes, length - begin);
    if (::mmap(pages + begin, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, filled_file(), 0) == MAP_FAILED)
      return false;
  }
  return true;
}

} // namespace

Place place_of(const void* inside) {
  return find(inside).second.place;
}

TensorView alias_of(const TensorView& view) {
  std::array<std::int64_t, kMaxRank> strides{};
  for (int dim = 0; dim < view.rank(); ++dim) strides[static_cast<std::size_t>(dim)] = view.stride(dim);
  return {host_alias(view.data()), view.dtype(), view.shape(), strides};
}

Block::Block(std::size_t bytes, MemoryKind kind) {
  const std::size_t length = whole_pages(bytes), guard = whole_pages(0);
  const bool apart = kind == MemoryKind::device;
  mapped_ = apart ? 2 * length + guard : length + guard;
  void* pages = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || !map_filled(static_cast<std::byte*>(pages), length)) {
    throw Error(text("the machine has no {} bytes left for the fake CUDA device", bytes));
  }
  pages_ = static_cast<std::byte*>(pages);
  data_ = apart ? pages_ + length : pages_;
  if (kind == MemoryKind::host) return;
  const std::lock_guard lock(list().mutex);
  list().blocks[number_of(data_)] = {number_of(data_) + length, pages_, apart ? Place::device : Place::pinned};
}

void Block::unlist() noexcept {
  const std::lock_guard lock(list().mutex);
  list().blocks.erase(number_of(data_));
}

Block::~Block() {
  unlist();
  ::munmap(pages_, mapped_);
}

void Freeing::take(std::unique_ptr<Block> block, Done done) {
  block->unlist(); // later items do not find it
  entries_.push_back({std::move(block), std::move(done)});
  sweep();
}

void Freeing::sweep() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.done(); });
}

} // namespace triax::test::fake_cuda

namespace triax::test {

void* host_alias(void* inside) {
  const auto [begin, block] = fake_cuda::find(inside);
  if (block.end == 0) return inside;
  return block.alias + (fake_cuda::number_of(inside) - begin);
}

} // namespace triax::test
