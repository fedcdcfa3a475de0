// SPDX-License-Identifier: Apache-2.0
#include "generate/prepared_text.hpp"

#include <algorithm>

#include "checkpoint/manifest.hpp"
#include "common/refuse.hpp"
#include "generate/prompts.hpp"
#include "hf/carried_files.hpp"
#include "hf/model_config.hpp"
#include "report/units.hpp"
#include "train/find_checkpoint.hpp"
#include "train/train_files.hpp"

namespace triax::app {

namespace {

constexpr const char* kOrModelFolder =
    ", or the folder of a model of transformers (hf download NAME --local-dir FOLDER)";

std::vector<config::Diagnostic> check_tokenizer(const PreparedText& prepared) {
  const std::int64_t tokens = prepared.tokenizer.tokenizer->vocab(), vocab = prepared.run().vocab;
  if (tokens <= vocab) return {};
  return {config::diagnostic(
      ErrorCode::kIncompatible,
      text("{}: the tokenizer has {} tokens, but the model has {}", prepared.tokenizer.from, tokens, vocab),
      "name the tokenizer of the training data with --tokenizer")};
}

/// The KV cache has only the positions that the texts can use.
void set_sizes(const GenerateArguments& arguments, PreparedText& prepared) {
  config::GenerateSizes& sizes = *prepared.loaded.run->generate;
  sizes.samples = arguments.samples;
  if (prepared.prompt && arguments.max_tokens > 0)
    sizes.positions = static_cast<std::int64_t>(prepared.tokens.size()) + arguments.max_tokens;
}

/// Sequences of similar length are computed together, so the KV cache has the positions of the longest.
std::vector<config::Diagnostic> load_choices(const GenerateArguments& arguments, PreparedText& prepared) {
  std::vector<config::Diagnostic> refused;
  const std::filesystem::path file = arguments.choices;
  prepared.examples = read_choices(file, refused);
  if (!refused.empty()) return refused;
  std::vector<std::int32_t> separator;
  if (!prepared.tokenizer.ends.empty()) separator.push_back(prepared.tokenizer.ends.front());
  prepared.scores.sequences =
      sequences_of(prepared.examples, {file, *prepared.tokenizer.tokenizer, separator}, refused);
  if (!refused.empty()) return refused;
  std::size_t longest = 0;
  for (const train::ScoredSequence& sequence : prepared.scores.sequences)
    longest = std::max(longest, sequence.tokens.size());
  config::GenerateSizes& sizes = *prepared.loaded.run->generate;
  sizes.samples = arguments.samples;
  sizes.positions = static_cast<std::int64_t>(longest) - 1;
  return {};
}

/// The folder of the checkpoint; of a folder of transformers, that of its import.
std::vector<config::Diagnostic> find_weights(const GenerateArguments& arguments, PreparedText& prepared) {
  if (is_model_folder(arguments.checkpoint)) {
    prepared.imported.emplace();
    if (std::vector<config::Diagnostic> refused = prepared.imported->import(arguments.checkpoint); !refused.empty())
      return refused;
    prepared.checkpoint = prepared.imported->folder();
  } else {
    prepared.checkpoint = std::filesystem::absolute(train::find_checkpoint(arguments.checkpoint, kOrModelFolder));
  }
  return {};
}

std::vector<config::Diagnostic> conflicting_flags(const GenerateArguments& arguments) {
  Refusals out;
  std::vector<std::string> prompts;
  if (arguments.prompt) prompts.emplace_back("--prompt");
  if (!arguments.file.empty()) prompts.emplace_back("--file");
  if (!arguments.input.empty()) prompts.push_back(arguments.input);
  if (prompts.size() > 1)
    out.add(make_refusal(ErrorCode::kConflict, prompts, "--prompt, --file and - cannot be combined")
                .with_hint("use one of them"));
  if (!arguments.input.empty() && arguments.input != "-")
    out.add(make_refusal(ErrorCode::kInvalidValue, {arguments.input}, "unexpected argument: {}", arguments.input)
                .with_hint("write the prompt as --prompt TEXT, or - for standard input"));
  const executor::SamplingOptions& sampling = arguments.sampling;
  const auto no_effect = [&out](const char* flag) {
    out.add(make_refusal(ErrorCode::kConflict, {flag, "--temperature"},
                         "{} has no effect with --temperature 0: the most probable token is "
                         "chosen",
                         flag)
                .with_hint("add --temperature 1, or leave {} out", flag));
  };
  if (sampling.temperature == 0 && arguments.choices.empty()) {
    if (sampling.top_k > 0) no_effect("--top-k");
    if (sampling.top_p < 1) no_effect("--top-p");
    if (sampling.min_p > 0) no_effect("--min-p");
    if (arguments.has_seed) no_effect("--seed");
    if (arguments.samples > 1)
      out.add(make_refusal(ErrorCode::kConflict, {"--samples", "--temperature"},
                           "--samples {} with --temperature 0: all samples would be equal", arguments.samples)
                  .with_hint("add --temperature 1, or leave --samples out"));
  }
  return out.empty() ? std::vector<config::Diagnostic>() : diagnostics_of(out);
}

} // namespace

std::vector<config::Diagnostic> load_text(const GenerateArguments& arguments, const TextRanks& ranks,
                                          PreparedText& prepared) {
  if (std::vector<config::Diagnostic> conflicts = conflicting_flags(arguments); !conflicts.empty()) return conflicts;
  try {
    if (std::vector<config::Diagnostic> refused = find_weights(arguments, prepared); !refused.empty()) return refused;
    const checkpoint::Manifest manifest = checkpoint::read_manifest(prepared.checkpoint / checkpoint::kManifestFile);
    const std::filesystem::path shown = prepared.imported ? prepared.imported->model() / hf::kConfigFile
                                                          : prepared.checkpoint / checkpoint::kManifestFile;
    prepared.loaded =
        load_generating_run({prepared.checkpoint, manifest, shown}, arguments.overrides, ranks.world, ranks.first_load);
    if (!prepared.loaded.run) return prepared.loaded.refusals;
    const std::filesystem::path model_folder =
        prepared.imported ? prepared.imported->model() : prepared.checkpoint / hf::kCarriedFolder;
    prepared.tokenizer =
        tokenizer_of({prepared.checkpoint, manifest, model_folder, prepared.run().vocab}, arguments.tokenizer);
    if (std::vector<config::Diagnostic> refused = check_tokenizer(prepared); !refused.empty()) return refused;
    if (!arguments.choices.empty()) return load_choices(arguments, prepared);
    prepared.prompt = given_prompt(arguments);
    if (!prepared.prompt && arguments.json)
      throw Error("--json prints the texts of one prompt, but there is none", {},
                  "add --prompt TEXT, --file FILE, or - for standard input");
    if (prepared.prompt) prepared.tokens = data::encode_prompt(prepared.tokenizer, *prepared.prompt);
    set_sizes(arguments, prepared);
    return {};
  } catch (const train::CheckpointError& error) {
    return {config::file_diagnostic(error.code(), error, "CHECKPOINT")};
  } catch (const Error& error) {
    return {config::diagnostic(ErrorCode::kInvalidValue, error)};
  }
}

std::vector<config::Diagnostic> check_text(const GenerateArguments& arguments, PreparedText& prepared,
                                           const train::PreflightRequest& request) {
  try {
    prepared.checked = ask(prepared.run(), request);
    if (std::vector<config::Diagnostic> refused = refusals(prepared.loaded, prepared.checked.preflight);
        !refused.empty())
      return refused;
    if (!arguments.choices.empty())
      return too_long(prepared.examples, arguments.choices, prepared.scores.sequences,
                      prepared.checked.preflight.positions);
    data::check_prompt_length(prepared.tokens, prepared.checked.preflight.positions);
    return {};
  } catch (const Error& error) {
    return {config::diagnostic(ErrorCode::kInvalidValue, error)};
  }
}

std::string start_line(const PreparedText& prepared) {
  const config::RunConfig& run = prepared.run();
  const train::Preflight& checked = prepared.checked.preflight;
  const std::string weights =
      prepared.imported ? text("uses the weights of {}", prepared.imported->model()) : checked.resume;
  return text("{}; {} parameters, pipeline {} x tensor {}; {}, {}; {}", weights,
              report::count_text(static_cast<double>(checked.parameters)), run.parallel.pipeline, run.parallel.tensor,
              run.model.name, run.kernels.name,
              train::to_text(prepared.checked.placement, checked.device, checked.threads));
}

train::GenerateOptions text_options(const GenerateArguments& arguments, const PreparedText& prepared) {
  return {.sampling = arguments.sampling,
          .max_tokens = arguments.max_tokens,
          .stops = arguments.stops,
          .ends = prepared.tokenizer.ends,
          .tokenizer = prepared.tokenizer.tokenizer.get()};
}

} // namespace triax::app
