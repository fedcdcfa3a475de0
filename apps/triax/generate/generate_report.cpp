// SPDX-License-Identifier: Apache-2.0
#include "generate/generate_report.hpp"

#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/errors_json.hpp"
#include "common/errors_out.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "os/signal_name.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'; // a prompt may be invalid UTF-8
}

Json head(const GenerateArguments& arguments, const char* outcome, int status) {
  return {{"file", arguments.checkpoint}, {"outcome", outcome}, {"exit_status", status}};
}

/// Null if nothing was measured.
Json rate(double count, double seconds) {
  return count > 0 && seconds > 0 ? Json(count / seconds) : Json(nullptr);
}

void add_answer(Json& out, const std::optional<train::Answer>& answer) {
  for (const char* key : {"prompt_tokens", "samples", "prompt_tokens_per_s", "tokens_per_s"}) out[key] = nullptr;
  if (!answer) return;
  out["prompt_tokens"] = answer->prompt;
  out["samples"] = Json::array();
  for (const train::GeneratedText& sample : answer->samples)
    out["samples"].push_back(
        {{"text", sample.text}, {"tokens", sample.tokens}, {"reason", train::name_of(sample.end)}});
  out["prompt_tokens_per_s"] = rate(static_cast<double>(answer->prompt.size()), answer->prompt_s);
  out["tokens_per_s"] = rate(static_cast<double>(answer->new_tokens()), answer->new_s);
}

Json stopped(const GenerateArguments& arguments, int signal) {
  Json out = head(arguments, "stopped", 128 + signal);
  out["signal"] = signal_name(signal);
  out["checkpoint"] = nullptr;
  if (!arguments.choices.empty()) {
    ChoiceScores::add_nothing_to(out);
    return out;
  }
  out["prompt"] = nullptr;
  add_answer(out, {});
  return out;
}

std::string part_text(std::int64_t tokens, const char* what, double seconds) {
  const std::string speed =
      seconds > 0 ? text(" ({} tokens/s)", report::decimals_text(static_cast<double>(tokens) / seconds, 1)) : "";
  return text("{} {} token{} in {} s{}", grouped(tokens), what, tokens == 1 ? "" : "s",
              report::decimals_text(seconds, 2), speed);
}

} // namespace

std::string speed_line(const train::Answer& answer) {
  return part_text(static_cast<std::int64_t>(answer.prompt.size()), "prompt", answer.prompt_s) + ", " +
         part_text(answer.new_tokens(), "new", answer.new_s);
}

int GenerateReport::refused(const std::vector<config::Diagnostic>& refusals) const {
  print_errors(refusals);
  if (!arguments_.json) return kRefused;
  Json out = head(arguments_, "refused", kRefused);
  add_errors(out, refusals);
  result_out() << text_of(out);
  return kRefused;
}

int GenerateReport::failed(int rank, const std::string& why, int status) const {
  if (!arguments_.json || has_printed_.test_and_set()) return status;
  Json out = head(arguments_, "failed", status);
  out["rank"] = rank < 0 ? Json(nullptr) : Json(rank);
  out["reason"] = why;
  result_out() << text_of(out) << std::flush;
  return status;
}

int GenerateReport::ended(const GenerateOutcome& outcome, int signal) const {
  const int status = signal != 0 ? 128 + signal : kDone;
  if (arguments_.json && !has_printed_.test_and_set()) {
    const bool scores = !arguments_.choices.empty();
    Json out = head(arguments_, signal != 0 ? "stopped" : scores ? "evaluated" : "generated", status);
    out["signal"] = signal == 0 ? Json(nullptr) : Json(signal_name(signal));
    out["checkpoint"] = outcome.checkpoint;
    if (!scores) {
      out["prompt"] = outcome.prompt;
      add_answer(out, outcome.answer);
    } else if (outcome.scores && signal == 0) {
      outcome.scores->add_to(out);
    } else {
      ChoiceScores::add_nothing_to(out);
    }
    result_out() << text_of(out);
  }
  if (!arguments_.json && outcome.scores && signal == 0) result_out() << outcome.scores->line() << '\n';
  if (signal != 0 && signal != SIGPIPE) // a reader that has closed the pipe wants no more
    std::cerr << text("stopped by {}", signal_name(signal)) << '\n';
  return status;
}

std::string GenerateReport::ended_at_once(int signal) const {
  return text_of(stopped(arguments_, signal));
}

void GenerateReport::end_at_once(int signal) const {
  if (has_printed_.test_and_set() || !arguments_.json) return;
  result_out() << ended_at_once(signal) << std::flush;
}

} // namespace triax::app
