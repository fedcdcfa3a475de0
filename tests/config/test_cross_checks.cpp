// SPDX-License-Identifier: Apache-2.0
// Cross-checks: values that are valid alone but not together. All errors are listed, in the order of the file.
#include <sys/stat.h>

#include "config/workspace.hpp"

namespace triax::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CrossChecks, TheBatchIsWholeMicrobatchesOnEveryDataRank) {
  Workspace space;
  space.tables["batch"] = "global = 12\nmicro = 5\n";
  EXPECT_THAT(texts(space.load({}, {{"parallel.data", "2"}})),
              ElementsAre("run.toml:2:10: batch.global = 12 is not divisible by parallel.data = 2 x batch.micro = 5: "
                          "each data rank runs whole microbatches\n  parallel.data is set by --set\n"
                          "  batch.micro is set at run.toml:3:9\n"
                          "  use batch.global 10 or 20, or batch.micro 3"));
}

TEST(CrossChecks, MicrobatchesFollowFromTheBatch) {
  Workspace space;
  space.tables["batch"] = "global = 12\nmicro = 2\n";
  EXPECT_EQ(space.load({}, {{"parallel.data", "3"}}).run->microbatches(), 2);
}

TEST(CrossChecks, SplitListsEveryStage) {
  Workspace space;
  space.tables["parallel"] = "pipeline = 2\nsplit = [1, 1, 1]\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre(HasSubstr("parallel.split lists 3 stages, but parallel.pipeline = 2 x "
                                    "parallel.chunks = 1 makes 2\n  parallel.pipeline is set at run.toml:16:12\n"
                                    "  parallel.chunks = 1 is the default\n")));
}

TEST(CrossChecks, RefusesAMinimumAboveTheLearningRate) {
  Workspace space;
  space.tables["lr"] = "min = 1.0\ndecay = \"linear\"\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre(HasSubstr("lr.min must be at most optimizer.lr = 0.001, got 1: the learning rate would rise\n"
                                    "  optimizer.lr is set at run.toml:")));
}

TEST(CrossChecks, RefusesAMinimumThatHasNoEffect) {
  Workspace space;
  space.tables["lr"] = "min = 1e-5\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("lr.min has no effect with lr.decay = \"constant\"")));
}

/// For example, a trial with --set train.steps=3.
TEST(CrossChecks, ARunMayEndInItsWarmUp) {
  Workspace space;
  space.tables["lr"] = "warmup_steps = 101\ndecay = \"cosine\"\n";
  EXPECT_THAT(texts(space.load()), IsEmpty());
}

TEST(CrossChecks, AnEvaluationNeedsDataAndItsLength) {
  Workspace space;
  space.tables["eval"] = "every = 10\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("eval.batches is required with eval.every = 10"),
                                               HasSubstr("data.validation is required with eval.every = 10")));
  space.tables["eval"] = "every = 10\nbatches = 2\n";
  space.tables["data"] = "path = \"text\"\nvalidation = \"held\"\n";
  EXPECT_THAT(texts(space.load()), IsEmpty());
}

TEST(CrossChecks, DataThatIsNotThereIsRefusedWithTheWayToMakeIt) {
  Workspace space;
  space.tables["data"] = "path = \"nothing\"\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre("run.toml:6:8: data.path: nothing.bin does not exist\n"
                          "  prepare it with: triax data prepare --input FILE... --output nothing --tokenizer byte"));
}

/// The text of another tokenizer would mean nothing to the weights.
TEST(CrossChecks, DataForACheckpointIsPreparedWithItsTokenizer) {
  Workspace space;
  space.tables["data"] = "path = \"nothing\"\n";
  space.tables["checkpoint"] = "from = \"imported\"\nload = \"weights\"\n";
  const std::string command = "  prepare it with: triax data prepare --input FILE... --output nothing --tokenizer ";
  EXPECT_THAT(texts(space.load()), ElementsAre(testing::EndsWith(command + "NAME")));
  space.write("imported/hf/tokenizer.json", "{}");
  EXPECT_THAT(texts(space.load()), ElementsAre(testing::EndsWith(command + "imported/hf/tokenizer.json")));
}

/// Whatever files have the name of an example.
TEST(CrossChecks, ThatNoDataIsNamedHasOneNextStep) {
  Workspace space;
  const std::filesystem::path before = std::filesystem::current_path();
  space.write("data/mine.bin", "");
  std::filesystem::current_path(space.path(""));
  for (const char* key : {"", "path = \"\"\n"}) {
    space.tables["data"] = key;
    EXPECT_THAT(texts(space.load()),
                ElementsAre(testing::EndsWith(
                    "\n  set data.path to the prefix of token files; triax data prepare makes them")));
  }
  std::filesystem::current_path(before);
}

TEST(CrossChecks, NamesTheTypeOfADataFileThatIsNotRegular) {
  Workspace space;
  const auto refused = [&space] { return texts(space.load({}, {{"model.vocab", "257"}})); };
  const auto replace = [&space](const char* name) {
    std::filesystem::remove(space.path(name));
    return space.path(name);
  };
  std::filesystem::create_directory(replace("text.bin"));
  EXPECT_THAT(refused(), ElementsAre(HasSubstr("text.bin is a folder, not a regular file")));
  ASSERT_EQ(::mkfifo(replace("text.bin").c_str(), 0600), 0);
  EXPECT_THAT(refused(), ElementsAre(HasSubstr("text.bin is a FIFO, not a regular file")));
  replace("text.bin");
  space.write("text.bin", "");
  std::filesystem::create_symlink("text.idx", replace("text.idx"));
  EXPECT_THAT(refused(), ElementsAre(HasSubstr("text.idx cannot be opened: Too many levels of symbolic links")));
  std::filesystem::create_symlink("moved.idx", replace("text.idx"));
  EXPECT_THAT(refused(), ElementsAre(HasSubstr("text.idx is a symbolic link to moved.idx, which does not exist")));
}

TEST(CrossChecks, SeveralCorporaAreNamedOnceEachWithAWeightEach) {
  Workspace space;
  space.write("held.json", R"({"tokenizer": "byte", "vocab": 257})");
  space.tables["data"] = "paths = [\"text\", \"held\"]\nweights = [3, 0.5]\n";
  const LoadResult loaded = space.load();
  EXPECT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->data.training.paths, (std::vector{space.path("text"), space.path("held")}));
  EXPECT_EQ(loaded.run->data.training.weights, (std::vector{3.0, 0.5}));
  EXPECT_EQ(loaded.run->vocab, 257);

  space.tables["data"] = "path = \"text\"\npaths = [\"text\", \"held\", \"held\"]\nweights = [1, 0]\n";
  EXPECT_THAT(texts(space.load()),
              ::testing::UnorderedElementsAre(HasSubstr("data.path and data.paths cannot both be set\n  data.paths is "
                                                        "set at run.toml:7:9\n  name all of them in data.paths"),
                                              HasSubstr("data.weights has 2 numbers, but data.paths names 3 corpora\n"
                                                        "  data.paths is set at run.toml:7:9\n"
                                                        "  write one for each, or leave data.weights"),
                                              HasSubstr("data.weights contains 0: a weight must be above 0"),
                                              HasSubstr("data.paths names ")));
  space.tables["data"] = "paths = [\"text\", \"held\"]\nweights = [1]\n";
  EXPECT_THAT(texts(space.load()), Contains(HasSubstr("data.weights has 1 number, but data.paths names 2 corpora\n")));
  space.tables["data"] = "paths = [\"text\"]\nweights = [1, 2]\n";
  EXPECT_THAT(texts(space.load()), Contains(HasSubstr("data.weights has 2 numbers, but data.paths names 1 corpus\n")));
  space.tables["data"] = "";
  EXPECT_THAT(texts(space.load()),
              ElementsAre(HasSubstr("run.toml: data.path is missing (token files to train on; data.paths: several)")));
  space.tables["data"] = "paths = [\"text\", \"nothing\"]\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("run.toml:6:9: data.paths: nothing.bin does not exist")));
}

/// A list of a thousand names with one mistake in common is one page, not a thousand errors.
TEST(CrossChecks, ShowTheFirstEntriesOfAListThatAreWrong) {
  Workspace space;
  std::string paths, weights;
  for (int i = 0; i < 1000; ++i) {
    paths += text("\"none-{}\", ", i);
    weights += "0, ";
  }
  space.tables["data"] = "paths = [" + paths + "]\nweights = [" + weights + "]\n";
  EXPECT_THAT(
      texts(space.load()),
      ElementsAre(HasSubstr("data.paths: none-0.bin does not exist"), HasSubstr("data.paths: none-1.bin"),
                  HasSubstr("data.paths: none-2.bin"),
                  HasSubstr("data.paths: 997 more of its 1000 entries are refused\n  correct the entries above"),
                  HasSubstr("data.weights contains 0"), HasSubstr("data.weights contains 0"),
                  HasSubstr("data.weights contains 0"), HasSubstr("data.weights: 997 more of its 1000")));
}

TEST(CrossChecks, CorporaOfDifferentTokenizersAreRefused) {
  Workspace space;
  space.write("held.json", R"({"tokenizer": "bpe", "vocab": 257, "digest": "01"})");
  const auto refused = HasSubstr(
      "held and text have different tokenizers: bpe of 257 ids (01), and byte of 257 ids (byte)\n  "
      "prepare all of a run's corpora with one tokenizer");
  space.tables["data"] = "paths = [\"text\", \"held\"]\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(refused));
  space.tables["data"] = "path = \"text\"\nvalidation_paths = [\"held\"]\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(refused));
  space.tables["data"] = "paths = [\"text\", \"held\"]\n";
  std::filesystem::remove(space.path("held.json"));
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("held.json: does not exist")));
  EXPECT_THAT(texts(space.load({}, {{"model.vocab", "257"}})), IsEmpty());
}

TEST(CrossChecks, TheVocabularyComesFromTheTokenizerFileUnlessWritten) {
  Workspace space;
  space.tables["data"] = "path = \"held\"\n"; // without a tokenizer file
  EXPECT_THAT(
      texts(space.load()),
      ElementsAre("run.toml:6:8: data.path: held.json: does not exist; it names the tokenizer and the size of its "
                  "vocabulary\n"
                  "  prepare the dataset again with its tokenizer: triax data prepare --input FILE... --output "
                  "held --tokenizer NAME --force\n"
                  "  or set model.vocab, for token files of another program"));
  EXPECT_EQ(space.load({}, {{"model.vocab", "99"}}).run->vocab, 99);
}

TEST(CrossChecks, ATokenizerFileIsCheckedAlsoIfTheVocabularyIsWritten) {
  Workspace space;
  const auto refused = [&space] { return texts(space.load({}, {{"model.vocab", "257"}})); };
  for (const auto& [content, wrong] : std::map<std::string, std::string>{
           {R"({"tokenizer": 5, "vocab": 257})", "key \"tokenizer\" is 5; it must be the name of a tokenizer"},
           {R"({"tokenizer": "byte", "vocab": 257, "end_of_document": {}})",
            "key \"end_of_document\" is {}; it must be an integer in [0, 256]"},
           {"{", "is not valid JSON: unexpected end of file at byte 2"}}) {
    space.write("text.json", content);
    EXPECT_THAT(refused(), ElementsAre(AllOf(HasSubstr("run.toml:6:8: data.path: text.json: " + wrong),
                                             HasSubstr("\n  or remove the file, because model.vocab is set"))));
  }
  space.write("text.json", R"({"made by": "another program"})");
  EXPECT_THAT(refused(), IsEmpty());
}

TEST(CrossChecks, ReportsABrokenTokenizerFileWithAHint) {
  Workspace space;
  space.write("text.json", "{\"tokenizer\": byte}");
  EXPECT_THAT(texts(space.load({}, {{"data.path", space.path("text").string()}})),
              ElementsAre("--set: data.path: text.json: is not valid JSON: error at byte 15\n"
                          "  prepare the dataset again with its tokenizer: triax data prepare --input FILE... --output "
                          "text --tokenizer NAME --force\n"
                          "  or set model.vocab, for token files of another program"));
  space.write("text.json", "{\"tokenizer\": \"byte\"}");
  EXPECT_THAT(texts(space.load()),
              ElementsAre(HasSubstr("run.toml:6:8: data.path: text.json: has no key \"vocab\": an integer "
                                    "in [1, 2147483647]\n  prepare the dataset again")));
}

TEST(CrossChecks, AFolderThatCannotBeMadeIsFoundWithoutMakingAny) {
  Workspace space;
  space.write("taken", "");
  const std::string file = space.path("taken").string();
  EXPECT_THAT(texts(space.load({}, {{"run.dir", file}})),
              ElementsAre("--set: run.dir = \"taken\" cannot be written: taken is a file, not a folder\n"
                          "  choose another folder with run.dir"));
  EXPECT_THAT(texts(space.load({}, {{"run.dir", file + "/a/b"}})),
              ElementsAre("--set: run.dir = \"taken/a/b\" cannot be written: taken is a file, not a folder\n"
                          "  choose another folder with run.dir"));
  EXPECT_THAT(texts(space.load({}, {{"log.metrics", file + "/metrics"}})),
              ElementsAre("--set: log.metrics = \"taken/metrics\" cannot be written: taken is a file, not a folder\n"
                          "  choose another folder with log.metrics"));
  EXPECT_THAT(texts(space.load({}, {{"log.metrics", space.path(".").string()}})),
              ElementsAre(AllOf(HasSubstr("--set: log.metrics = "), HasSubstr(" is a folder\n  name a file"))));
  const std::string there = space.path("new/deep").string();
  EXPECT_THAT(texts(space.load({}, {{"run.dir", there}})), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(space.path("new")));
}

TEST(CrossChecks, RefusesPathsThatAreNotUtf8) {
  Workspace space;
  for (const char* key : {"run.dir", "comm.trace", "comm.links"}) {
    const bool list = std::string(key) == "comm.links";
    const std::string name = space.path("a\xFF").string();
    EXPECT_THAT(texts(space.load({}, {{key, list ? "[\"" + name + "\"]" : name}})),
                ElementsAre(HasSubstr(list ? "is not a list of strings" : "is not valid UTF-8, as TOML requires\n")));
  }
  EXPECT_THAT(texts(space.load({}, {{"run.dir", space.path("\xC3\xBC").string()}})), IsEmpty());
  test::write_file(space.path("\xFF.toml"), test::read_file(space.path("run.toml"))); // determines run.dir
  EXPECT_THAT(texts(space.load_file("\xFF.toml")), ElementsAre(HasSubstr("run.dir is not valid UTF-8")));
}

TEST(CrossChecks, AFolderOfTheEnvironmentThatIsNotThereIsRefused) {
  Workspace space;
  ::setenv("TRIAX_PLUGIN_PATH", ("/no/such/folder:" SAMPLE_PLUGINS), 1);
  const std::vector<std::string> refused = texts(space.load());
  ::setenv("TRIAX_PLUGIN_PATH", SAMPLE_PLUGINS, 1);
  EXPECT_THAT(texts(space.load()), IsEmpty());
  ::unsetenv("TRIAX_PLUGIN_PATH");
  EXPECT_THAT(refused, ElementsAre("TRIAX_PLUGIN_PATH names /no/such/folder, which is not a folder\n"
                                   "  create it, or remove it from the variable"));
}

TEST(CrossChecks, PathsThatTheRunNeedsAreNotEmpty) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"data.path", ""}})),
              ElementsAre(HasSubstr("--set: data.path is empty\n"
                                    "  set data.path to the prefix of token files")));
  EXPECT_THAT(texts(space.load({}, {{"run.dir", ""}, {"log.metrics", ""}})),
              ElementsAre(HasSubstr("run.dir is empty"), HasSubstr("log.metrics is empty")));
}

TEST(CrossChecks, APathThatNoFileSystemTakesIsRefusedLikeOneThatIsNotThere) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"data.path", std::string(5000, 'a')}})),
              ElementsAre(HasSubstr("cannot be opened: File name too long")));
}

TEST(CrossChecks, NamesOfFilesAndFoldersThatAreNotThereAreRefused) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"data.path", space.path("text.bin").string()}})),
              ElementsAre(HasSubstr("text.bin.bin does not exist\n  leave out .bin: ")));
  space.tables["plugins"] = "path = [\"" SAMPLE_PLUGINS "\", \"nowhere\"]\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("nowhere is not a folder")));
}

TEST(CrossChecks, ALauncherDecidesTheSizeOfTheWorld) {
  Workspace space;
  space.tables["parallel"] = "pipeline = 2\ntensor = 2\n";
  space.load();
  EXPECT_EQ(load(space.path("run.toml"), {}).run->parallel.data, 1);
  EXPECT_EQ(load(space.path("run.toml"), {}, 8).run->parallel.data, 2);
  EXPECT_THAT(texts(load(space.path("run.toml"), {}, 6)),
              ElementsAre(HasSubstr("does not fit the launcher's 6 ranks")));
  EXPECT_THAT(texts(load(space.path("run.toml"), {{"parallel.data", "4"}}, 8)),
              ElementsAre(HasSubstr("x parallel.data = 4 does not fit the launcher's 8 ranks")));
}

TEST(CrossChecks, AllRefusalsComeAtOnceInTheOrderOfTheFile) {
  Workspace space;
  space.write("base.toml", "[log]\nlevel = \"loud\"\n");
  space.tables["train"] = "steps = 1.5\nsed = 3\n";
  space.tables["batch"] = "micro = 0\n";
  space.tables.erase("kernels");
  const LoadResult loaded = space.load("include = [\"base.toml\"]\n", {{"data.paht", "x"}});
  EXPECT_FALSE(loaded.run);
  EXPECT_THAT(texts(loaded), ElementsAre(HasSubstr("base.toml:2:9: log.level must be one of trace, debug,"),
                                         HasSubstr("run.toml:2:2: batch.global is missing"),
                                         HasSubstr("run.toml:3:9: batch.micro must be in [1, 16777216], got 0"),
                                         HasSubstr("train.steps = 1.5 is not"), HasSubstr("[train] has no key \"sed\""),
                                         HasSubstr("run.toml: kernels.plugin is missing"),
                                         HasSubstr("--set: [data] has no key \"paht\"")));
}

} // namespace
} // namespace triax::config
