// SPDX-License-Identifier: Apache-2.0
// Types of keys: values in files, values of flags, and the base of relative paths.
#include "config/workspace.hpp"

namespace triax::config {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

/// The single error for a run with this line in [train], without its position.
std::string refusal_of(const std::string& line) {
  Workspace space;
  space.tables["train"] = "steps = 100\n" + line + "\n";
  const std::vector<std::string> all = texts(space.load());
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? std::string() : all.front().substr(all.front().find(": ") + 2);
}

TEST(Values, RefusesValuesOfTheWrongType) {
  EXPECT_EQ(refusal_of("seed = \"5\""), "train.seed = \"5\" is not an integer\n  write 5");
  EXPECT_EQ(refusal_of("seed = \"five\""),
            "train.seed = \"five\" is not an integer\n  write an integer (0 and more), such as 1");
  EXPECT_EQ(refusal_of("seed = 5.0"), "train.seed = 5.0 is not an integer\n  write 5");
  EXPECT_EQ(refusal_of("seed = 5.5"), "train.seed = 5.5 is not an integer\n  write an integer (0 and more), such as 1");
  EXPECT_EQ(refusal_of("seed = true"),
            "train.seed = true is not an integer\n  write an integer (0 and more), such as 1");
  EXPECT_EQ(refusal_of("clip_grad = \"1\""), "train.clip_grad = \"1\" is not a number\n  write 1");
  EXPECT_EQ(refusal_of("clip_grad = \"off\""),
            "train.clip_grad = \"off\" is not a number\n  write a number (0 and more), such as 1.0");
  EXPECT_EQ(refusal_of("precision = 32"),
            "train.precision = 32 is not a string\n  write one of fp32|bf16|fp16|fp64, in quotes");
  EXPECT_EQ(refusal_of("seed = 2020-01-01"),
            "train.seed = 2020-01-01 is not an integer\n  write an integer (0 and more), such as 1");
  EXPECT_EQ(refusal_of("seed = 07:32:00"),
            "train.seed = 07:32:00 is not an integer\n  write an integer (0 and more), such as 1");
}

TEST(Values, AListWithoutBracketsIsShownWithThem) {
  Workspace space;
  space.tables["parallel"] = "split = 2\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre("run.toml:16:9: parallel.split = 2 is not a list of integers\n  write [2], or \"auto\""));
  EXPECT_THAT(texts(space.load({}, {{"parallel.split", "1,1"}})),
              ElementsAre("--set: parallel.split = 1,1 is not a list of integers\n  write [1,1], or \"auto\""));
  EXPECT_THAT(texts(space.load({}, {{"parallel.split", "[1"}})),
              ElementsAre("--set: parallel.split = [1 is not a list of integers\n  write a list, or \"auto\""));
}

/// A shell removes the quotes from plugins.path=["/x"].
TEST(Values, AListOfPathsInAFlagIsShownWithTheQuotesThatAShellLeaves) {
  Workspace space;
  const auto refused = [&space](const std::string& value) { return texts(space.load({}, {{"data.paths", value}})); };
  EXPECT_THAT(refused("[/x]"), ElementsAre("--set: data.paths = [/x] is not a list of paths\n"
                                           "  write --set 'data.paths=[\"/x\"]'"));
  EXPECT_THAT(refused("a, b c"), ElementsAre(EndsWith("write --set 'data.paths=[\"a\", \"b c\"]'")));
  EXPECT_THAT(refused("[\"a\", b"), ElementsAre(EndsWith("write --set 'data.paths=[\"a\", \"b\"]'")));
  EXPECT_THAT(refused(""), ElementsAre(EndsWith("write --set 'data.paths=[\"...\"]'")));
  EXPECT_THAT(refused("[it's]"), ElementsAre(EndsWith("write the list as TOML: [\"...\", \"...\"]")));
}

TEST(Values, RatesThatOverflowFp32AreRefusedByTheirKeys) {
  Workspace space;
  space.tables["lr"] = "min = 1e31\n";
  EXPECT_THAT(texts(space.load({}, {{"optimizer.lr", "1e300"}, {"optimizer.weight_decay", "1e300"}})),
              ElementsAre(HasSubstr("lr.min must be in [0, 1e+30], got 1e+31"),
                          HasSubstr("optimizer.lr must be in [0, 1e+30], got 1e+300"),
                          HasSubstr("optimizer.weight_decay must be in [0, 1e+30], got 1e+300")));
}

TEST(Values, AnIntegerForARateIsShownAsWritten) {
  Workspace space;
  const auto wrong = HasSubstr("train.stall_timeout_s must be in [1, 1e+08], got 9223372036854775807");
  space.tables["train"] = "steps = 1\nstall_timeout_s = 9223372036854775807\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(wrong));
  EXPECT_THAT(texts(space.load({}, {{"train.stall_timeout_s", "9223372036854775807"}})), ElementsAre(wrong));
}

TEST(Values, LongInputIsCutInMessages) {
  Workspace space;
  const std::string most(200, 'x'), more(4000, 'x');
  space.tables["log"] = more + " = 1\nlevel = \"" + more + "\"\n";
  EXPECT_THAT(
      texts(space.load()),
      ElementsAre(HasSubstr("[log] has no key \"" + most + "...\"\n"),
                  HasSubstr("log.level must be one of trace, debug, info, warn or error, got \"" + most + "...\"")));
  space.tables["log"] = "level = [\"" + more + "\"]\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr(most.substr(3) + "... is not a string")));
  space.tables["log"] = "";
  EXPECT_THAT(texts(space.load({}, {{"log." + more, "1"}})), ElementsAre(HasSubstr("no key \"" + most + "...\"")));
}

TEST(Values, RangesChoicesAndFiniteNumbersAreChecked) {
  EXPECT_EQ(refusal_of("seed = -1"), "train.seed must be at least 0, got -1");
  EXPECT_EQ(refusal_of("clip_grad = nan"), "train.clip_grad = nan is not a finite number");
  EXPECT_EQ(refusal_of("clip_grad = inf"), "train.clip_grad = inf is not a finite number");
  EXPECT_EQ(refusal_of("precision = \"fp23\""),
            "train.precision must be one of fp32, bf16, fp16 or fp64, got \"fp23\"\n  did you mean \"fp32\"?");
  EXPECT_THAT(refusal_of("precision = \"f16\""), EndsWith("\n  did you mean \"bf16\" or \"fp16\"?")) << "as near";
  EXPECT_THAT(refusal_of("precision = \"BF16\""), EndsWith("\n  did you mean \"bf16\"?"));
  EXPECT_EQ(refusal_of("precision = \"bf8\""), "train.precision must be one of fp32, bf16, fp16 or fp64, got \"bf8\"");
}

TEST(Values, ANumberTakesAnInteger) {
  Workspace space;
  space.tables["optimizer"] = "plugin = \"optim-toy\"\nlr = 1\n";
  const LoadResult loaded = space.load();
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->optimizer_core.lr, 1.0);
}

TEST(Values, FlagsAreReadByTheTypeOfTheirKey) {
  Workspace space;
  const LoadResult loaded = space.load({}, {{"comm.timeout_s", "7"},
                                            {"comm.wait", "event"},
                                            {"comm.ratio", "1e-2"},
                                            {"comm.fast", "true"},
                                            {"comm.links", "[\"a\", \"b\"]"},
                                            {"model.plugin", "\"model-toy\""},
                                            {"parallel.split", "[2]"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  const Options& options = loaded.run->comm.at("pipeline").options;
  EXPECT_EQ(options.integer("timeout_s"), 7);
  EXPECT_EQ(options.text("wait"), "event");
  EXPECT_EQ(options.number("ratio"), 0.01);
  EXPECT_TRUE(options.flag("fast"));
  EXPECT_THAT(options.list<std::string>("links"), ElementsAre("a", "b"));
  EXPECT_THAT(loaded.run->parallel.split, ElementsAre(2));
}

TEST(Values, ASplitIsAListOrTheWordAuto) {
  for (const char* const flag : {"auto", "\"auto\""}) {
    Workspace space;
    const LoadResult loaded = space.load({}, {{"parallel.split", flag}});
    ASSERT_THAT(texts(loaded), IsEmpty());
    EXPECT_TRUE(loaded.run->parallel.is_split_automatic);
    EXPECT_THAT(loaded.run->parallel.split, IsEmpty());
  }
  Workspace space;
  space.tables["parallel"] = "split = \"auto\"\n";
  EXPECT_TRUE(space.load().run->parallel.is_split_automatic);
  space.tables["parallel"] = "split = \"even\"\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("parallel.split = \"even\" is not a list of integers\n"
                                                         "  write a list, or \"auto\"")));
  space.tables["parallel"] = "split = []\n";
  EXPECT_FALSE(space.load().run->parallel.is_split_automatic);
}

TEST(Values, AListOfEqualValuesIsEqualToTheOneValue) {
  using Words = PerStage<std::string>;
  const Words full("full"), listed = Words::listed({"full", "full"}), mixed = Words::listed({"full", "none"});
  EXPECT_EQ(full, listed);
  EXPECT_EQ(listed, full);
  EXPECT_NE(full, mixed);
  EXPECT_NE(mixed, full);
  EXPECT_NE(listed, mixed);
  EXPECT_NE(full, Words("none"));
}

TEST(Values, AFlagOfAnotherTypeOrAnUnknownKeyIsRefused) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"train.steps", "many"}})),
              ElementsAre("--set: train.steps = many is not an integer\n  write an integer (1 and more)"));
  EXPECT_THAT(texts(space.load({}, {{"train.steps", "5\nseed = 3"}})),
              ElementsAre("--set: train.steps = 5\nseed = 3 is not an integer\n  write an integer (1 and more)"));
  EXPECT_THAT(texts(space.load({}, {{"train.stesp", "5"}})),
              ElementsAre("--set: [train] has no key \"stesp\"; did you mean \"steps\"?\n"
                          "  keys of [train]: steps, stop_at, time_limit, seed, clip_grad, nonfinite, max_rewinds, "
                          "precision, cuda_graph, stall_timeout_s"));
  EXPECT_THAT(texts(space.load({}, {{"steps", "5"}})),
              ElementsAre("--set: \"steps\" needs a table; did you mean train.steps?"));
}

TEST(Values, PathsOfAFileBeginAtItAndPathsOfAFlagInTheWorkingFolder) {
  Workspace space;
  space.write("deep/base.toml", "[data]\npath = \"../text\"\n[comm]\nplugin = \"comm-alpha\"\ntrace = \"t.txt\"\n");
  space.tables.erase("data");
  space.tables.erase("comm");
  const LoadResult loaded = space.load("include = [\"deep/base.toml\"]\n", {{"run.dir", "here/out"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->data.training.paths, std::vector{space.path("text")});
  EXPECT_EQ(loaded.run->comm.at("tensor").options.path("trace"), space.path("deep/t.txt"));
  EXPECT_EQ(loaded.run->folder, std::filesystem::current_path() / "here/out");
  EXPECT_EQ(loaded.run->log.metrics, std::filesystem::current_path() / "here/out/metrics.jsonl");
}

TEST(Values, TheRunsFolderIsNamedAfterTheFile) {
  Workspace space;
  const LoadResult loaded = space.load();
  EXPECT_EQ(loaded.run->folder, std::filesystem::current_path() / "runs/run");
  EXPECT_TRUE(loaded.run->data.validation.paths.empty());
}

TEST(Values, PrecisionGivesBothTypes) {
  Workspace space;
  const LoadResult loaded = space.load({}, {{"train.precision", "fp64"}});
  EXPECT_EQ(loaded.run->train.compute, DType::f64);
  EXPECT_EQ(loaded.run->train.master, DType::f64);
}

TEST(Values, Fp16AloneHasALossScale) {
  Workspace space;
  for (const char* precision : {"fp32", "bf16", "fp64"}) {
    const LoadResult loaded = space.load({}, {{"train.precision", precision}});
    EXPECT_FALSE(loaded.run->train.loss_scale) << precision;
    EXPECT_EQ(shown(loaded, "loss_scale.initial"), "") << precision;
  }
  const LoadResult loaded = space.load({}, {{"train.precision", "fp16"}});
  EXPECT_EQ(loaded.run->train.compute, DType::f16);
  EXPECT_EQ(loaded.run->train.master, DType::f32);
  ASSERT_TRUE(loaded.run->train.loss_scale);
  EXPECT_EQ(loaded.run->train.loss_scale->initial, 65536);
  EXPECT_FALSE(loaded.run->train.loss_scale->constant);
  EXPECT_EQ(loaded.run->train.loss_scale->min, 1);
  EXPECT_EQ(loaded.run->train.loss_scale->window_steps, 1000);
  EXPECT_EQ(loaded.run->train.loss_scale->hysteresis, 2);
  EXPECT_EQ(shown(loaded, "loss_scale.initial"), "65536.0 # default");
}

TEST(Values, AConstantLossScaleNeedsNothingElse) {
  Workspace space;
  space.tables["loss_scale"] = "constant = true\ninitial = 1024\n";
  const LoadResult loaded = space.load({}, {{"train.precision", "fp16"}});
  ASSERT_TRUE(loaded.run->train.loss_scale);
  EXPECT_TRUE(loaded.run->train.loss_scale->constant);
  EXPECT_EQ(loaded.run->train.loss_scale->initial, 1024);
  EXPECT_EQ(shown(loaded, "loss_scale.min"), "");
}

TEST(Values, InBf16TheMasterStaysInFp32) {
  Workspace space;
  const LoadResult loaded = space.load({}, {{"train.precision", "bf16"}});
  EXPECT_EQ(loaded.run->train.compute, DType::bf16);
  EXPECT_EQ(loaded.run->train.master, DType::f32);
}

} // namespace
} // namespace triax::config
