// SPDX-License-Identifier: Apache-2.0
// Everything of `triax generate` before the ranks start: checkpoint, configuration, tokenizer, prompt and checks.
//
// Blocking: reads files, loads plugins, runs the checks in a child process. Errors: diagnostics, not thrown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/text_tokenizer.hpp"
#include "evaluate/choice_examples.hpp"
#include "generate/generate_arguments.hpp"
#include "generate/generating_run.hpp"
#include "generate/imported_checkpoint.hpp"
#include "train/generate_text.hpp"
#include "train/preflight_process.hpp"

namespace triax::app {

/// All that a run needs, once nothing is refused.
struct PreparedText {
  std::optional<ImportedCheckpoint> imported; // set if the weights come from a folder of transformers
  std::filesystem::path checkpoint;
  data::TextTokenizer tokenizer;
  config::LoadResult loaded;
  train::CheckedRun checked;
  std::optional<std::string> prompt;
  std::vector<std::int32_t> tokens;    // of the prompt
  std::vector<ChoiceExample> examples; // instead of a prompt
  train::ScoreJob scores;

  const config::RunConfig& run() const { return *loaded.run; }
};

/// Where the ranks are, if a launcher has started them.
struct TextRanks {
  std::optional<int> world;
  plugin::FirstLoad first_load = plugin::FirstLoad::probed;
};

/// Sets what can be known without asking plugins. All ranks of a run must do this, in separate processes or in
/// one.
std::vector<config::Diagnostic> load_text(const GenerateArguments& arguments, const TextRanks& ranks,
                                          PreparedText& prepared);

/// Sets `checked`: asks the plugins. Also refuses what is too long for the model.
std::vector<config::Diagnostic> check_text(const GenerateArguments& arguments, PreparedText& prepared,
                                           const train::PreflightRequest& request);

/// "uses the weights of runs/tiny/checkpoints/step-00000050 (step 50); 34.2 k parameters, ..."
std::string start_line(const PreparedText& prepared);

/// The options of generate_text().
train::GenerateOptions text_options(const GenerateArguments& arguments, const PreparedText& prepared);

} // namespace triax::app
