// A random order of 0 .. size-1 without a table: any element of it is computed alone, in constant memory.
//
// Threads: a value; pure. Ownership, blocking: none. Errors: Error of a size or an index outside of its range.
// A Feistel network permutes the numbers of an even number of bits, at most four times as many as wanted; a result
// outside the range is put in again until it falls inside, which keeps it a permutation ("cycle walking": Black and
// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). The round function is Philox, as for every other
// random number of the engine.
#pragma once

#include <cstdint>

#include "triax/random.hpp"

namespace triax::data {

class Permutation {
 public:
  /// `number` tells permutations of one key apart. 1 <= size <= 2^62.
  Permutation(std::uint64_t size, PhiloxKey key, std::uint64_t number);
  /// Where the order has `index` < size.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t once(std::uint64_t value) const;

  std::uint64_t size_;
  PhiloxKey key_;
  std::uint64_t number_;
  unsigned half_bits_ = 1;
};

/// Uniform in [0, size), for `number` of this key; shares no random number with Permutation.
std::uint64_t random_below(std::uint64_t size, PhiloxKey key, std::uint64_t number);

} // namespace triax::data
