// SPDX-License-Identifier: Apache-2.0
// triax generate: text from a checkpoint's weights.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/unknown_variables.hpp"
#include "common/verbs.hpp"
#include "generate/generate_ranks.hpp"
#include "generate/generate_report.hpp"
#include "launch/key_check.hpp"
#include "os/ending_signals.hpp"

namespace triax::app {

namespace {

constexpr int kMaxSamples = 1024;
constexpr double kMaxTemperature = 1000, kMaxPenalty = 1000;
constexpr double kMinPenalty = 1e-3;
constexpr long long kMaxCount = std::numeric_limits<std::int32_t>::max();
constexpr long long kMaxSeed = std::numeric_limits<std::int64_t>::max();

int refuse_text(const GenerateArguments& arguments, const config::Diagnostic& refused) {
  return GenerateReport(arguments).refused({refused});
}

/// Everything before the ranks start, if no launcher has started them.
std::vector<config::Diagnostic> prepare(const GenerateArguments& arguments, PreparedText& prepared) {
  if (std::vector<config::Diagnostic> refused = load_text(arguments, {}, prepared); !refused.empty()) return refused;
  const auto devices = [](const train::Placement& on) { return train::CheckedDevices{0, on.ranks}; };
  if (std::vector<config::Diagnostic> refused = check_text(arguments, prepared, {std::nullopt, devices});
      !refused.empty())
    return refused;
  if (prepared.checked.placement.ranks_are_threads) return {};
  if (const Refusals keys = launch::check_keys(prepared.run().launch); !keys.empty()) return diagnostics_of(keys);
  if (const auto refused = refused_for_processes(arguments, prepared)) return {*refused};
  return {};
}

} // namespace

void add_tokenizer_flags(CLI::App& verb, GenerateArguments& arguments) {
  verb.add_option("--tokenizer", arguments.tokenizer.name,
                  "byte; gpt2: the two files of --vocab and --merges; or a tokenizer.json [that of the imported model, "
                  "or of the training data]")
      ->type_name("byte|gpt2|FILE")
      ->check(not_empty());
  verb.add_option("--vocab", arguments.tokenizer.vocab, "vocab.json of --tokenizer gpt2")
      ->type_name("FILE")
      ->needs(verb.get_option("--tokenizer"));
  verb.add_option("--merges", arguments.tokenizer.merges, "merges.txt of --tokenizer gpt2")
      ->type_name("FILE")
      ->needs(verb.get_option("--tokenizer"));
}

int run_generate(const GenerateArguments& arguments) {
  const GenerateReport report(arguments);
  std::optional<launch::Environment> environment;
  try {
    environment = launch::find_environment([](const char* name) { return std::getenv(name); });
  } catch (const Error& error) {
    if (!is_other_rank()) return refuse_text(arguments, config::diagnostic(ErrorCode::kMalformed, error));
    print_problem(error.what()); // may be wrong only for this rank; rank 0 prints the object of --json
    return kRefused;
  }
  if (environment && environment->world > 1) return generate_launched(arguments, *environment);
  std::optional<os::EndingSignals> ending; // until there is a run that can be stopped
  if (arguments.json)
    ending.emplace(result_descriptor(), [&report](int signal) { return report.ended_at_once(signal); });
  PreparedText prepared;
  if (const std::vector<config::Diagnostic> refused = prepare(arguments, prepared); !refused.empty())
    return report.refused(refused);
  std::optional<os::StopSignals> signals;
  try {
    signals.emplace();
    ending.reset();
    return run_text(arguments, prepared, *signals);
  } catch (const Error& error) { // no thread, or no rank was started
    return refuse_text(arguments, config::diagnostic(ErrorCode::kUnsupported, error));
  }
}

namespace {

void add_sampling_flags(CLI::App& verb, GenerateArguments& arguments) {
  executor::SamplingOptions& sampling = arguments.sampling;
  verb.add_option("--temperature", sampling.temperature,
                  "divides the logits before a token is sampled; 0: the most probable token is chosen [0]")
      ->type_name("T")
      ->check(number_in(0, kMaxTemperature));
  verb.add_option("--top-k", sampling.top_k, "samples from the K most probable tokens; 0: from all [0]")
      ->type_name("K")
      ->check(integer_in(0, kMaxCount));
  verb.add_option("--top-p", sampling.top_p,
                  "samples from the most probable tokens whose probabilities add up to P [1: from all]")
      ->type_name("P")
      ->check(number_in(0, 1));
  verb.add_option("--min-p", sampling.min_p,
                  "samples from tokens that are at least P times as probable as the most probable one [0: from all]")
      ->type_name("P")
      ->check(number_in(0, 1));
  verb.add_option("--repetition-penalty", sampling.repetition_penalty,
                  "divides positive logits of tokens that the text has, and multiplies negative ones [1: none]")
      ->type_name("R")
      ->check(number_in(kMinPenalty, kMaxPenalty));
  verb.add_option_function<std::uint64_t>(
          "--seed",
          [&arguments](std::uint64_t seed) {
            arguments.sampling.seed = seed;
            arguments.has_seed = true;
          },
          "seed of the sampling; equal commands give equal texts [0]")
      ->type_name("N")
      ->check(integer_in(0, kMaxSeed));
}

} // namespace

void add_generate(CLI::App& program, int& status) {
  CLI::App* const verb = program.add_subcommand("generate", "continues a text with a checkpoint's weights");
  const auto arguments = std::make_shared<GenerateArguments>();
  verb->add_option("CHECKPOINT", arguments->checkpoint,
                   text("{}; or a folder of Hugging Face's transformers", kCheckpointDoc))
      ->required();
  verb->add_option("INPUT", arguments->input, "-: the prompt is standard input");
  verb->add_option("--prompt", arguments->prompt, "the text to continue [without one: lines that you type]")
      ->type_name("TEXT");
  verb->add_option("--file", arguments->file, "file with the text to continue, without its last line break")
      ->type_name("FILE")
      ->check(not_empty());
  verb->add_option("--max-tokens", arguments->max_tokens,
                   "number of new tokens after which a text ends; 0: only at the model's last position [256]")
      ->type_name("N")
      ->check(integer_in(0, kMaxCount));
  repeated(verb->add_option("--stop", arguments->stops, "ends a text before this; may be given several times")
               ->type_name("TEXT")
               ->check(not_empty()));
  verb->add_option("--samples", arguments->samples, "number of texts that continue the prompt [1]")
      ->type_name("N")
      ->check(integer_in(1, kMaxSamples));
  add_sampling_flags(*verb, *arguments);
  add_tokenizer_flags(*verb, *arguments);
  add_overrides(*verb, arguments->overrides);
  verb->add_flag("--json", arguments->json, "prints the texts as one JSON object");
  verb->callback([arguments, &status] { status = run_generate(*arguments); });
}

} // namespace triax::app
