// SPDX-License-Identifier: Apache-2.0
// Messages of a run that generates: rank 0 sends its texts and scores to the process of the job server, which passes
// them on.
//
// Threads: sender: rank 0's main thread; TextReceiver: one. Ownership: TextReceiver borrows the job.
// Blocking: TextReceiver as the conversation does. Errors: Error for a message that cannot be read.
//
// If the output is blocked, the server discards parts of a text. The end of a text has the whole of it, so that no part
// is missing in the output.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "control/server.hpp"
#include "train/generate_text.hpp"

namespace triax::launch {

/// Sends a message to the process of the job server: Job::send().
using SendMessage = std::function<void(std::string_view topic, std::string_view text)>;

/// The job of rank 0 instead of `job`, of whose functions only next_prompt() is used.
train::TextJob sent_job(const SendMessage& send, const train::TextJob& job);
/// Rank 0 is ready for its first prompt.
void send_generating(const SendMessage& send);

class TextReceiver {
 public:
  /// `job`: has the prompt that rank 0 has.
  explicit TextReceiver(const train::TextJob& job) : job_(job), conversation_(job.conversation) {}

  /// Returns false if the message is not about texts.
  bool take(const control::WorkerMessage& message);
  /// From now on, a signal ends the texts after a token.
  bool has_begun() const { return has_begun_; }

 private:
  bool take_whole(const control::WorkerMessage& message);
  void take_scores(const control::WorkerMessage& message);
  void begin();
  void add(std::size_t sample, std::size_t at, const std::string& part);
  void end(std::size_t sample, const train::GeneratedText& text);

  const train::TextJob& job_;
  const train::Conversation& conversation_;
  train::Answer answer_;
  bool has_begun_ = false;
};

} // namespace triax::launch
