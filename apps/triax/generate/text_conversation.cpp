// SPDX-License-Identifier: Apache-2.0
#include "generate/text_conversation.hpp"

#include <unistd.h>

#include <iostream>

#include "common/errors_out.hpp"
#include "common/result_out.hpp"
#include "data/text_tokenizer.hpp"
#include "generate/generate_report.hpp"

namespace triax::app {

TextConversation::TextConversation(const GenerateArguments& arguments, const PreparedText& prepared,
                                   os::StopSignals& signals)
    : arguments_(arguments),
      prepared_(prepared),
      lines_(signals),
      output_(result_out(), isatty(STDOUT_FILENO) == 1, static_cast<std::size_t>(arguments.samples), signals) {}

train::Conversation TextConversation::functions() {
  return {[this] { return next_prompt(); },
          [this](std::size_t sample, std::string_view part) {
            if (!arguments_.json) output_.add(sample, part);
          },
          [this](std::size_t sample, const train::GeneratedText& of) { end(sample, of); },
          [this](const train::Answer& answer) {
            answer_ = answer;
            for (const std::string& note : notes_) print_problem(note);
            notes_.clear();
            std::cerr << speed_line(answer) << '\n';
          }};
}

std::optional<std::vector<std::int32_t>> TextConversation::next_prompt() {
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

std::optional<std::vector<std::int32_t>> TextConversation::typed_prompt() {
  while (const std::optional<std::string> line = lines_.next()) {
    try {
      std::vector<std::int32_t> out = data::encode_prompt(prepared_.tokenizer, *line);
      data::check_prompt_length(out, prepared_.checked.preflight.positions);
      return out;
    } catch (const Error& error) { // the user can type another
      print_problem(error.what());
    }
  }
  return std::nullopt;
}

void TextConversation::end(std::size_t sample, const train::GeneratedText& of) {
  if (!arguments_.json) output_.end(sample);
  if (of.end == train::TextEnd::context)
    notes_.push_back(text("sample {} ends: the context is full, the model has {} positions", sample + 1,
                          prepared_.checked.preflight.positions));
}

} // namespace triax::app
