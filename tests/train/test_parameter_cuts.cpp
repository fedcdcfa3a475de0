// SPDX-License-Identifier: Apache-2.0
// Cuts of parameters over all ranks of a layout: what covers a parameter, and each way in which cuts do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/sample_model.hpp"
#include "support/error_of.hpp"
#include "train/parameter_cuts.hpp"
#include "train/preflight_run.hpp"

namespace triax {
namespace {

using test::error_of;
using test::sample_param;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Describe = std::function<void(ParamSpec&, const LayerContext&)>;

/// Two layers with a parameter w of [6, 4] each. `describe` changes that of the second on each rank.
class CutModel final : public Model {
 public:
  explicit CutModel(Describe describe) : describe_(std::move(describe)) {}
  ModelInfo info() const override { return {.blocks = 2, .first_block = 0, .sequence = 3}; }
  Refusals supports(const ModelRequest&, const Layout&) const override { return {}; }
  int count() const override { return 2; }
  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    ++created;
    ParamSpec spec = sample_param("w", {6, 4});
    if (index == 1) describe_(spec, context);
    test::SampleSpec of{.name = text("block {}", index), .params = {spec}, .stash = {}, .inputs = {}, .outputs = {}};
    return std::make_unique<test::SampleLayer>(std::move(of), notes_);
  }
  std::span<const Tie> ties() const override { return {}; }
  double flops_per_sample(std::int64_t) const override { return 0; }

  mutable int created = 0;

 private:
  Describe describe_;
  mutable std::vector<test::Note> notes_;
};

std::string error_on(const Layout& layout, const Describe& describe) {
  const CutModel model(describe);
  return error_of([&] { train::check_cuts(model, {layout, 0, 2, 5}); });
}

void cut(ParamSpec& spec, const std::string& axis, int dim, std::int64_t begin, std::int64_t end) {
  spec.cuts.push_back({axis, dim, begin, end});
  spec.local[dim] = end - begin;
}

/// The range of `of[coordinate]` of dimension 0, over the tensor axis.
Describe tensor_rows(const std::vector<std::pair<std::int64_t, std::int64_t>>& of) {
  return [of](ParamSpec& spec, const LayerContext& context) {
    const auto& [begin, end] = of.at(static_cast<std::size_t>(context.tensor_rank()));
    cut(spec, "tensor", 0, begin, end);
  };
}

TEST(ParameterCuts, CopiesAndWholePartitionsAreAccepted) {
  const Layout layout = Layout::ptd(2, 2, 2);
  EXPECT_EQ(error_on(layout, [](ParamSpec&, const LayerContext&) {}), "no error"); // copies
  EXPECT_EQ(error_on(layout, tensor_rows({{0, 3}, {3, 6}})), "no error");
  EXPECT_EQ(error_on(layout, tensor_rows({{0, 5}, {5, 6}})), "no error");
  EXPECT_EQ(error_on(layout, tensor_rows({{4, 6}, {0, 4}})), "no error"); // in any order
  EXPECT_EQ(error_on(Layout::ptd(1, 1, 1),
                     [](ParamSpec& spec, const LayerContext&) {
                       spec.cuts = {{"tensor", 0, 0, 6}}; // padded on one rank
                       spec.local = {8, 4};
                     }),
            "no error");
}

TEST(ParameterCuts, RanksWithPaddingOnlyAreAccepted) {
  const Layout layout = Layout::ptd(1, 4, 1);
  EXPECT_EQ(error_on(layout,
                     [](ParamSpec& spec, const LayerContext& context) {
                       const std::int64_t begin = std::min<std::int64_t>(6, 2 * context.tensor_rank());
                       spec.cuts = {{"tensor", 0, begin, std::min<std::int64_t>(6, begin + 2)}};
                       spec.local = {2, 4};
                     }),
            "no error");
}

TEST(ParameterCuts, GapsAreRefused) {
  const Layout layout = Layout::ptd(2, 2, 2);
  EXPECT_EQ(error_on(layout, tensor_rows({{0, 2}, {3, 6}})),
            "block 1/w is [6, 4]: no rank of axis tensor holds [2, 3) of dimension 0");
  EXPECT_EQ(error_on(layout, tensor_rows({{0, 3}, {3, 5}})),
            "block 1/w is [6, 4]: no rank of axis tensor holds [5, 6) of dimension 0");
  EXPECT_EQ(error_on(layout, tensor_rows({{1, 3}, {3, 6}})),
            "block 1/w is [6, 4]: no rank of axis tensor holds [0, 1) of dimension 0");
  EXPECT_EQ(error_on(layout, tensor_rows({{0, 0}, {0, 0}})),
            "block 1/w is [6, 4]: no rank of axis tensor holds [0, 6) of dimension 0");
}

TEST(ParameterCuts, OverlapsAreRefused) {
  const Layout layout = Layout::ptd(1, 2, 2);
  EXPECT_EQ(error_on(layout, tensor_rows({{0, 4}, {3, 6}})),
            "block 1/w is [6, 4]: data 0, tensor 0 and data 0, tensor 1 both hold [3, 4) of dimension 0");
  EXPECT_EQ(error_on(layout, tensor_rows({{0, 6}, {0, 6}})),
            "block 1/w is [6, 4]: data 0, tensor 0 and data 0, tensor 1 both hold [0, 6) of dimension 0");
  EXPECT_THAT(error_on(Layout::ptd(1, 3, 1), tensor_rows({{0, 6}, {2, 3}, {3, 6}})),
              HasSubstr("tensor 0 and tensor 1 both hold [2, 3) of dimension 0"));
}

TEST(ParameterCuts, RanksThatDisagreeAreRefused) {
  const Layout layout = Layout::ptd(1, 2, 1);
  const auto on_second = [&layout](const std::function<void(ParamSpec&)>& change) {
    return error_on(layout, [change](ParamSpec& spec, const LayerContext& context) {
      if (context.tensor_rank() == 1) change(spec);
    });
  };
  EXPECT_EQ(on_second([](ParamSpec& spec) {
              spec.global = spec.local = {6, 5};
            }),
            "block 1/w is [6, 4] on tensor 0, but [6, 5] on tensor 1");
  EXPECT_EQ(on_second([](ParamSpec& spec) {
              spec.local = {6, 4, 1};
            }),
            "block 1/w is [6, 4], but is stored as [6, 4, 1] on tensor 1");
  EXPECT_EQ(on_second([](ParamSpec& spec) {
              spec.local = {5, 4};
            }),
            "block 1/w is [6, 4], but is stored as [5, 4] on tensor 1: no axis cuts dimension 0, so each rank holds "
            "all of it");
  EXPECT_EQ(on_second([](ParamSpec& spec) { cut(spec, "tensor", 0, 3, 6); }),
            "block 1/w is [6, 4]: no axis cuts dimension 0 on tensor 0, but tensor on tensor 1");
  EXPECT_EQ(on_second([](ParamSpec& spec) { spec.name = "v"; }),
            "layer 1: block 1 has parameters of other names on tensor 1 than on tensor 0");
  EXPECT_THAT(on_second([](ParamSpec& spec) {
                spec.cuts = {{"tensor", 2, 0, 3}};
              }),
              HasSubstr("is sharded along dimension 2")); // by its description alone
}

const Layout kFourAxes({{"tensor", 2, Divides::tensors},
                        {"context", 2, Divides::positions},
                        {"expert", 2, Divides::samples},
                        {"data", 3, Divides::samples},
                        {"pipeline", 2, Divides::layers}});

/// Rows over one axis, columns over another: the parts are blocks.
TEST(ParameterCuts, TwoAxesDivideAParameterIntoBlocks) {
  const auto blocks = [](std::int64_t columns_of_last, bool depends_on_rows) {
    return [=](ParamSpec& spec, const LayerContext& context) {
      const int row = context.layout.coordinate(context.rank, "expert"), column = context.tensor_rank();
      cut(spec, "expert", 0, 3 * row, 3 * row + 3);
      const std::int64_t begin = depends_on_rows && row == 1 ? 1 : 2;
      cut(spec, "tensor", 1, column == 0 ? 0 : begin, column == 0 ? begin : columns_of_last);
    };
  };
  EXPECT_EQ(error_on(kFourAxes, blocks(4, false)), "no error");
  EXPECT_EQ(error_on(kFourAxes, blocks(3, false)),
            "block 1/w is [6, 4]: no rank of axis tensor holds [3, 4) of dimension 1");
  EXPECT_EQ(error_on(kFourAxes, blocks(4, true)),
            "block 1/w is [6, 4]: data 0, expert 0, context 0, tensor 0 holds [0, 2) of dimension 1, but data 0, "
            "expert 1, context 0, tensor 0 holds [0, 1) of it");
}

/// Only ranks that hold different parts are asked.
TEST(ParameterCuts, CopiesAreNotAsked) {
  const auto created = [](const Layout& layout, const Describe& describe) {
    const CutModel model(describe);
    train::check_cuts(model, {layout, 0, 2, 5});
    return model.created;
  };
  EXPECT_EQ(created(Layout::ptd(8, 1, 16), [](ParamSpec&, const LayerContext&) {}), 2);
  EXPECT_EQ(created(Layout::ptd(8, 2, 16), tensor_rows({{0, 3}, {3, 6}})), 2 * 2);
  EXPECT_EQ(created(kFourAxes,
                    [](ParamSpec& spec, const LayerContext& context) {
                      const int row = context.layout.coordinate(context.rank, "data");
                      cut(spec, "data", 0, 2 * row, 2 * row + 2);
                    }),
            2 + 2 * 3);
}

class CutsOfARun : public test::PreflightTest {};

TEST_F(CutsOfARun, PreflightNamesTheModelAndTheParameter) {
  run_.keys["model.plugin"] = "\"model-uneven\"";
  for (const char* key : {"model.layers", "model.hidden", "model.heads", "model.sequence", "model.dropout"})
    run_.keys.erase(key);
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["parallel.tensor"] = run_.keys["batch.micro"] = "2";
  const std::string named = "model.plugin \"model-uneven\": ",
                    next =
                        "\n  this is a defect of the model: report it to its author; \"triax plugins test "
                        "model-uneven\" lists its defects";
  run_.keys["model.how"] = "\"cut_gap\"";
  EXPECT_THAT(refusals(),
              ElementsAre(named + "uneven/w is [4]: no rank of axis tensor holds [2, 3) of dimension 0" + next));
  run_.keys["model.how"] = "\"cut_overlap\"";
  EXPECT_THAT(refusals(),
              ElementsAre(named + "uneven/w is [4]: tensor 0 and tensor 1 both hold [1, 2) of dimension 0" + next));
}

} // namespace
} // namespace triax
