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

#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {

inline const char* const kThreadRun = R"([model]
plugin = "model-gpt"
layers = 2
hidden = 16
heads = 2
sequence = 8
dropout = 0.1

[batch]
global = 8

[parallel]
data = 2
tensor = 2

[schedule]
plugin = "sched-gpipe"

[comm]
plugin = "comm-local"

[kernels]
plugin = "kernels-reference"

[optimizer]
plugin = "optim-adamw"
lr = 1e-2

[train]
steps = 10

[data]
path = "text"
validation = "text"

[eval]
every = 5
batches = 1

[run]
dir = "run"
)";

inline std::vector<nlohmann::json> records(const std::filesystem::path& file) {
  std::vector<nlohmann::json> out;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

class ThreadRun : public testing::Test {
 protected:
  ThreadRun() {
    write_file(work_ / "run.toml", kThreadRun);
    std::string text;
    for (int i = 0; i < 60; ++i) text += "line " + std::to_string(i * i) + " of a text to learn from\n";
    write_file(work_ / "text.txt", text);
    run(work_.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
  }
  Outcome train(const std::string& arguments, const std::string& streams = "2>&1") const {
    return run(work_.path(), "train run.toml " + arguments, streams);
  }
  TempFolder work_;
};

} // namespace triax::test
