// Values that are right alone and wrong together; refusals all at once, in the order of the file.
#include "config/workspace.hpp"

namespace triax::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Together, TheBatchIsWholeMicrobatchesOnEveryDataRank) {
  Workspace space;
  space.tables["batch"] = "global = 12\nmicro = 5\n";
  EXPECT_THAT(
      texts(space.load({}, {{"parallel.data", "2"}})),
      ElementsAre("run.toml:2:10: batch.global = 12 does not divide by parallel.data = 2 (--set) x batch.micro = 5 "
                  "(run.toml:3:9): each data rank takes whole microbatches\n"
                  "  use batch.global 10 or 20, or batch.micro 3"));
}

TEST(Together, MicrobatchesFollowFromTheBatch) {
  Workspace space;
  space.tables["batch"] = "global = 12\nmicro = 2\n";
  EXPECT_EQ(space.load({}, {{"parallel.data", "3"}}).run->microbatches(), 2);
}

TEST(Together, SplitListsEveryStage) {
  Workspace space;
  space.tables["parallel"] = "pipeline = 2\nsplit = [1, 1, 1]\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre(HasSubstr("parallel.split lists 3 stages, but parallel.pipeline = 2 (run.toml:16:12) x "
                                    "parallel.chunks = 1 (default) makes 2")));
}

TEST(Together, TheLearningRateRisesAndFallsWithinTheRun) {
  Workspace space;
  space.tables["lr"] = "warmup_steps = 101\nmin = 1.0\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre(HasSubstr("lr.warmup_steps = 101 is more than train.steps = 100 (run.toml:"),
                          HasSubstr("lr.min = 1 is above optimizer.lr = 0.001 (run.toml:")));
}

TEST(Together, AnEvaluationNeedsDataAndItsLength) {
  Workspace space;
  space.tables["eval"] = "every = 10\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre(HasSubstr("eval.every = 10 needs eval.batches (default): how many"),
                          HasSubstr("eval.every = 10 needs data.validation (default): the token files")));
  space.tables["eval"] = "every = 10\nbatches = 2\n";
  space.tables["data"] = "path = \"text\"\nvalidation = \"held\"\n";
  EXPECT_THAT(texts(space.load()), IsEmpty());
}

TEST(Together, DataThatIsNotThereIsRefusedWithTheWayToMakeIt) {
  Workspace space;
  space.tables["data"] = "path = \"nothing\"\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre("run.toml:6:8: data.path: nothing.bin is not there\n"
                          "  make it with: triax data prepare --input FILE... --output nothing --tokenizer byte"));
}

TEST(Together, TheVocabularyComesFromTheTokenizerFileUnlessWritten) {
  Workspace space;
  space.tables["data"] = "path = \"held\"\n"; // has no tokenizer file
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("run.toml:6:8: model.vocab cannot be derived: held.json: ")));
  EXPECT_EQ(space.load({}, {{"model.vocab", "99"}}).run->vocab, 99);
}

TEST(Together, PathsThatTheRunNeedsAreNotEmpty) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"data.path", ""}})),
              ElementsAre(HasSubstr("--set: data.path is empty\n  make it with: triax data prepare ")));
  EXPECT_THAT(texts(space.load({}, {{"run.dir", ""}, {"log.metrics", ""}})),
              ElementsAre(HasSubstr("run.dir is empty"), HasSubstr("log.metrics is empty")));
}

TEST(Together, APathThatNoFileSystemTakesIsRefusedLikeOneThatIsNotThere) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"data.path", std::string(5000, 'a')}})), ElementsAre(HasSubstr("is not there")));
}

TEST(Together, NamesOfFilesAndFoldersThatAreNotThereAreRefused) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"data.path", space.path("text.bin").string()}})),
              ElementsAre(HasSubstr("text.bin.bin is not there\n  leave out .bin: ")));
  space.tables["plugins"] = "path = [\"" TOY_PLUGINS "\", \"nowhere\"]\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("nowhere is not a folder")));
}

TEST(Together, ALauncherDecidesTheSizeOfTheWorld) {
  Workspace space;
  space.tables["parallel"] = "pipeline = 2\ntensor = 2\n";
  space.load();
  EXPECT_EQ(load(space.path("run.toml"), {}).run->parallel.data, 1);
  EXPECT_EQ(load(space.path("run.toml"), {}, 8).run->parallel.data, 2);
  EXPECT_THAT(texts(load(space.path("run.toml"), {}, 6)),
              ElementsAre(HasSubstr("does not fit the launcher's 6 ranks")));
  EXPECT_THAT(texts(load(space.path("run.toml"), {{"parallel.data", "4"}}, 8)),
              ElementsAre(HasSubstr("x parallel.data = 4 (--set) does not fit the launcher's 8 ranks")));
}

TEST(Together, AllRefusalsComeAtOnceInTheOrderOfTheFile) {
  Workspace space;
  space.write("base.toml", "[log]\nlevel = \"loud\"\n");
  space.tables["train"] = "steps = 1.5\nsed = 3\n";
  space.tables["batch"] = "micro = 0\n";
  space.tables.erase("kernels");
  const Loaded loaded = space.load("include = [\"base.toml\"]\n", {{"data.paht", "x"}});
  EXPECT_FALSE(loaded.run);
  EXPECT_THAT(
      texts(loaded),
      ElementsAre(HasSubstr("base.toml:2:9: log.level = \"loud\""), HasSubstr("run.toml:2:2: [batch] lacks global"),
                  HasSubstr("run.toml:3:9: batch.micro = 0"), HasSubstr("train.steps = 1.5 is not"),
                  HasSubstr("[train] has no key \"sed\""), HasSubstr("run.toml: [kernels] names no plugin"),
                  HasSubstr("--set: [data] has no key \"paht\"")));
}

} // namespace
} // namespace triax::config
