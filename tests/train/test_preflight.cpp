// What preflight refuses, and what it tells of a run that may start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/prepare.hpp"
#include "train/preflight.hpp"
#include "train/tiny_run.hpp"

namespace triax {
namespace {

using test::TinyRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A run whose data files are real: 400 bytes of text.
class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    std::string text;
    while (text.size() < 400) text += "abc def gh\n";
    test::write_file(run_.folder() / "text.txt", text);
    data::PrepareRequest request;
    request.inputs = {run_.folder() / "text.txt"};
    request.output = run_.folder() / "text";
    request.tokenizer = "byte";
    request.force = true;
    data::prepare(request, [](std::uint64_t, std::uint64_t) {});
    run_.keys.erase("model.vocab");
  }
  std::vector<std::string> refusals() {
    std::vector<std::string> out;
    for (const Support& refusal : train::preflight(run_.config(), null_log()).refusals)
      out.push_back(refusal.reason() + (refusal.hint().empty() ? "" : "\n  " + refusal.hint()));
    return out;
  }
  TinyRun run_;
};

TEST_F(PreflightTest, TellsLayersParametersAndTheMemoryThatTheRankTakes) {
  const config::RunConfig config = run_.config();
  const train::Preflight checked = train::preflight(config, null_log());
  EXPECT_TRUE(checked.refusals.empty());
  ASSERT_EQ(checked.ranks.size(), 1u);
  EXPECT_THAT(checked.ranks[0].layers, ElementsAre("embedding", "block 0", "block 1", "head"));
  const std::int64_t block = 12 * 8 * 8 + 13 * 8; // weights; biases and norms
  EXPECT_EQ(checked.parameters, 257 * 8 + 6 * 8 + 2 * block + 2 * 8);

  test::TinyRank rank(config);
  const std::vector<train::MemoryRow> real = rank->memory();
  ASSERT_EQ(checked.ranks[0].memory.size(), real.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    EXPECT_EQ(checked.ranks[0].memory[i].what, real[i].what);
    EXPECT_EQ(checked.ranks[0].memory[i].bytes, real[i].bytes) << real[i].what;
  }
}

TEST_F(PreflightTest, RefusesMoreThanOneRank) {
  run_.keys["parallel.data"] = "2";
  EXPECT_THAT(refusals(), ElementsAre("parallel.pipeline = 1 x parallel.tensor = 1 x parallel.data = 2 is a run of 2 "
                                      "ranks: this version trains on one rank\n  use 1 for each of them"));
  run_.keys["parallel.pipeline"] = "2";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("is a run of 4 ranks")));
}

TEST_F(PreflightTest, ListsRefusalsOfSeveralPluginsTogether) {
  run_.keys["model.heads"] = "3";
  run_.keys["parallel.chunks"] = "2";
  run_.keys["parallel.tensor"] = "2";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("model.hidden = 8 does not divide by model.heads = 3"),
                                      HasSubstr("parallel.chunks = 2: sched-gpipe"), HasSubstr("is a run of 2 ranks")));
}

TEST_F(PreflightTest, RefusesASplitThatDoesNotCount) {
  run_.keys["parallel.split"] = "[3]";
  EXPECT_THAT(refusals(), ElementsAre("parallel.split counts 3 blocks, but model.layers is 2\n  list one number of "
                                      "blocks for each stage; together 2"));
}

TEST_F(PreflightTest, RefusesDataThatDoesNotSuit) {
  run_.keys["model.sequence"] = "1000";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("one sample of model.sequence = 1000 takes 1001")));
  run_.keys["model.sequence"] = "6";
  run_.keys["model.vocab"] = "50";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("but the vocabulary has 50 ids")));
}

} // namespace
} // namespace triax
