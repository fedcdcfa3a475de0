// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of preflight: a run with real data files, 400 bytes of text.
//
// Threads: one. Ownership: owns its folder.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/prepare.hpp"
#include "train/preflight.hpp"
#include "train/tiny_run.hpp"

namespace triax::test {

/// Makes the run's corpus of `text`, whose tokens are bytes.
inline void prepare_text(TinyRun& run, const std::string& text) {
  write_file(run.folder() / "text.txt", text);
  data::PrepareRequest request;
  request.inputs = {run.folder() / "text.txt"};
  request.output = run.folder() / "text";
  request.tokenizer.name = "byte";
  request.force = true;
  data::prepare(request, [](std::uint64_t, std::uint64_t) {});
  run.keys.erase("model.vocab");
}

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    std::string text;
    while (text.size() < 400) text += "abc def gh\n";
    prepare_text(run_, text);
  }
  Refusals refused() {
    const config::RunConfig config = run_.config();
    train::Placement placement = train::choose_placement(config);
    placement.ranks_are_threads = ranks_are_threads_;
    return train::preflight(config, placement, null_log(), devices_).refusals;
  }
  std::vector<std::string> refusals() {
    std::vector<std::string> out;
    for (const Refusal& refusal : refused())
      out.push_back(refusal.message + (refusal.hint.empty() ? "" : "\n  " + refusal.hint));
    return out;
  }
  TinyRun run_;
  bool ranks_are_threads_ = true;
  train::CheckedDevices devices_;
};

} // namespace triax::test
