// SPDX-License-Identifier: Apache-2.0
// Dropout masks: Philox-4x32-10 (triax/random.hpp), one block per vector lane.
#pragma once

#include "loops.hpp"
#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

struct WordBlocks {
  Unsigned word[4]; // word i of each lane's block
};

struct Product64 {
  Unsigned low, high;
};
TRIAX_INLINE Product64 multiply_wide(Unsigned a, std::uint32_t by) {
  const Unsigned b = Unsigned{} + by;
  const Wide even = multiply_even(a, b), odd = multiply_even((Unsigned)((Wide)a >> 32), b);
  const Wide low_half = Wide{} + 0xFFFFFFFFu;
  return {(Unsigned)((even & low_half) | (odd << 32)), (Unsigned)((even >> 32) | (odd & ~low_half))};
}

TRIAX_INLINE WordBlocks philox(WordBlocks counter, std::uint32_t key_lo, std::uint32_t key_hi) {
  for (int round = 0; round < 10; ++round) {
    const Product64 a = multiply_wide(counter.word[0], 0xD2511F53u);
    const Product64 b = multiply_wide(counter.word[2], 0xCD9E8D57u);
    counter = {{b.high ^ counter.word[1] ^ key_lo, b.low, a.high ^ counter.word[3] ^ key_hi, a.low}};
    key_lo += 0x9E3779B9u;
    key_hi += 0xBB67AE85u;
  }
  return counter;
}

constexpr int kWordsAtOnce = 4 * kWidth;

/// Writes the words of kWidth blocks from `block` on, in the order of their elements.
TRIAX_INLINE void write_words(std::uint32_t* words, std::uint64_t block, const DropRow& drop) {
  // Lane 4g + k computes block k * kWidth/4 + g. Interleaving lanes within 128 bits then puts the words in order.
  Unsigned offset{};
  for (int lane = 0; lane < kWidth; ++lane) offset[lane] = static_cast<unsigned>(lane % 4 * (kWidth / 4) + lane / 4);
  const Unsigned low = offset + static_cast<std::uint32_t>(block);
  const Unsigned high = static_cast<std::uint32_t>(block >> 32) - (Unsigned)(low < static_cast<std::uint32_t>(block));
  const WordBlocks out =
      philox({{low, high, Unsigned{} + drop.site, Unsigned{} + drop.sample}}, drop.key_lo, drop.key_hi);
  const auto put = [&](int place, auto v) { __builtin_memcpy(words + place * kWidth, &v, sizeof v); };
#if defined(__AVX512F__)
  const auto a = (__m512i)out.word[0], b = (__m512i)out.word[1], c = (__m512i)out.word[2], d = (__m512i)out.word[3];
  const __m512i ab0 = _mm512_unpacklo_epi32(a, b), ab1 = _mm512_unpackhi_epi32(a, b);
  const __m512i cd0 = _mm512_unpacklo_epi32(c, d), cd1 = _mm512_unpackhi_epi32(c, d);
  put(0, _mm512_unpacklo_epi64(ab0, cd0));
  put(1, _mm512_unpackhi_epi64(ab0, cd0));
  put(2, _mm512_unpacklo_epi64(ab1, cd1));
  put(3, _mm512_unpackhi_epi64(ab1, cd1));
#elif defined(__AVX2__)
  const auto a = (__m256i)out.word[0], b = (__m256i)out.word[1], c = (__m256i)out.word[2], d = (__m256i)out.word[3];
  const __m256i ab0 = _mm256_unpacklo_epi32(a, b), ab1 = _mm256_unpackhi_epi32(a, b);
  const __m256i cd0 = _mm256_unpacklo_epi32(c, d), cd1 = _mm256_unpackhi_epi32(c, d);
  put(0, _mm256_unpacklo_epi64(ab0, cd0));
  put(1, _mm256_unpackhi_epi64(ab0, cd0));
  put(2, _mm256_unpacklo_epi64(ab1, cd1));
  put(3, _mm256_unpackhi_epi64(ab1, cd1));
#else
  for (int lane = 0; lane < 4; ++lane) {
    put(lane, Unsigned{out.word[0][lane], out.word[1][lane], out.word[2][lane], out.word[3][lane]});
  }
#endif
}

/// Dropout of a row, in chunks of elements.
class DropWords {
 public:
  static constexpr std::int64_t kChunk = 256; // elements

  TRIAX_INLINE explicit DropWords(const DropRow& drop) : drop_(drop) {}

  /// Computes the words of elements [begin, begin + n) of the row, n <= kChunk, begin a multiple of kChunk.
  TRIAX_INLINE void make(std::int64_t begin, std::int64_t n) {
    const std::uint64_t first = drop_.element + static_cast<std::uint64_t>(begin);
    phase_ = words_ + first % 4;
    const int needed = static_cast<int>(first % 4) + static_cast<int>(n);
    for (int made = 0; made < needed; made += kWordsAtOnce) {
      write_words(words_ + made, first / 4 + static_cast<std::uint64_t>(made / 4), drop_);
    }
  }
  /// x * scale, or 0 if the element is dropped; `i` counts from `begin`.
  TRIAX_INLINE Float apply(std::int64_t i, Float x) const {
    Unsigned words; // past the end of a tail they are allocated but unused
    __builtin_memcpy(&words, phase_ + i, sizeof words);
    return words < drop_.threshold ? Float{} : x * drop_.scale;
  }

 private:
  const DropRow& drop_;
  const std::uint32_t* phase_ = nullptr;
  std::uint32_t words_[kChunk + 2 * kWordsAtOnce] = {};
};

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
