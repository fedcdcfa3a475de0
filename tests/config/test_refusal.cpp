// SPDX-License-Identifier: Apache-2.0
// The core adds the positions of a refusal's keys: modules and plugins do not know files.
#include <gtest/gtest.h>

#include "config/load.hpp"

namespace triax::config {
namespace {

const std::vector<ResolvedValue> kValues = {
    {"model.heads", "5", "run.toml:5:9", {}, {"run.toml", 0, 5, 9}},
    {"model.dropout", "0.0", "default"},
    {"parallel.tensor", "2", "run.toml:9:10", {}, {"run.toml", 0, 9, 10}},
    {"optimizer.lr", "0.001", "--set", {}, {"--set", 1}},
    {"parallel.data", "1", "derived"},
};

Diagnostic with_keys(const std::vector<std::string>& keys) {
  return diagnose({ErrorCode::kConflict, keys, "a conflict", "a hint"}, kValues);
}

TEST(Diagnose, TheFirstKeyLeadsAndTheOthersFollow) {
  const Refusal refusal = make_refusal(ErrorCode::kNotDivisible, {"model.heads", "parallel.tensor"},
                                       "model.heads = {} is not divisible by parallel.tensor = {}", 5, 2)
                              .with_hint("use heads 4 or 6");
  const Diagnostic out = diagnose(refusal, kValues);
  EXPECT_EQ(out.text,
            "run.toml:5:9: model.heads = 5 is not divisible by parallel.tensor = 2\n"
            "  parallel.tensor is set at run.toml:9:10\n"
            "  use heads 4 or 6");
  EXPECT_EQ(out.refusal, refusal);
  EXPECT_EQ(to_text(out.at), "run.toml:5:9");
}

TEST(Diagnose, AKeyOfAFileLeadsBeforeAFlagAndADefault) {
  EXPECT_EQ(with_keys({"model.dropout", "optimizer.lr", "model.heads"}).text,
            "run.toml:5:9: a conflict\n  model.dropout = 0.0 is the default\n  optimizer.lr is set by --set\n  a hint");
  EXPECT_EQ(with_keys({"parallel.data", "optimizer.lr"}).text,
            "--set: a conflict\n  parallel.data = 1 is derived\n  a hint");
}

TEST(Diagnose, OmitsThePositionIfNoKeyIsSet) {
  EXPECT_EQ(with_keys({}).text, "a conflict\n  a hint");
  EXPECT_EQ(with_keys({"model.unknown"}).text, "a conflict\n  a hint");
  EXPECT_EQ(with_keys({"model.dropout"}).text, "a conflict\n  model.dropout = 0.0 is the default\n  a hint");
}

TEST(Diagnose, AFlagThatStandsForAKeyIsNamedInsteadOfTheKey) {
  const std::vector<ResolvedValue> values = {{"data.validation", "text", "--data text", {}, {"--data text", 1}}};
  const Diagnostic out =
      diagnose({ErrorCode::kNotReadable, {"data.validation"}, "data.validation: is gone", {}}, values);
  EXPECT_EQ(out.text, "--data text: is gone");
  EXPECT_EQ(out.refusal.message, "is gone");
}

TEST(Diagnose, DoesNotSearchTheMessageForKeys) {
  EXPECT_EQ(diagnose({ErrorCode::kUnsupported, {}, "model.heads is odd", {}}, kValues).text, "model.heads is odd");
}

} // namespace
} // namespace triax::config
