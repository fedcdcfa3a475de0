// SPDX-License-Identifier: Apache-2.0
// ldmatrix and mma.m16n8k16. A product's row is c + (a0 b0 + a1 b1 + ...): the sum of products is rounded after each
// addition, in the order of k, and c is added last.
#include "profile.hpp"
#include "shared_hazards.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

void check_warp(Warp& w, const Instruction& i, std::uint32_t lanes) {
  if (lanes != kAllLanes)
    fail(w, i, __builtin_ctz(~lanes), ErrorKind::kDivergence,
         "lane does not take part; the instruction needs all 32 lanes of the warp");
}

void load_matrices(Warp& w, const Instruction& i, std::uint32_t lanes) {
  check_warp(w, i, lanes);
  Block& b = *w.block;
  std::uint64_t addresses[kLanes];
  for (int l = 0; l < kLanes; ++l) addresses[l] = w.value(i.o[0], l) + static_cast<std::uint64_t>(i.displacement);
  if (b.launch->profile) {
    count_access(w, Space::kShared, Access::kRead, addresses, i.vec == 4 ? kAllLanes : (1u << 8 * i.vec) - 1, 16);
  }
  for (int matrix = 0; matrix < i.vec; ++matrix) {
    alignas(64) std::uint16_t rows[8][8];
    for (int r = 0; r < 8; ++r) {
      const int lane = matrix * 8 + r;
      const std::uint64_t address = addresses[lane];
      if (address % 16)
        fail(w, i, lane, ErrorKind::kMisalignedAddress,
             "shared address " + std::to_string(address) + " is not a multiple of 16");
      if (address >= b.shared_bytes || 16 > b.shared_bytes - address) {
        fail(w, i, lane, ErrorKind::kIllegalAddress,
             "reads 16 bytes at shared address " + std::to_string(address) + "; the block has " +
                 std::to_string(b.shared_bytes) + " bytes of shared memory");
      }
      check_shared_row(w, i, lane, static_cast<std::uint32_t>(address));
      std::memcpy(rows[r], b.shared_at(static_cast<std::uint32_t>(address)), 16);
    }
    auto* to = w.at<std::uint32_t>(i.o[1 + matrix]);
    if (!i.trans) {
      std::memcpy(to, rows, sizeof(rows));
      continue;
    }
    for (int l = 0; l < kLanes; ++l) to[l] = std::uint32_t{rows[l % 4 * 2 + 1][l / 4]} << 16 | rows[l % 4 * 2][l / 4];
  }
}

using Row8 = float __attribute__((vector_size(32)));

// Lanes 4 g to 4 g + 3 of a register of A or B hold eight adjacent elements of row (or column) g.
template <class T>
void multiply(Warp& w, const Instruction& i, std::uint32_t lanes) {
  check_warp(w, i, lanes);
  ++w.counts.mma;
  alignas(64) float a[4][64], b[2][64], rows[16][8], columns[16][8];
  auto widen = [&](Ref ref, float* to) {
    const auto* from = w.at<const std::uint16_t>(ref);
    for (int n = 0; n < 64; ++n) to[n] = to_float(T{from[n]});
  };
  for (int r = 0; r < 4; ++r) widen(i.o[4 + r], a[r]);
  for (int r = 0; r < 2; ++r) widen(i.o[8 + r], b[r]);
  for (int k = 0; k < 8; ++k) {
    for (int n = 0; n < 8; ++n) {
      columns[k][n] = b[0][n * 8 + k];
      columns[k + 8][n] = b[1][n * 8 + k];
    }
  }
  // Eight rows at a time, so that their additions do not wait for each other.
  for (int upper = 0; upper < 2; ++upper) {
    Row8 sums[8] = {};
    for (int k = 0; k < 16; ++k) {
      Row8 column;
      std::memcpy(&column, columns[k], sizeof(column));
      const float* x = a[upper + k / 8 * 2] + k % 8;
      for (int g = 0; g < 8; ++g) sums[g] += x[g * 8] * column;
    }
    std::memcpy(rows[upper * 8], sums, sizeof(sums));
  }
  alignas(64) float results[4][kLanes];
  for (int r = 0; r < 4; ++r) {
    const auto* c = w.at<const float>(i.o[10 + r]);
    for (int l = 0; l < kLanes; ++l) results[r][l] = c[l] + rows[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)];
  }
  for (int r = 0; r < 4; ++r) std::memcpy(w.at<float>(i.o[r]), results[r], sizeof(results[r]));
}

} // namespace

Execute choose_matrix(const Instruction& i) {
  if (i.op == Op::kLdmatrix) return i.count == 1 + i.vec && i.space == Space::kShared ? load_matrices : nullptr;
  if (i.count != 14) return nullptr;
  return i.type2 == Type::kBf16 ? multiply<Brain> : multiply<Half>;
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
