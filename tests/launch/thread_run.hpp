// SPDX-License-Identifier: Apache-2.0
// A tiny run over comm-local with four ranks as threads, trained by the triax program, for tests.
//
// Threads: one. Ownership: owns its folder. Blocking: train() until the program ends. For programs of triax_add_test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "launch/tiny_folder.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {

inline const char* const kThreadTables = R"(
[parallel]
data = 2
tensor = 2

[schedule]
plugin = "sched-gpipe"

[comm]
plugin = "comm-local"

[data]
path = "text"
validation = "text"

[eval]
every = 5
batches = 1

[checkpoint]
resume = "never"
)";

inline std::vector<nlohmann::json> records(const std::filesystem::path& file) {
  std::vector<nlohmann::json> out;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

class ThreadRun : public testing::Test {
 protected:
  ThreadRun() { fill_tiny_folder(work_, kThreadTables); }
  Outcome train(const std::string& arguments, const std::string& streams = "2>&1") const {
    return run(work_.path(), "train run.toml " + arguments, streams);
  }
  TempFolder work_;
};

} // namespace triax::test
