// SPDX-License-Identifier: Apache-2.0
// Descriptions of a layer that contradict themselves.
#include <gtest/gtest.h>

#include "executor/layer_check.hpp"
#include "executor/sample_model.hpp"
#include "support/error_of.hpp"

namespace triax {
namespace {

using test::SampleSpec;

/// The error of a layer with this description.
std::string error_of_layer(const SampleSpec& spec) {
  std::vector<test::Note> notes;
  const test::SampleLayer layer(spec, notes);
  return test::error_of([&] { executor::check_layer(layer); });
}

TEST(LayerCheck, OutputsHaveDifferentNames) {
  SampleSpec spec = test::sample_model().specs[1];
  EXPECT_EQ(error_of_layer(spec), "no error");
  spec.outputs.push_back(spec.outputs[0]);
  EXPECT_EQ(error_of_layer(spec), "brief makes \"x\" twice");
}

TEST(LayerCheck, TensorsHaveAType) {
  SampleSpec spec = test::sample_model().specs[1];
  spec.stash[0].dtype = static_cast<DType>(77);
  EXPECT_EQ(error_of_layer(spec), "brief: \"f\" has the type 77, which is not a DType");
}

/// Lists one tensor and two in turn.
class ChangingLayer final : public test::SampleLayer {
 public:
  using SampleLayer::SampleLayer;
  std::span<const StashSpec> stash() const override { return SampleLayer::stash().first(++calls_ % 2 == 0 ? 1 : 2); }

 private:
  mutable int calls_ = 0;
};

TEST(LayerCheck, ALayerListsTheSameTensorsAtEachCall) {
  std::vector<test::Note> notes;
  const ChangingLayer layer(test::sample_model().specs[2], notes);
  EXPECT_EQ(test::error_of([&] { executor::check_layer(layer); }),
            "mid: stash() lists other tensors at its second call");
}

} // namespace
} // namespace triax
