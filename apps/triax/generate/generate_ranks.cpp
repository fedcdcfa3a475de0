// SPDX-License-Identifier: Apache-2.0
#include "generate/generate_ranks.hpp"

#include <memory>
#include <vector>

#include "common/result_out.hpp"
#include "generate/generate_report.hpp"
#include "generate/text_conversation.hpp"
#include "launch/run_threads.hpp"
#include "launch/spawn_workers.hpp"
#include "report/rank_output.hpp"
#include "train/train_files.hpp"

namespace triax::app {

namespace {

constexpr std::size_t kMaxArgumentBytes = 100'000; // Linux: 128 KiB (MAX_ARG_STRLEN), with the flag

void add_shared_arguments(const GenerateArguments& arguments, std::vector<std::string>& out) {
  for (const auto& [flag, value] :
       {std::pair{"--tokenizer", arguments.tokenizer.name}, std::pair{"--vocab", arguments.tokenizer.vocab.string()},
        std::pair{"--merges", arguments.tokenizer.merges.string()}})
    if (!value.empty()) out.push_back(text("{}={}", flag, value));
  for (const config::Override& override : arguments.overrides)
    out.insert(out.end(), {"--set", override.key + "=" + override.value});
}

/// The flags that give a rank process the same text.
std::vector<std::string> rank_arguments_of(const GenerateArguments& arguments, const PreparedText& prepared) {
  const bool scores = !arguments.choices.empty();
  std::vector<std::string> out = {scores ? "evaluate" : "generate"};
  const auto add = [&out](const char* flag, const std::string& value) { out.push_back(text("{}={}", flag, value)); };
  const executor::SamplingOptions& sampling = arguments.sampling;
  if (scores) {
    add("--choices", arguments.choices);
    add("--sequences", text("{}", arguments.samples));
    add_shared_arguments(arguments, out);
    out.insert(out.end(), {"--", prepared.checkpoint.string()});
    return out;
  }
  add("--max-tokens", text("{}", arguments.max_tokens));
  for (const std::string& stop : arguments.stops) add("--stop", stop);
  add("--samples", text("{}", arguments.samples));
  add("--temperature", text("{}", sampling.temperature));
  add("--top-k", text("{}", sampling.top_k));
  add("--top-p", text("{}", sampling.top_p));
  add("--min-p", text("{}", sampling.min_p));
  add("--repetition-penalty", text("{}", sampling.repetition_penalty));
  if (arguments.has_seed) add("--seed", text("{}", sampling.seed));
  add_shared_arguments(arguments, out);
  out.insert(out.end(), {"--prompt", *prepared.prompt, "--", prepared.checkpoint.string()});
  return out;
}

/// Shared by both kinds of ranks.
struct LocalText {
  const GenerateArguments& arguments;
  const PreparedText& prepared;
  const std::vector<std::unique_ptr<Log>>& logs;
  const os::StopSignals& signals;
  const train::TextJob& job;
  const GenerateReport& report;

  Log& log() const { return *logs.front(); }
  launch::OnFailure failed() const {
    return [this](int rank, const std::string& why, int status) { report.failed(rank, why, status); };
  }
};

std::optional<train::LoopResult> generate_threads(const LocalText& here) {
  report::StartProgress start = report::StartProgress::for_stderr();
  return launch::run_threads({here.prepared.run(),
                              here.prepared.checked.placement,
                              here.logs,
                              here.signals,
                              {.note = [&here](const std::string& line) { here.log().info("{}", line); }},
                              {},
                              nullptr,
                              here.failed(),
                              nullptr,
                              [&start](const report::StartState& state) { start.update(state); },
                              [&here](const train::LoopResult& stopped) {
                                const int status = here.report.ended(
                                    {shown_weights(here.prepared), here.prepared.prompt.value_or("")}, stopped.signal);
                                result_out().flush();
                                return status;
                              },
                              &here.job});
}

std::optional<train::LoopResult> generate_processes(const LocalText& here) {
  report::RankOutput output = report::RankOutput::for_stderr();
  report::StartProgress start = report::StartProgress::for_stderr();
  return launch::spawn_workers(
      {here.prepared.run(), rank_arguments_of(here.arguments, here.prepared), nullptr, here.log(), here.signals,
       nullptr, [&output](int rank, const std::string& written) { output.write(rank, written); }, here.failed(),
       [&start](const report::StartState& state) { start.update(state); }, &here.job});
}

std::vector<std::unique_ptr<Log>> text_logs(const PreparedText& prepared) {
  if (prepared.checked.placement.ranks_are_threads) return rank_logs(prepared.run(), prepared.checked.placement.ranks);
  std::vector<std::unique_ptr<Log>> out;
  out.push_back(launcher_log(prepared.run()));
  return out;
}

} // namespace

std::optional<config::Diagnostic> refused_for_processes(const GenerateArguments& arguments,
                                                        const PreparedText& prepared) {
  if (!arguments.choices.empty()) return std::nullopt;
  if (!prepared.prompt)
    return config::diagnostic(ErrorCode::kUnsupported,
                              "the ranks are processes, which cannot read the lines that you type",
                              "add --prompt TEXT or --file FILE, or use comm-local, whose ranks are threads of this "
                              "process");
  if (prepared.prompt->size() > kMaxArgumentBytes || prepared.prompt->find('\0') != std::string::npos)
    return config::diagnostic(
        ErrorCode::kUnsupported,
        text("the prompt has {}, but rank processes get it as an argument",
             prepared.prompt->size() > kMaxArgumentBytes ? text("{} bytes", prepared.prompt->size()) : "a NUL byte"),
        text("use a prompt of at most {} bytes without NUL, or comm-local, whose ranks are threads of this process",
             kMaxArgumentBytes));
  return std::nullopt;
}

std::string shown_weights(const PreparedText& prepared) {
  return (prepared.imported ? prepared.imported->model() : prepared.checkpoint).string();
}

train::ScoreJob score_job(const PreparedText& prepared, ChoiceScores& scores) {
  return {prepared.scores.sequences, [&scores](const std::vector<train::SequenceScore>& of) { scores.add(of); }};
}

const char* end_of(const GenerateArguments& arguments) {
  return arguments.choices.empty() ? os::kEndOfToken : os::kEndOfBatch;
}

int run_text(const GenerateArguments& arguments, const PreparedText& prepared, os::StopSignals& signals) {
  const GenerateReport report(arguments);
  const std::vector<std::unique_ptr<Log>> logs = text_logs(prepared);
  const os::StopSignalLog signals_to(signals, *logs.front(), end_of(arguments));
  logs.front()->info("{}", start_line(prepared));
  const os::BeforeEnd before_end(signals, [&](int signal) { report.end_at_once(signal); });
  TextConversation conversation(arguments, prepared, signals);
  train::TextJob job{text_options(arguments, prepared), conversation.functions()};
  std::optional<ChoiceScores> scores;
  if (!arguments.choices.empty()) job.scores = score_job(prepared, scores.emplace(prepared.examples));
  const LocalText here{arguments, prepared, logs, signals, job, report};
  const std::optional<train::LoopResult> result =
      prepared.checked.placement.ranks_are_threads ? generate_threads(here) : generate_processes(here);
  const GenerateOutcome outcome{shown_weights(prepared), prepared.prompt.value_or(""), conversation.answer(),
                                scores ? &*scores : nullptr};
  return result ? report.ended(outcome, result->signal) : report.failed(-1, {});
}

} // namespace triax::app
