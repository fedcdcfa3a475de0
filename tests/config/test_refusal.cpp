// SPDX-License-Identifier: Apache-2.0
// Positions in the file are added to error messages of modules and plugins, which do not know files.
#include <gtest/gtest.h>

#include "config/loaded.hpp"

namespace triax::config {
namespace {

const std::vector<ResolvedValue> kValues = {
    {"schedule.plugin", "\"sched-interleaved\"", "run.toml:12:10"},
    {"model.heads", "5", "run.toml:5:9"},
    {"model.dropout", "0.0", "default"},
    {"parallel.tensor", "2", "run.toml:9:10"},
    {"optimizer.lr", "0.001", "--set"},
    {"parallel.data", "1", "derived"},
};

TEST(Refusal, TheFirstKeyLeadsAndTheOthersGetBrackets) {
  const auto answer =
      Support::no("model.heads = {} does not divide by parallel.tensor = {}: each tensor rank takes whole heads", 5, 2)
          .hint("use heads 4 or 6, or tensor 1 or 5");
  EXPECT_EQ(
      refusal(answer, kValues).text,
      "run.toml:5:9: model.heads = 5 does not divide by parallel.tensor = 2 (run.toml:9:10): each tensor rank takes "
      "whole heads\n  use heads 4 or 6, or tensor 1 or 5");
}

TEST(Refusal, AKeyWithoutALineDoesNotLead) {
  EXPECT_EQ(refusal(Support::no("model.dropout does not go with model.heads"), kValues).text,
            "run.toml:5:9: model.dropout (default) does not go with model.heads");
  EXPECT_EQ(refusal(Support::no("parallel.data = 1 does not go with optimizer.lr = 1e-3."), kValues).text,
            "--set: parallel.data = 1 (derived) does not go with optimizer.lr = 1e-3.");
}

TEST(Refusal, AKeyCountsOnceAndNotInsideALongerOne) {
  EXPECT_EQ(refusal(Support::no("model.heads_extra, my.model.heads and model.heads.x are other keys"), kValues).text,
            "model.heads_extra, my.model.heads and model.heads.x are other keys");
  EXPECT_EQ(refusal(Support::no("model.heads is odd; change model.heads."), kValues).text,
            "run.toml:5:9: model.heads is odd; change model.heads.");
}

TEST(Refusal, WithoutAKeyThePluginThatSpeaksLeads) {
  EXPECT_EQ(refusal(Support::no("sched-interleaved refuses m = 6 with p = 4: m must be a multiple of p"), kValues).text,
            "run.toml:12:10: sched-interleaved refuses m = 6 with p = 4: m must be a multiple of p");
  EXPECT_EQ(refusal(Support::no("there is not enough memory").hint("buy some"), kValues).text,
            "there is not enough memory\n  buy some");
}

} // namespace
} // namespace triax::config
