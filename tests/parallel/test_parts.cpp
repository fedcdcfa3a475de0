// SPDX-License-Identifier: Apache-2.0
// Descriptions of split parameters: shapes, vocabulary ranges, random sites.
#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "triax/error.hpp"
#include "triax/parallel.hpp"

namespace triax {
namespace {

using ::testing::HasSubstr;

TEST(VocabRange, CoversTheVocabularyOnceInEqualParts) {
  for (const std::int64_t vocab : {1, 5, 13, 64, 128, 256, 257, 50257}) {
    for (int tensor = 1; tensor <= 8; ++tensor) {
      std::int64_t next = 0;
      for (int index = 0; index < tensor; ++index) {
        const VocabRange range = vocab_range(vocab, tensor, index);
        const std::int64_t part = (vocab + tensor - 1) / tensor;
        EXPECT_EQ(range.stored % kVocabMultiple, 0);
        EXPECT_GE(range.stored, part);
        EXPECT_LT(range.stored, part + kVocabMultiple);
        EXPECT_LE(range.valid, part);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.valid, 0);
        next += range.valid;
      }
      EXPECT_EQ(next, vocab) << tensor;
    }
  }
  EXPECT_THROW(vocab_range(13, 4, 4), Error);
}

TEST(Parts, EachParameterHasASiteOfItsOwn) {
  LayerParts parts;
  parts.site0 = 48;
  for (int i = 0; i < 16; ++i) EXPECT_EQ(parts.add(replicated(std::to_string(i), {4}, {}, false)), i);
  EXPECT_EQ(parts.params[0].site, 48u);
  EXPECT_EQ(parts.params[15].site, 63u);
  try {
    parts.add(replicated("one.more", {4}, {}, false));
    FAIL() << "a seventeenth parameter would take the next layer's sites";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("one.more"));
  }
}

TEST(Parts, SplitsAreTheRanksRangeOfTheWhole) {
  const Layout layout = Layout::ptd(2, 3, 1);
  const LayerContext context{layout, 4}; // tensor index 1
  const ParamSpec spec = split_along(1, "w", {5, 12}, {Init::Kind::normal, 0.02}, true, context);
  ASSERT_EQ(spec.cuts.size(), 1u);
  EXPECT_EQ(spec.cuts[0].axis, "tensor");
  EXPECT_EQ(spec.cuts[0].dim, 1);
  EXPECT_EQ(spec.cuts[0].begin, 4);
  EXPECT_EQ(spec.cuts[0].end, 8);
  EXPECT_EQ(spec.global, (Shape{5, 12}));
  EXPECT_EQ(spec.local, (Shape{5, 4}));
  EXPECT_TRUE(spec.decay);
  EXPECT_EQ(spec.init.std, 0.02);
}

TEST(Parts, OneTensorRankHasTheWhole) {
  const Layout layout = Layout::ptd(2, 1, 2);
  const ParamSpec spec = split_along(0, "w", {5, 12}, {}, true, {layout, 3});
  EXPECT_TRUE(spec.cuts.empty());
  EXPECT_EQ(spec.local, spec.global);
}

TEST(Linear, PartsOfItsOutputAreSplitOneByOne) {
  const Layout layout = Layout::ptd(1, 2, 1);
  const LayerContext context{layout, 1};
  LayerParts parts;
  const ColumnLinear swiglu(parts, context, "mlp.gate_up", 6, 16,
                            {.bias = false, .act = Activation::silu_mul, .parts = 2});
  ASSERT_EQ(parts.params.size(), 1u); // no bias
  EXPECT_EQ(parts.params[0].global, (Shape{2, 8, 6}));
  EXPECT_EQ(parts.params[0].local, (Shape{2, 4, 6}));
  EXPECT_EQ(parts.params[0].cuts, (std::vector<Cut>{{"tensor", 1, 4, 8}}));
  const RowLinear down(parts, context, "mlp.down", 8, 6, {.bias = false});
  EXPECT_EQ(down.bias(), -1);
  EXPECT_EQ(parts.params.size(), 2u);
}

TEST(Linear, OptionsThatContradictItAreRefused) {
  const Layout layout = Layout::ptd(1, 2, 1);
  const LayerContext context{layout, 0};
  LayerParts parts;
  EXPECT_THAT(test::error_of([&] { ColumnLinear(parts, context, "up", 6, 16, {.parts = 3}); }),
              HasSubstr("up.weight: 16 columns are not divisible into 3 parts"));
  EXPECT_THAT(test::error_of([&] { RowLinear(parts, context, "down", 6, 16, {.act = Activation::gelu_tanh}); }),
              HasSubstr("down: a linear layer that is split by rows has no activation"));
}

TEST(Linear, DividedPositionsNeedTheirNumber) {
  const Layout layout = Layout::ptd(1, 2, 1);
  LayerContext context{.layout = layout, .sequence_parallel = true};
  LayerParts parts;
  EXPECT_THAT(test::error_of([&] { ColumnLinear(parts, context, "up", 6, 16, {}); }),
              HasSubstr("up.x: 0 positions (LayerContext::max_rows) cannot be divided over 2 tensor ranks"));
  context.max_rows = 7;
  EXPECT_THAT(test::error_of([&] { ColumnLinear(parts, context, "up", 6, 16, {}); }), HasSubstr("up.x: 7 positions"));
}

TEST(Parts, RefusesSizesThatAreNotDivisible) {
  const Layout layout = Layout::ptd(1, 4, 1);
  try {
    split_along(0, "mlp.up.weight", {6, 3}, {}, true, {layout, 0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "mlp.up.weight [6, 3] is not divisible by parallel.tensor = 4 along dimension 0");
  }
}

} // namespace
} // namespace triax
