// SPDX-License-Identifier: Apache-2.0
// Event files of a run's folder (log.tensorboard).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "train/run_folder_fixture.hpp"

namespace triax::train {
namespace {

namespace fs = std::filesystem;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using RunEvents = RunFolderTest;

/// Names of the event files in a folder of the test.
std::vector<std::string> event_files(const std::map<std::string, std::string>& files, const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& [name, content] : files)
    if (name.starts_with(folder + "/events.out.tfevents.")) out.push_back(name);
  return out;
}

TEST_F(RunEvents, EveryStartAndEveryRewindWritesAnEventFile) {
  run_.log.tensorboard = true;
  train(3);
  EXPECT_EQ(event_files(files(), "run/tensorboard").size(), 1);
  train(5, "# a run\n", 3); // continues
  EXPECT_EQ(event_files(files(), "run/tensorboard").size(), 2);
  RunRecords records(run_, "# a run\n", null_log());
  records.begin(5);
  records.write(record(6));
  records.rewind(5);
  records.write(record(6));
  EXPECT_EQ(event_files(files(), "run/tensorboard").size(), 4);
  EXPECT_EQ(records.missing_events(), 0);
  EXPECT_THAT(train(1), HasSubstr("tensorboard to tensorboard-"));
  EXPECT_EQ(event_files(files(), "run/tensorboard").size(), 1);
}

TEST_F(RunEvents, AnEvaluationThatIsMadeLaterIsAnEventToo) {
  run_.log.tensorboard = true;
  train(3);
  RunRecords records(run_, "# a run\n", null_log());
  records.begin(3);
  const auto newest = [this] {
    const std::string name = event_files(files(), "run/tensorboard").back();
    return files().at(name);
  };
  const std::string before = newest();
  report::StepRecord evaluated;
  evaluated.step = 3;
  evaluated.eval_loss = 5.5;
  records.add_evaluation(evaluated);
  EXPECT_THAT(newest(), AllOf(StartsWith(before), HasSubstr("eval_loss"), Not(HasSubstr("grad_norm"))));
}

TEST_F(RunEvents, EventsOfARunThatRewindsAfterAMoveAreInItsFolder) {
  run_.log.tensorboard = true;
  fs::create_directories(run_.folder);
  RunRecords records(run_, "# a run\n", null_log());
  records.begin();
  records.write(record(1));
  records.write(record(2));
  fs::rename(run_.folder, folder_ / "moved");
  records.rewind(1);
  EXPECT_EQ(event_files(files(), "moved/tensorboard").size(), 2);
  EXPECT_FALSE(fs::exists(run_.folder));
}

TEST_F(RunEvents, EventsThatCannotBeWrittenDoNotEndTheRun) {
  run_.log.tensorboard = true;
  fs::create_directories(run_.folder);
  write_file(run_.folder / "tensorboard", "a file where the folder should be");
  RunRecords records(run_, "# a run\n", null_log());
  records.begin();
  records.write(record(1));
  EXPECT_EQ(records.missing_events(), 1);
  EXPECT_EQ(records.missing(), 0);
}

} // namespace
} // namespace triax::train
