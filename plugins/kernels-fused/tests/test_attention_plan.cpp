// SPDX-License-Identifier: Apache-2.0
// Index computations of attention's kernels: masks of tiles, bits of dropout, tiles in shared memory, views.
#include <gtest/gtest.h>

#include <bitset>
#include <set>

#include "attention_config.hpp"
#include "triax/half.hpp"

namespace triax::kernels_fused {
namespace {

constexpr int kTile = 16;

/// Compares every tile of a few masks with the definition, key by key.
TEST(AttentionPlan, MasksOfTilesAreThoseOfTheDefinition) {
  const std::vector<std::int32_t> lengths = {0, 25, 1000};
  const std::int64_t queries = 40, keys = 50;
  for (const bool causal : {false, true}) {
    for (const auto& [q0, k0] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {30, 0}, {3, 20}, {0, 60}}) {
      for (const bool limited : {false, true}) {
        const cuda::MaskPlan mask{causal, q0, k0, limited ? lengths.data() : nullptr};
        for (std::int64_t sample = 0; sample < 3; ++sample) {
          const std::int64_t visible = visible_keys(mask, sample, keys);
          const auto sees = [&](std::int64_t q, std::int64_t k) {
            return k < keys && (!causal || k0 + k <= q0 + q) &&
                   (!limited || k0 + k < lengths[static_cast<std::size_t>(sample)]);
          };
          for (std::int64_t q = 0; q < queries; ++q) {
            std::int64_t count = 0;
            for (std::int64_t k = 0; k < keys; ++k) count += sees(q, k) ? 1 : 0;
            EXPECT_EQ(seen_by(mask, q, visible), count);
          }
          for (std::int64_t q = 0; q < queries; q += kTile) {
            for (std::int64_t k = 0; k < keys; k += kTile) {
              const TileMask tile = tile_mask(mask, q, k, visible);
              bool all = true;
              for (int i = 0; i < kTile; ++i) {
                for (int j = 0; j < kTile; ++j) {
                  EXPECT_EQ(tile.sees(i, j), sees(q + i, k + j));
                  all = all && sees(q + i, k + j);
                }
              }
              EXPECT_EQ(tile.is_full(kTile), all);
            }
          }
          for (std::int64_t k = 0; k < visible; ++k) {
            const std::int64_t first = first_seeing(mask, k);
            EXPECT_TRUE(sees(first, k));
            EXPECT_FALSE(first > 0 && sees(first - 1, k));
          }
        }
      }
    }
  }
}

/// Positions far beyond 32 bits do not overflow the mask of a tile.
TEST(AttentionPlan, MasksOfFarTiles) {
  const std::int64_t far = std::int64_t{1} << 40;
  EXPECT_TRUE(tile_mask({true, far, 0, nullptr}, 0, 0, 100).is_full(64));
  EXPECT_FALSE(tile_mask({true, 0, far, nullptr}, 0, 0, 100).sees(63, 0));
  EXPECT_TRUE(tile_mask({true, far, far, nullptr}, 64, 0, 100).is_full(64));
}

TEST(AttentionPlan, BitsOfDropoutAreThoseOfTheNumbering) {
  const cuda::DropArguments drop{.key = philox_key(5, RandomPurpose::dropout),
                                 .site = 35,
                                 .threshold = drop_threshold(0.3f),
                                 .head0 = 2,
                                 .rows = 1 << 20,
                                 .width = 70001};
  const cuda::MaskPlan mask{true, 1000, 3, nullptr};
  for (std::int64_t query = 0; query < 5; ++query) { // rows begin at every offset within a Philox block
    const std::uint64_t first = score_element(drop, mask, 6, query, 16);
    EXPECT_EQ(first, ((2 + 6) * (std::uint64_t{1} << 20) + 1000 + static_cast<std::uint64_t>(query)) * 70001 + 3 + 16);
    EXPECT_GT(first, std::uint64_t{1} << 32);
    const std::uint32_t bits = kept_bits(drop, 9, first);
    for (std::uint64_t i = 0; i < kKeptTogether; ++i) {
      const std::uint32_t word = philox_at(drop.key, first + i, drop.site, 9)[(first + i) % 4];
      EXPECT_EQ((bits >> i & 1) != 0, word >= drop.threshold) << "query " << query << ", bit " << i;
    }
    EXPECT_EQ(bits >> kKeptTogether, 0u);
  }
}

TEST(AttentionPlan, EveryTileHasItsBlock) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> tiles;
  for (std::int64_t block = 0; block < 2 * 3 * 5; ++block) {
    const TileCoordinates at = tile_of_block(block, 5, 3, true);
    EXPECT_TRUE(at.sample < 2 && at.head < 3 && at.tile < 5);
    tiles.insert({at.sample, at.head, at.tile});
  }
  EXPECT_EQ(tiles.size(), 30u);
  EXPECT_EQ(tile_of_block(0, 5, 3, true).tile, 4);
  EXPECT_EQ(tile_of_block(0, 5, 3, false).tile, 0);
}

/// Eight rows read at one column, 16 bytes each, must cover all 32 banks.
template <class Config>
void expect_all_banks() {
  for (int column = 0; column < Config::kHeadDim; column += kVec<typename Config::T>) {
    std::bitset<8> banks; // groups of four banks
    for (int row = 0; row < 8; ++row) banks.set(Config::offset(row, column) * sizeof(typename Config::T) / 16 % 8);
    EXPECT_TRUE(banks.all());
  }
}
/// What is in the padding of rows is in no other place: the bits of both stages, and two statistics per query.
template <class Config>
void expect_in_padding() {
  const int padding = Config::kStride - Config::kHeadDim;
  std::set<int> statistics;
  for (int query = 0; query < Config::kStreamedRows; ++query) {
    for (const int k : {0, 1}) {
      const int at = Config::statistic(query, k),
                stride = Config::kStride * static_cast<int>(sizeof(typename Config::T)) / 4;
      EXPECT_TRUE(at % stride < 4 && at / stride < Config::kStreamedRows);
      EXPECT_TRUE(statistics.insert(at).second);
    }
  }
  EXPECT_EQ(padding * sizeof(typename Config::T), 16u);
  EXPECT_EQ(Config::kBitsStride * 2u, Config::kStride * sizeof(typename Config::T));
}
template <class T>
void expect_all_fit(std::size_t limit) {
  for (int width : {32, 64, 96, 128, 256}) {
    dispatch_head_dim<T>(width, limit, [&]<class Sizes>(Sizes) {
      EXPECT_EQ(Sizes::Forward::kHeadDim, width);
      EXPECT_LE(kMaxShared<Sizes>, limit) << width;
      expect_all_banks<typename Sizes::Forward>();
      expect_all_banks<typename Sizes::BackwardDq>();
      expect_all_banks<typename Sizes::BackwardDkdv>();
      expect_in_padding<typename Sizes::Forward>();
      expect_in_padding<typename Sizes::BackwardDkdv>();
    });
  }
}
TEST(AttentionPlan, TilesFitIntoSharedMemoryAndItsBanks) {
  for (const std::size_t limit : {99u << 10, 163u << 10, 227u << 10}) { // sm_86, sm_80, sm_90
    expect_all_fit<float>(limit);
    expect_all_fit<Bf16>(limit);
    expect_all_fit<F16>(limit);
  }
}

/// With less shared memory a block has fewer rows. What changes the order of a sum is the same.
TEST(AttentionPlan, SmallTilesHaveTheSameOrderOfSums) {
  const auto expect_same_order = []<class Small, class Large>(Small, Large) {
    EXPECT_EQ(Small::kHeadDim, Large::kHeadDim);
    EXPECT_EQ(Small::kStreamedRows, Large::kStreamedRows);
    EXPECT_EQ(Small::kBlockColumns, Large::kBlockColumns);
    EXPECT_LE(Small::kResidentRows, Large::kResidentRows);
  };
  using Large = TileSizes<float, kHeadTiles<float>.back()>;
  expect_same_order(SmallTileSizes::Forward{}, Large::Forward{});
  expect_same_order(SmallTileSizes::BackwardDq{}, Large::BackwardDq{});
  expect_same_order(SmallTileSizes::BackwardDkdv{}, Large::BackwardDkdv{});
}

TEST(AttentionPlan, CopiesInPiecesWhereViewsAllowIt) {
  alignas(16) static std::uint16_t data[4096];
  const auto view = [](std::int64_t offset, Shape shape, std::array<std::int64_t, 4> strides) {
    return head_view({data + offset, DType::bf16, shape, strides});
  };
  EXPECT_TRUE(view(0, {2, 2, 2, 16}, {64, 32, 16, 1}).vec16);
  EXPECT_FALSE(view(4, {2, 2, 2, 16}, {64, 32, 16, 1}).vec16) << "begins at 8 bytes";
  EXPECT_FALSE(view(0, {2, 2, 2, 16}, {68, 32, 16, 1}).vec16) << "rows at 8 bytes";
  EXPECT_FALSE(view(0, {2, 2, 2, 12}, {64, 32, 16, 1}).vec16) << "a row ends within a vector";
  EXPECT_TRUE(view(0, {2, 1, 2, 16}, {64, 3, 16, 1}).vec16) << "of one sample, the stride is never used";
  EXPECT_EQ(view(0, {2, 1, 2, 16}, {64, 3, 16, 1}).sample_stride, 0);
  EXPECT_TRUE(view(2, {2, 2, 2, 5}, {66, 32, 16, 1}).vec2);
  EXPECT_FALSE(view(1, {2, 2, 2, 5}, {66, 32, 16, 1}).vec2);
  EXPECT_FALSE(view(2, {2, 2, 2, 5}, {65, 32, 16, 1}).vec2);
}

TEST(AttentionPlan, RefusesUnsupportedShapesAndTypes) {
  const auto refusal = [](DType type, Shape shape) {
    const TensorView x(nullptr, type, shape);
    const Refusals refused = attention_supported(AttentionFwd{.o = x, .q = x, .k = x, .v = x});
    return refused.empty() ? std::string() : refused.front().message;
  };
  EXPECT_EQ(refusal(DType::bf16, {2048, 4, 16, 256}), "");
  EXPECT_EQ(refusal(DType::bf16, {0, 0, 1, 0}), "");
  EXPECT_EQ(refusal(DType::f64, {1, 1, 1, 8}),
            "kernels-fused computes attention in fp32, bf16 and fp16, but q is fp64");
  EXPECT_EQ(refusal(DType::f32, {1, 1, 1, 257}),
            "attention heads have 257 elements, but kernels-fused supports at most 256");
  EXPECT_EQ(refusal(DType::f32, {1 << 20, 1 << 13, 1 << 5, 1}),
            "attention of 8192 samples with 32 heads of 1048576 queries takes 4294967296 blocks: a grid has at most "
            "2147483647");
}

/// Each operation counts its own tiles. The forward of one query with many keys has a block for each head.
TEST(AttentionPlan, RefusesMoreBlocksThanAGridHas) {
  const TensorView q(nullptr, DType::f32, {1, 512, 64, 32}), k(nullptr, DType::f32, {1 << 20, 512, 64, 32});
  EXPECT_TRUE(attention_supported(AttentionFwd{.o = q, .q = q, .k = k, .v = k}).empty());
  const auto backward = [](const TensorView& queries, const TensorView& keys) {
    std::vector<std::string> messages;
    for (const Refusal& refusal : attention_supported(AttentionBwd{.q = queries, .k = keys, .v = keys}))
      messages.push_back(refusal.message);
    return messages;
  };
  EXPECT_EQ(backward(q, k), std::vector<std::string>{});
  const TensorView longer(nullptr, DType::f32, {1 << 22, 512, 64, 32});
  EXPECT_EQ(
      backward(q, longer),
      std::vector<std::string>{"attention of 512 samples with 64 heads of 4194304 keys takes 2147483648 blocks: a "
                               "grid has at most 2147483647"});
  EXPECT_EQ(
      backward(longer, q),
      std::vector<std::string>{"attention of 512 samples with 64 heads of 4194304 queries takes 2147483648 blocks: "
                               "a grid has at most 2147483647"});
}

} // namespace
} // namespace triax::kernels_fused
