// SPDX-License-Identifier: Apache-2.0
// The prompts and texts of `triax generate` in the process that prints them.
//
// Threads: one. Ownership: borrows its arguments. Blocking: waits for lines that a user types; writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/prepared_text.hpp"
#include "generate/prompts.hpp"
#include "generate/text_output.hpp"
#include "train/generate_text.hpp"

namespace triax::app {

class TextConversation {
 public:
  TextConversation(const GenerateArguments& arguments, const PreparedText& prepared, os::StopSignals& signals);

  train::Conversation functions();
  const std::optional<train::Answer>& answer() const { return answer_; }

 private:
  std::optional<std::vector<std::int32_t>> next_prompt();
  std::optional<std::vector<std::int32_t>> typed_prompt();
  void end(std::size_t sample, const train::GeneratedText& of);

  const GenerateArguments& arguments_;
  const PreparedText& prepared_;
  TypedLines lines_;
  TextOutput output_;
  std::optional<train::Answer> answer_;
  std::vector<std::string> notes_; // printed when all samples have ended: before, stdout may be within a line
  bool is_asked_ = false;          // the prompt that was given
};

} // namespace triax::app
