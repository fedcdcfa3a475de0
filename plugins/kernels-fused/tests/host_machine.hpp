// SPDX-License-Identifier: Apache-2.0
// Emulates a GPU thread block on the host. It runs the source of attention's kernels without a GPU.
//
// Threads: a block runs on the calling thread; each of its GPU threads is a fiber. Ownership: the block owns stacks and
// shared memory. Blocking: never. Errors: Error for what a GPU forbids or leaves undefined: lanes of a warp at
// different statements, threads that exit while others wait for them, shared memory addresses that are out of bounds or
// misaligned. A seed decides at random what the source leaves open: which thread runs next, and whether an asynchronous
// copy completes at once or only in the wait. A missing barrier or wait therefore gives wrong numbers. Shared memory is
// initialised with NaN.
//
// Fragment layouts follow the PTX ISA (7.0): "Matrix fragments for mma.m16n8k16 with floating point type" and
// "Warp-level matrix load instruction: ldmatrix".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "triax/half.hpp"

namespace triax::kernels_fused {

/// Statements that all threads of a warp or block execute together.
enum class Together : std::uint8_t {
  none,
  block_barrier,
  shuffle,
  vote,
  load,
  load_transposed,
  multiply_bf16,
  multiply_f16
};

class HostBlock;

/// One thread of a block: the `Machine` of attention_steps.hpp.
class HostMachine {
 public:
  HostMachine(HostBlock& block, int thread) : block_(block), thread_(thread) {}

  int thread() const { return thread_; }
  int lane() const { return thread_ % 32; }
  int warp() const { return thread_ / 32; }
  std::int64_t warps() const;
  std::int64_t block() const;
  std::int64_t blocks() const;
  std::byte* shared() const;
  void sync();

  float from_lane(float value, int lane);
  float from_neighbour(float value, int distance) { return from_lane(value, lane() ^ distance); }
  bool any(bool value);
  void load_matrices(std::uint32_t (&to)[4], const void* row);
  void load_matrices_transposed(std::uint32_t (&to)[4], const void* row);
  template <class T>
  void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    multiply(std::is_same_v<T, Bf16> ? Together::multiply_bf16 : Together::multiply_f16, d, a, b0, b1);
  }

  void copy_piece(void* to, const void* from, bool there) { copy(to, from, 16, there); }
  void copy_word(void* to, const void* from, bool there) { copy(to, from, 4, there); }
  void wait_copies();

  template <class T>
  float exponential(float x) const;
  float logarithm(float x) const;
  template <class T>
  float value(T x) const {
    return static_cast<float>(x);
  }
  template <class T>
  std::uint32_t pack(float one, float two) const {
    return T(one).bits | static_cast<std::uint32_t>(T(two).bits) << 16;
  }
  template <class T>
  void store_pair(T* to, float one, float two) const {
    require_aligned(to, 2 * sizeof(T));
    to[0] = T(one);
    to[1] = T(two);
  }
  template <class T>
  void store_one(T* to, float value) const {
    *to = T(value);
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    bool there;
  };
  void multiply(Together what, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
  void copy(void* to, const void* from, std::size_t bytes, bool there);
  static void land(const Copy& copy);
  static void require_aligned(const void* address, std::size_t bytes);

  HostBlock& block_;
  int thread_;
  std::vector<Copy> copies_; // pending
};

/// Runs the blocks of one launch, one after another.
class HostBlock {
 public:
  HostBlock(int threads, std::size_t shared_bytes, std::uint32_t seed);
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  using Body = std::function<void(HostMachine&)>;
  /// Block `index` of `count`.
  void run(std::int64_t index, std::int64_t count, const Body& body);

 private:
  friend class HostMachine;
  /// Inputs and outputs of one lane in a statement of its warp.
  struct Operands {
    Together what = Together::none;
    float value = 0;           // shuffle
    int lane = 0;              // shuffle
    bool flag = false;         // vote
    const void* row = nullptr; // load
    std::uint32_t* matrices = nullptr;
    float* d = nullptr; // multiply
    const std::uint32_t* a = nullptr;
    std::uint32_t b[2] = {};
  };
  struct Scheduler;

  void meet(int thread, int first, int count); // waits until threads [first, first + count) arrive
  void perform(Operands* lanes) const;
  void require_shared(const void* address, std::size_t bytes) const;
  bool coin() { return random_() % 2 == 0; }

  int threads_;
  std::size_t shared_bytes_;
  std::vector<std::byte> memory_; // shared memory, with guard bytes before and after
  std::byte* shared_;
  std::mt19937 random_;
  std::int64_t index_ = 0, count_ = 0;
  std::vector<Operands> operands_;
  std::unique_ptr<Scheduler> scheduler_;
};

} // namespace triax::kernels_fused
