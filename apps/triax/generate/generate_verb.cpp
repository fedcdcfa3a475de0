// SPDX-License-Identifier: Apache-2.0
// triax generate: text from a checkpoint's weights. The ranks are threads of this process.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "generate/generate_report.hpp"
#include "generate/prompts.hpp"
#include "generate/text_output.hpp"
#include "launch/environment.hpp"
#include "launch/run_threads.hpp"
#include "os/cpu_quota.hpp"
#include "os/ending_signals.hpp"
#include "report/progress.hpp"
#include "report/units.hpp"
#include "train/find_checkpoint.hpp"
#include "train/train_files.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

constexpr int kMaxSamples = 1024;
constexpr double kMaxTemperature = 1000, kMaxPenalty = 1000;
constexpr double kMinPenalty = 1e-3;
constexpr long long kMaxCount = std::numeric_limits<std::int32_t>::max();
constexpr long long kMaxSeed = std::numeric_limits<std::int64_t>::max();

/// All that a run needs, once nothing is refused.
struct PreparedRun {
  std::filesystem::path checkpoint;
  checkpoint::Manifest manifest;
  CheckpointTokenizer tokenizer;
  config::LoadResult loaded;
  train::CheckedRun checked;
  std::optional<std::string> prompt;
  std::vector<std::int32_t> tokens; // of the prompt

  const config::RunConfig& run() const { return *loaded.run; }
};

Refusals conflicting_flags(const GenerateArguments& arguments) {
  Refusals out;
  const int prompts = (arguments.prompt ? 1 : 0) + (arguments.file.empty() ? 0 : 1) + (arguments.input.empty() ? 0 : 1);
  if (prompts > 1)
    out.add(make_refusal(ErrorCode::kConflict, {}, "--prompt, --file and - each give the prompt")
                .with_hint("use one of them"));
  if (!arguments.input.empty() && arguments.input != "-")
    out.add(make_refusal(ErrorCode::kInvalidValue, {}, "unexpected argument: {}", arguments.input)
                .with_hint("write the prompt as --prompt TEXT, or - for standard input"));
  const executor::SamplingOptions& sampling = arguments.sampling;
  if (sampling.temperature > 0) return out;
  const auto no_effect = [&out](const char* flag) {
    out.add(make_refusal(ErrorCode::kConflict, {},
                         "{} has no effect with --temperature 0: the most probable token is "
                         "chosen",
                         flag)
                .with_hint("add --temperature 1, or leave {} out", flag));
  };
  if (sampling.top_k > 0) no_effect("--top-k");
  if (sampling.top_p < 1) no_effect("--top-p");
  if (sampling.min_p > 0) no_effect("--min-p");
  if (arguments.has_seed) no_effect("--seed");
  if (arguments.samples > 1)
    out.add(make_refusal(ErrorCode::kConflict, {}, "--samples {} with --temperature 0: all samples would be equal",
                         arguments.samples)
                .with_hint("add --temperature 1, or leave --samples out"));
  return out;
}

/// The ranks are threads of this process, which is one of several.
std::optional<config::Diagnostic> refused_launcher() {
  const std::optional<launch::Environment> environment =
      launch::find_environment([](const char* name) { return std::getenv(name); });
  if (!environment || environment->world == 1) return std::nullopt;
  return config::diagnostic(ErrorCode::kUnsupported,
                            text("{} has started {} processes, and triax generate has its ranks in one",
                                 launch::name_of(environment->launcher), environment->world),
                            "start one process, with --set parallel.tensor and parallel.pipeline");
}

std::vector<config::Diagnostic> check_tokenizer(const PreparedRun& prepared) {
  const std::int64_t tokens = prepared.tokenizer.tokenizer->vocab(), vocab = prepared.run().vocab;
  if (tokens <= vocab) return {};
  return {config::diagnostic(
      ErrorCode::kIncompatible,
      text("{}: the tokenizer has {} tokens, and the model has {}", prepared.tokenizer.from, tokens, vocab),
      "name the tokenizer of the training data with --tokenizer")};
}

/// The cache has only the positions that the texts can use.
void set_sizes(const GenerateArguments& arguments, PreparedRun& prepared) {
  config::GenerateSizes& sizes = *prepared.loaded.run->generate;
  sizes.samples = arguments.samples;
  if (prepared.prompt && arguments.max_tokens > 0)
    sizes.positions = static_cast<std::int64_t>(prepared.tokens.size()) + arguments.max_tokens;
}

std::vector<config::Diagnostic> check_run(PreparedRun& prepared) {
  const config::RunConfig& run = prepared.run();
  const std::int64_t ranks = std::int64_t{run.parallel.pipeline} * run.parallel.tensor;
  const train::Placement placement{static_cast<int>(std::min<std::int64_t>(ranks, std::numeric_limits<int>::max())),
                                   os::available_cores(), true};
  const auto devices = [](const train::Placement& on) { return train::CheckedDevices{0, on.ranks}; };
  prepared.checked = ask(run, {placement, devices});
  return refusals(prepared.loaded, prepared.checked.preflight);
}

/// Everything before the ranks start. Errors are in the result; `prepared` is complete if there are none.
std::vector<config::Diagnostic> prepare(const GenerateArguments& arguments, PreparedRun& prepared) {
  if (const Refusals conflicts = conflicting_flags(arguments); !conflicts.empty()) return diagnostics_of(conflicts);
  try {
    if (const auto refused = refused_launcher()) return {*refused};
    prepared.checkpoint = std::filesystem::absolute(train::find_checkpoint(arguments.checkpoint));
    prepared.manifest = checkpoint::read_manifest(prepared.checkpoint / checkpoint::kManifestFile);
    prepared.loaded = load_generating_run(prepared.checkpoint, prepared.manifest, arguments.overrides);
    if (!prepared.loaded.run) return prepared.loaded.refusals;
    prepared.tokenizer = tokenizer_of(prepared.checkpoint, prepared.manifest, arguments.tokenizer);
    if (std::vector<config::Diagnostic> refused = check_tokenizer(prepared); !refused.empty()) return refused;
    prepared.prompt = given_prompt(arguments);
    if (!prepared.prompt && arguments.json)
      throw Error("--json prints the texts of one prompt, and there is none", {},
                  "add --prompt TEXT, --file FILE, or - for standard input");
    if (prepared.prompt) prepared.tokens = encode_prompt(prepared.tokenizer, *prepared.prompt);
    set_sizes(arguments, prepared);
    if (std::vector<config::Diagnostic> refused = check_run(prepared); !refused.empty()) return refused;
    check_length(prepared.tokens, prepared.checked.preflight.positions);
    return {};
  } catch (const Error& error) {
    return {config::diagnostic(ErrorCode::kInvalidValue, error)};
  }
}

/// The prompts and texts of rank 0.
class TextConversation {
 public:
  TextConversation(const GenerateArguments& arguments, const PreparedRun& prepared, os::StopSignals& signals)
      : arguments_(arguments),
        prepared_(prepared),
        lines_(signals),
        output_(result_out(), isatty(STDOUT_FILENO) == 1, static_cast<std::size_t>(arguments.samples), signals) {}

  train::Conversation functions() {
    return {[this] { return next_prompt(); },
            [this](std::size_t sample, std::string_view part) {
              if (!arguments_.json) output_.add(sample, part);
            },
            [this](std::size_t sample, const train::GeneratedText& of) { end(sample, of); },
            [this](const train::Answer& answer) {
              answer_ = answer;
              std::cerr << speed_line(answer) << '\n';
            }};
  }
  const std::optional<train::Answer>& answer() const { return answer_; }

 private:
  std::optional<std::vector<std::int32_t>> next_prompt() {
    std::optional<std::vector<std::int32_t>> out;
    if (prepared_.prompt) {
      if (!is_asked_) out = prepared_.tokens;
      is_asked_ = true;
    } else {
      out = typed_prompt();
    }
    if (out && !arguments_.json) output_.begin();
    return out;
  }

  std::optional<std::vector<std::int32_t>> typed_prompt() {
    while (const std::optional<std::string> line = lines_.next()) {
      try {
        std::vector<std::int32_t> out = encode_prompt(prepared_.tokenizer, *line);
        check_length(out, prepared_.checked.preflight.positions);
        return out;
      } catch (const Error& error) { // the user can type another
        print_problem(error.what());
      }
    }
    return std::nullopt;
  }

  void end(std::size_t sample, const train::GeneratedText& of) {
    if (!arguments_.json) output_.end(sample);
    if (of.end == train::TextEnd::context)
      print_problem(text("sample {} ends: the context is full, the model has {} positions", sample + 1,
                         prepared_.checked.preflight.positions));
  }

  const GenerateArguments& arguments_;
  const PreparedRun& prepared_;
  TypedLines lines_;
  TextOutput output_;
  std::optional<train::Answer> answer_;
  bool is_asked_ = false; // the prompt that was given
};

std::string start_line(const PreparedRun& prepared) {
  const config::RunConfig& run = prepared.run();
  const train::Preflight& checked = prepared.checked.preflight;
  return text("{}; {} parameters, pipeline {} x tensor {}; {}, {}; {}", checked.resume,
              report::count_text(static_cast<double>(checked.parameters)), run.parallel.pipeline, run.parallel.tensor,
              run.model.name, run.kernels.name,
              train::to_text(prepared.checked.placement, checked.device, checked.threads));
}

int run_prepared(const GenerateArguments& arguments, const PreparedRun& prepared, os::StopSignals& signals) {
  const config::RunConfig& run = prepared.run();
  const GenerateReport report(arguments);
  const std::vector<std::unique_ptr<Log>> logs = rank_logs(run, prepared.checked.placement.ranks);
  const os::StopSignalLog signals_to(signals, *logs.front());
  logs.front()->info("{}", start_line(prepared));
  const os::BeforeEnd before_end(signals, [&](int signal) { report.end_at_once(signal); });
  TextConversation conversation(arguments, prepared, signals);
  const train::TextJob job{{.sampling = arguments.sampling,
                            .max_tokens = arguments.max_tokens,
                            .stops = arguments.stops,
                            .ends = prepared.tokenizer.ends,
                            .tokenizer = prepared.tokenizer.tokenizer.get()},
                           conversation.functions()};
  report::StartProgress start = report::StartProgress::for_stderr();
  const auto outcome = [&] {
    return GenerateOutcome{prepared.checkpoint.string(), prepared.prompt.value_or(""), conversation.answer()};
  };
  const std::optional<train::LoopResult> result = launch::run_threads(
      {run,
       prepared.checked.placement,
       logs,
       signals,
       {.note = [&](const std::string& line) { logs.front()->info("{}", line); }},
       {},
       nullptr,
       [&](int rank, const std::string& why, int status) { report.failed(rank, why, status); },
       nullptr,
       [&](const report::StartState& state) { start.update(state); },
       [&](const train::LoopResult& stopped) {
         const int status = report.ended({prepared.checkpoint.string(), prepared.prompt.value_or("")}, stopped.signal);
         result_out().flush();
         return status;
       },
       &job});
  return result ? report.ended(outcome(), result->signal) : report.failed(-1, {});
}

int generate(const GenerateArguments& arguments) {
  const GenerateReport report(arguments);
  std::optional<os::EndingSignals> ending; // until there is a run that can be stopped
  if (arguments.json)
    ending.emplace(result_descriptor(), [&report](int signal) { return report.ended_at_once(signal); });
  PreparedRun prepared;
  if (const std::vector<config::Diagnostic> refused = prepare(arguments, prepared); !refused.empty())
    return report.refused(refused);
  std::optional<os::StopSignals> signals;
  try {
    signals.emplace();
    ending.reset();
    return run_prepared(arguments, prepared, *signals);
  } catch (const Error& error) { // no thread
    return report.refused({config::diagnostic(ErrorCode::kUnsupported, error)});
  }
}

void add_sampling_flags(CLI::App& verb, GenerateArguments& arguments) {
  executor::SamplingOptions& sampling = arguments.sampling;
  verb.add_option("--temperature", sampling.temperature,
                  "divides the logits before a token is drawn; 0: the most probable token is chosen [0]")
      ->type_name("T")
      ->check(number_in(0, kMaxTemperature));
  verb.add_option("--top-k", sampling.top_k, "draws from the K most probable tokens; 0: from all [0]")
      ->type_name("K")
      ->check(integer_in(0, kMaxCount));
  verb.add_option("--top-p", sampling.top_p,
                  "draws from the most probable tokens whose probabilities add up to P [1: from all]")
      ->type_name("P")
      ->check(number_in(0, 1));
  verb.add_option("--min-p", sampling.min_p,
                  "draws from tokens that are at least P times as probable as the most probable one [0: from all]")
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
          "seed of the draws; equal commands give equal texts [0]")
      ->type_name("N")
      ->check(integer_in(0, kMaxSeed));
}

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

} // namespace

void add_generate(CLI::App& program, int& status) {
  CLI::App* const verb = program.add_subcommand("generate", "continues a text with a checkpoint's weights");
  const auto arguments = std::make_shared<GenerateArguments>();
  verb->add_option("CHECKPOINT", arguments->checkpoint, kCheckpointDoc)->required();
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
  verb->add_option("--stop", arguments->stops, "ends a text before this; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->check(not_empty());
  verb->add_option("--samples", arguments->samples, "number of texts that continue the prompt [1]")
      ->type_name("N")
      ->check(integer_in(1, kMaxSamples));
  add_sampling_flags(*verb, *arguments);
  add_tokenizer_flags(*verb, *arguments);
  add_overrides(*verb, arguments->overrides);
  verb->add_flag("--json", arguments->json, "prints the texts as one JSON object");
  verb->callback([arguments, &status] { status = generate(*arguments); });
}

} // namespace triax::app
