// SPDX-License-Identifier: Apache-2.0
// The host machine (host_machine.hpp): warp statements follow the PTX ISA, and errors in a kernel's source are
// detected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "host_machine.hpp"
#include "support/error_of.hpp"
#include "triax/random.hpp"

namespace triax::kernels_fused {
namespace {

constexpr std::size_t kShared = 4096;

float small(std::uint64_t i) { // exact in 16 bits; sums of products are exact in f32
  return static_cast<float>(philox_at({7, 7}, i, 0, 0)[i % 4] % 17) - 8;
}

/// d = a b + c of whole matrices through ldmatrix and mma, as in a kernel. a is stored by rows; b by rows if
/// `b_in_rows`, else by columns.
template <class T>
void expect_product(bool b_in_rows) {
  float a[16][16], b[16][8], c[16][8], d[16][8];
  for (std::uint64_t i = 0; i < 256; ++i) a[i / 16][i % 16] = small(i);
  for (std::uint64_t i = 0; i < 128; ++i) b[i / 8][i % 8] = small(1000 + i);
  for (std::uint64_t i = 0; i < 128; ++i) c[i / 8][i % 8] = small(2000 + i);
  HostBlock block(32, kShared, 3);
  block.run(0, 1, [&](HostMachine& machine) {
    T* at = reinterpret_cast<T*>(machine.shared()); // a [16][16], then b [16][16], partly unset (NaN)
    if (machine.lane() == 0) {
      for (int row = 0; row < 16; ++row)
        for (int k = 0; k < 16; ++k) at[16 * row + k] = T(a[row][k]);
      for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 8; ++n) at[256 + (b_in_rows ? 16 * k + n : 16 * n + k)] = T(b[k][n]);
    }
    machine.sync();
    const int lane = machine.lane(), group = lane / 4, pair = lane % 4 * 2;
    std::uint32_t x[4], y[4];
    machine.load_matrices(x, at + 16 * (lane % 16) + lane / 16 * 8);
    if (b_in_rows) {
      machine.load_matrices_transposed(y, at + 256 + 16 * (lane % 16));
    } else {
      machine.load_matrices(y, at + 256 + 16 * (lane % 8) + lane / 8 % 2 * 8);
    }
    float held[4] = {c[group][pair], c[group][pair + 1], c[group + 8][pair], c[group + 8][pair + 1]};
    machine.multiply<T>(held, x, y[0], y[1]);
    for (int i = 0; i < 4; ++i) d[group + i / 2 * 8][pair + i % 2] = held[i];
  });
  for (int row = 0; row < 16; ++row) {
    for (int n = 0; n < 8; ++n) {
      float want = c[row][n];
      for (int k = 0; k < 16; ++k) want += a[row][k] * b[k][n];
      EXPECT_EQ(d[row][n], want) << row << ", " << n;
    }
  }
}

TEST(HostMachine, MultipliesMatrices) {
  expect_product<Bf16>(false);
  expect_product<Bf16>(true);
  expect_product<F16>(false);
  expect_product<F16>(true);
}

TEST(HostMachine, PassesNumbersBetweenLanes) {
  HostBlock block(64, kShared, 3);
  int wrong = 0;
  block.run(5, 9, [&](HostMachine& machine) {
    const auto own = static_cast<float>(machine.thread());
    if (machine.from_neighbour(own, 2) != static_cast<float>(machine.thread() ^ 2)) ++wrong;
    if (machine.from_lane(own, 7) != static_cast<float>(machine.warp() * 32 + 7)) ++wrong;
    if (machine.any(machine.thread() == 40) != (machine.warp() == 1)) ++wrong;
    if (machine.block() != 5 || machine.blocks() != 9 || machine.warps() != 2) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

/// Thread i writes an element and reads another warp's. Without a barrier or wait, the seed decides what it reads.
int wrong_without(bool barrier, bool wait, std::uint32_t seed) {
  HostBlock block(64, kShared, seed);
  alignas(16) float from[64];
  for (int i = 0; i < 64; ++i) from[i] = static_cast<float>(i);
  int wrong = 0;
  block.run(0, 1, [&](HostMachine& machine) {
    auto* shared = reinterpret_cast<float*>(machine.shared());
    const int i = machine.thread();
    machine.copy_word(shared + i, from + i, true);
    if (wait) machine.wait_copies();
    if (barrier) machine.sync();
    if (shared[(i + 33) % 64] != from[(i + 33) % 64]) ++wrong;
  });
  return wrong;
}

TEST(HostMachine, ShowsThatABarrierOrAWaitIsMissing) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(wrong_without(true, true, seed), 0);
    EXPECT_GT(wrong_without(false, true, seed), 0);
    EXPECT_GT(wrong_without(true, false, seed), 0);
  }
}

TEST(HostMachine, RefusesWhatAGpuDoesNotAllow) {
  const auto fault = [](const HostBlock::Body& body) {
    HostBlock block(64, kShared, 3);
    return triax::test::error_of([&] { block.run(0, 1, body); });
  };
  EXPECT_THAT(fault([](HostMachine& machine) {
                if (machine.thread() != 3) machine.sync();
              }),
              ::testing::HasSubstr("63 of 64 threads wait for others that do not come"));
  EXPECT_THAT(fault([](HostMachine& machine) {
                if (machine.lane() == 3) {
                  machine.any(true);
                } else {
                  machine.from_lane(1, 0);
                }
              }),
              ::testing::HasSubstr("are at different statements"));
  EXPECT_THAT(fault([](HostMachine& machine) {
                std::uint32_t to[4];
                machine.load_matrices(to, machine.shared() + 8 * machine.lane());
              }),
              ::testing::HasSubstr("shared memory is read or written at byte"));
  EXPECT_THAT(fault([](HostMachine& machine) { std::memset(machine.shared() + kShared, 0, 1); }),
              ::testing::HasSubstr("wrote beside its 4096 bytes"));
}

} // namespace
} // namespace triax::kernels_fused
