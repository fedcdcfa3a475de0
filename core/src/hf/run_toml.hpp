// SPDX-License-Identifier: Apache-2.0
// The TOML of a run that continues training an imported model on one rank.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace triax::hf {

struct RunChoices {
  std::string comment;
  std::filesystem::path run, checkpoint;                  // the TOML is for `run`; it begins with `checkpoint`
  std::string data;                                       // prefix of token files; may be empty
  std::vector<std::filesystem::path> paths;               // [plugins] path
  std::vector<std::pair<std::string, std::string>> model; // keys of [model] and their values as TOML
};

std::string run_toml(const RunChoices& choices);

} // namespace triax::hf
