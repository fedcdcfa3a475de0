// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: a number depends on what it is for, never on who computes it or when.
//
// Threads: pure functions. Ownership, blocking, errors: none.
// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11). The key comes from
// the run's seed and a purpose. The counter's four words are: element/4 in the global tensor (64 bits), layer*16 +
// site, running number of the sample since step 0. Element e uses word e % 4 of its block. So dropout masks and initial
// weights are the same under every layout, microbatch size and schedule.
#pragma once

#include <array>
#include <cstdint>

#include "triax/export.hpp"

namespace triax {

/// The purpose of random numbers: a part of the key.
enum class RandomPurpose : std::uint32_t { weights = 1, dropout = 2, data = 3, test = 4 };

/// Key of the generator: 64 bits.
struct PhiloxKey {
  std::uint32_t lo = 0, hi = 0;
  bool operator==(const PhiloxKey&) const = default;
};

/// A counter, or the four random words of a counter.
using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Ten rounds. Inline and integer-only: kernel sets for any device may use it. The words are variables, because
/// compilers that do not optimize call a function for each access to an array.
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) noexcept {
  std::uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * x0;
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * x2;
    x0 = static_cast<std::uint32_t>(b >> 32) ^ x1 ^ key.lo;
    x1 = static_cast<std::uint32_t>(b);
    x2 = static_cast<std::uint32_t>(a >> 32) ^ x3 ^ key.hi;
    x3 = static_cast<std::uint32_t>(a);
    key.lo += 0x9E3779B9u;
    key.hi += 0xBB67AE85u;
  }
  return {x0, x1, x2, x3};
}

/// The key of a purpose: a Philox block of the seed, so that purposes and neighbouring seeds share nothing.
constexpr PhiloxKey philox_key(std::uint64_t seed, RandomPurpose purpose) noexcept {
  const PhiloxBlock block = philox({static_cast<std::uint32_t>(purpose), 0, 0, 0},
                                   {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return {block[0], block[1]};
}

/// The block that holds element `element` of a tensor at `site` (layer*16 + site) for sample `sample`.
constexpr PhiloxBlock philox_at(PhiloxKey key, std::uint64_t element, std::uint32_t site,
                                std::uint32_t sample) noexcept {
  const std::uint64_t block = element / 4;
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), site, sample}, key);
}

/// Uniform in [0, 1): the upper 24 bits.
constexpr float uniform(std::uint32_t word) noexcept {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

/// A word below this is dropped at probability p; the comparison is exact on every device.
constexpr std::uint32_t drop_threshold(float p) noexcept {
  return p >= 1.0f ? 0xFFFFFFFFu : static_cast<std::uint32_t>(static_cast<double>(p) * 4294967296.0);
}

} // namespace triax
