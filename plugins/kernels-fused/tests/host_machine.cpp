// SPDX-License-Identifier: Apache-2.0
// Warp-level instructions, as the PTX ISA describes them.
#include "host_machine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "support/fibers.hpp"
#include "triax/error.hpp"

namespace triax::kernels_fused {

namespace {

constexpr std::size_t kGuard = 1024;
constexpr std::byte kPoison{0xFF}; // NaN in every floating-point type

/// Half `half` of a register, as a float.
float element(std::uint32_t pair, int half, bool bf16) {
  const auto bits = static_cast<std::uint16_t>(pair >> (16 * half));
  if (bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  return half_detail::f16_value(bits);
}

} // namespace

struct HostBlock::Scheduler {
  explicit Scheduler(std::mt19937& random) : fibers(random) {}
  test::Fibers fibers;
  std::vector<int> arrived; // by warp; the last entry counts the whole block
};

HostBlock::HostBlock(int threads, std::size_t shared_bytes, std::uint32_t seed)
    : threads_(threads),
      shared_bytes_(shared_bytes),
      memory_(shared_bytes + 2 * kGuard + 1024),
      random_(seed),
      operands_(static_cast<std::size_t>(threads)),
      scheduler_(std::make_unique<Scheduler>(random_)) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuard;
  shared_ = memory_.data() + kGuard + (1024 - address % 1024) % 1024;
}

HostBlock::~HostBlock() = default;

void HostBlock::run(std::int64_t index, std::int64_t count, const Body& body) {
  index_ = index;
  count_ = count;
  std::fill(memory_.begin(), memory_.end(), kPoison);
  scheduler_->arrived.assign(static_cast<std::size_t>(threads_) / 32 + 1, 0);
  for (Operands& each : operands_) each = {};
  scheduler_->fibers.run(threads_, [&](int thread) {
    HostMachine machine(*this, thread);
    body(machine);
  });
  const auto untouched = [](std::byte b) { return b == kPoison; };
  if (!std::all_of(memory_.data(), shared_, untouched) ||
      !std::all_of(shared_ + shared_bytes_, memory_.data() + memory_.size(), untouched)) {
    throw Error(text("block {} wrote beside its {} bytes of shared memory", index, shared_bytes_));
  }
}

/// The last thread to arrive executes the statement and wakes the others.
void HostBlock::meet(int thread, int first, int count) {
  int& arrived = scheduler_->arrived[count == 32 && threads_ != 32 ? static_cast<std::size_t>(first) / 32
                                                                   : scheduler_->arrived.size() - 1];
  if (++arrived < count) return scheduler_->fibers.wait(thread);
  arrived = 0;
  const Operands* own = &operands_[static_cast<std::size_t>(thread)];
  for (int other = first; other < first + count; ++other) {
    if (operands_[static_cast<std::size_t>(other)].what != own->what) {
      throw Error(text("threads {} and {} of a block are at different statements", thread, other));
    }
  }
  if (own->what != Together::block_barrier) perform(&operands_[static_cast<std::size_t>(first)]);
  for (int other = first; other < first + count; ++other) {
    operands_[static_cast<std::size_t>(other)].what = Together::none;
    if (other != thread) scheduler_->fibers.wake(other);
  }
}

void HostBlock::require_shared(const void* address, std::size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(address);
  if (at < shared_ || at + bytes > shared_ + shared_bytes_ || static_cast<std::size_t>(at - shared_) % bytes != 0) {
    throw Error(
        text("shared memory is read or written at byte {} of {}, {} bytes", at - shared_, shared_bytes_, bytes));
  }
}

void HostBlock::perform(Operands* lanes) const {
  const Together what = lanes->what;
  const bool bf16 = what == Together::multiply_bf16;
  switch (what) {
    case Together::shuffle: {
      float values[32];
      for (int lane = 0; lane < 32; ++lane) values[lane] = lanes[lane].value;
      for (int lane = 0; lane < 32; ++lane) lanes[lane].value = values[lanes[lane].lane % 32];
      break;
    }
    case Together::vote: {
      const bool any = std::any_of(lanes, lanes + 32, [](const Operands& lane) { return lane.flag; });
      for (int lane = 0; lane < 32; ++lane) lanes[lane].flag = any;
      break;
    }
    case Together::load:
    case Together::load_transposed: {
      // Lanes 8 m to 8 m + 7 provide the row addresses of matrix m. Lane l receives row l / 4, columns 2 (l % 4) and
      // the next.
      std::uint16_t elements[4][8][8];
      for (int lane = 0; lane < 32; ++lane) {
        require_shared(lanes[lane].row, 16);
        std::memcpy(elements[lane / 8][lane % 8], lanes[lane].row, 16);
      }
      for (int lane = 0; lane < 32; ++lane) {
        for (int m = 0; m < 4; ++m) {
          const int row = lane / 4, column = lane % 4 * 2;
          const bool turned = what == Together::load_transposed;
          const std::uint32_t low = turned ? elements[m][column][row] : elements[m][row][column];
          const std::uint32_t high = turned ? elements[m][column + 1][row] : elements[m][row][column + 1];
          lanes[lane].matrices[m] = low | high << 16;
        }
      }
      break;
    }
    case Together::multiply_bf16:
    case Together::multiply_f16: {
      float a[16][16], b[16][8];
      for (int lane = 0; lane < 32; ++lane) {
        const int group = lane / 4, in_group = lane % 4;
        for (int i = 0; i < 8; ++i) { // a0...a7, two per register
          const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
          const int column = in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);
          a[row][column] = element(lanes[lane].a[i / 2], i % 2, bf16);
        }
        for (int i = 0; i < 4; ++i) { // b0...b3
          const int row = in_group * 2 + (i & 1) + (i < 2 ? 0 : 8);
          b[row][group] = element(lanes[lane].b[i / 2], i % 2, bf16);
        }
      }
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) { // c0...c3
          const int row = i < 2 ? lane / 4 : lane / 4 + 8, column = lane % 4 * 2 + (i & 1);
          float sum = lanes[lane].d[i];
          for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
          lanes[lane].d[i] = sum;
        }
      }
      break;
    }
    default:
      throw Error("a statement that no lane has made");
  }
}

std::int64_t HostMachine::warps() const {
  return block_.threads_ / 32;
}
std::int64_t HostMachine::block() const {
  return block_.index_;
}
std::int64_t HostMachine::blocks() const {
  return block_.count_;
}
std::byte* HostMachine::shared() const {
  return block_.shared_;
}

void HostMachine::sync() {
  block_.operands_[static_cast<std::size_t>(thread_)].what = Together::block_barrier;
  block_.meet(thread_, 0, block_.threads_);
}

float HostMachine::from_lane(float value, int lane) {
  HostBlock::Operands& own = block_.operands_[static_cast<std::size_t>(thread_)];
  own.what = Together::shuffle;
  own.value = value;
  own.lane = lane;
  block_.meet(thread_, thread_ / 32 * 32, 32);
  return own.value;
}

bool HostMachine::any(bool value) {
  HostBlock::Operands& own = block_.operands_[static_cast<std::size_t>(thread_)];
  own.what = Together::vote;
  own.flag = value;
  block_.meet(thread_, thread_ / 32 * 32, 32);
  return own.flag;
}

void HostMachine::load_matrices(std::uint32_t (&to)[4], const void* row) {
  HostBlock::Operands& own = block_.operands_[static_cast<std::size_t>(thread_)];
  own.what = Together::load;
  own.row = row;
  own.matrices = to;
  block_.meet(thread_, thread_ / 32 * 32, 32);
}
void HostMachine::load_matrices_transposed(std::uint32_t (&to)[4], const void* row) {
  HostBlock::Operands& own = block_.operands_[static_cast<std::size_t>(thread_)];
  own.what = Together::load_transposed;
  own.row = row;
  own.matrices = to;
  block_.meet(thread_, thread_ / 32 * 32, 32);
}

void HostMachine::multiply(Together what, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  HostBlock::Operands& own = block_.operands_[static_cast<std::size_t>(thread_)];
  own.what = what;
  own.d = d;
  own.a = a;
  own.b[0] = b0;
  own.b[1] = b1;
  block_.meet(thread_, thread_ / 32 * 32, 32);
}

void HostMachine::require_aligned(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) throw Error(text("{} bytes are not aligned", bytes));
}

void HostMachine::copy(void* to, const void* from, std::size_t bytes, bool there) {
  block_.require_shared(to, bytes);
  require_aligned(from, bytes);
  const Copy copy{to, from, bytes, there};
  if (block_.coin()) {
    land(copy);
  } else {
    copies_.push_back(copy);
  }
}

void HostMachine::land(const Copy& copy) {
  if (copy.there) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  } else {
    std::memset(copy.to, 0, copy.bytes);
  }
}

void HostMachine::wait_copies() {
  for (const Copy& copy : copies_) land(copy);
  copies_.clear();
}

template <>
float HostMachine::exponential<float>(float x) const {
  return std::exp(x);
}
template <>
float HostMachine::exponential<Bf16>(float x) const {
  return std::exp2(x);
}
template <>
float HostMachine::exponential<F16>(float x) const {
  return std::exp2(x);
}
float HostMachine::logarithm(float x) const {
  return std::log(x);
}

} // namespace triax::kernels_fused
