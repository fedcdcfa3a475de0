// SPDX-License-Identifier: Apache-2.0
// A run's folder in a temporary folder, and runs that write records there.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "config/run_config.hpp"
#include "report/step_record.hpp"
#include "support/temp_folder.hpp"
#include "train/run_folder.hpp"
#include "triax/log.hpp"

namespace triax::train {

class RunFolderTest : public ::testing::Test {
 protected:
  RunFolderTest() {
    run_.folder = std::filesystem::canonical(folder_.path()) / "run";
    run_.log.metrics = run_.folder / "metrics.jsonl";
  }
  static report::StepRecord record(std::int64_t step) {
    report::StepRecord out;
    out.step = step;
    return out;
  }
  /// Runs up to this step, after `done` steps of an earlier run; returns the message about moved files.
  std::string train(int steps, const std::string& resolved = "# a run\n", int done = 0) {
    const RunFolder folder(run_, resolved);
    RunRecords records(run_, resolved, null_log());
    std::string moved = records.begin(done);
    for (int step = done + 1; step <= steps; ++step) records.write(record(step));
    return moved;
  }
  /// File contents by path within the test's folder.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      if (entry.is_regular_file()) out[entry.path().lexically_relative(folder_.path())] = test::read_file(entry.path());
    return out;
  }

  test::TempFolder folder_;
  config::RunConfig run_;
};

} // namespace triax::train
