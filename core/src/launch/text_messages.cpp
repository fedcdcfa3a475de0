// SPDX-License-Identifier: Apache-2.0
#include "launch/text_messages.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "triax/error.hpp"

namespace triax::launch {

namespace {

using Packed = nlohmann::json;

// Topics.
constexpr const char* kGenerating = "generating"; // before the first prompt
constexpr const char* kTextPart = "text";         // sample, position of the part in its text, part
constexpr const char* kTextEnd = "text_end";      // sample, its whole text, tokens and reason
constexpr const char* kAnswer = "answer";         // seconds for the prompt, and for the new tokens
constexpr const char* kScores = "scores";         // for each: its sequence, log-likelihood, whether it is greedy

constexpr std::size_t kMaxTextSamples = 1 << 20; // limits what a malformed message can allocate

/// CBOR, because a text may be invalid UTF-8.
std::string pack_message(const Packed& message) {
  std::string out;
  Packed::to_cbor(message, out);
  return out;
}

std::size_t sample_in(const Packed& message) {
  const auto sample = message.at(0).get<std::size_t>();
  if (sample >= kMaxTextSamples) throw Error(text("invalid number of a sample: {}", sample));
  return sample;
}

train::GeneratedText text_in(const Packed& message) {
  const int end = message.at(3).get<int>();
  if (end <= static_cast<int>(train::TextEnd::open) || end > static_cast<int>(train::TextEnd::signal))
    throw Error(text("invalid reason why a text ended: {}", end));
  return {message.at(1).get<std::string>(), message.at(2).get<std::vector<std::int32_t>>(),
          static_cast<train::TextEnd>(end)};
}

/// Only next_prompt() of `conversation` is used.
train::Conversation sent_conversation(const SendMessage& send, const train::Conversation& conversation) {
  const auto sizes = std::make_shared<std::vector<std::size_t>>(); // bytes of each sample that were sent
  return {conversation.next_prompt,
          [send, sizes](std::size_t sample, std::string_view part) {
            if (sizes->size() <= sample) sizes->resize(sample + 1);
            send(kTextPart, pack_message({sample, (*sizes)[sample], part}));
            (*sizes)[sample] += part.size();
          },
          [send](std::size_t sample, const train::GeneratedText& text) {
            send(kTextEnd, pack_message({sample, text.text, text.tokens, static_cast<int>(text.end)}));
          },
          [send, sizes](const train::Answer& answer) {
            send(kAnswer, pack_message({answer.prompt_s, answer.new_s}));
            sizes->clear();
          }};
}

} // namespace

void send_generating(const SendMessage& send) {
  send(kGenerating, "");
}

train::TextJob sent_job(const SendMessage& send, const train::TextJob& job) {
  train::TextJob out{job.options, sent_conversation(send, job.conversation), job.scores};
  if (!out.scores) return out;
  out.scores->scored = [send](const std::vector<train::SequenceScore>& scores) {
    Packed message = Packed::array();
    for (const train::SequenceScore& score : scores)
      message.push_back({score.sequence, score.log_likelihood, score.is_greedy});
    send(kScores, pack_message(message));
  };
  return out;
}

bool TextReceiver::take(const control::WorkerMessage& message) {
  try {
    return take_whole(message);
  } catch (const Packed::exception&) { // its text names the library
    throw Error(text("malformed message of topic \"{}\"", message.topic), text("message from rank {}", message.rank),
                "use the same build of Triax on all ranks");
  }
}

bool TextReceiver::take_whole(const control::WorkerMessage& message) {
  if (message.topic == kGenerating) {
    begin();
    return true;
  }
  if (message.topic == kScores && job_.scores) {
    take_scores(message);
    return true;
  }
  if (message.topic != kTextPart && message.topic != kTextEnd && message.topic != kAnswer) return false;
  const Packed sent = Packed::from_cbor(message.text);
  if (message.topic == kTextPart) {
    add(sample_in(sent), sent.at(1).get<std::size_t>(), sent.at(2).get<std::string>());
  } else if (message.topic == kTextEnd) {
    if (message.discarded > 0)
      throw Error(text("{} texts do not fit in the queue of messages", message.discarded), {},
                  "generate fewer samples in one command");
    end(sample_in(sent), text_in(sent));
  } else {
    answer_.prompt_s = sent.at(0).get<double>();
    answer_.new_s = sent.at(1).get<double>();
    conversation_.answered(answer_);
  }
  return true;
}

void TextReceiver::take_scores(const control::WorkerMessage& message) {
  if (message.discarded > 0)
    throw Error(text("{} messages with scores do not fit in the queue", message.discarded), {},
                "divide the file of choices");
  std::vector<train::SequenceScore> scores;
  for (const Packed& score : Packed::from_cbor(message.text))
    scores.push_back({score.at(0).get<std::size_t>(), score.at(1).get<double>(), score.at(2).get<bool>()});
  job_.scores->scored(scores);
}

void TextReceiver::begin() {
  has_begun_ = true;
  if (job_.scores) return; // there is no prompt
  if (std::optional<std::vector<std::int32_t>> prompt = conversation_.next_prompt())
    answer_.prompt = std::move(*prompt);
}

/// After a part that was discarded, the rest of the text comes with its end.
void TextReceiver::add(std::size_t sample, std::size_t at, const std::string& part) {
  if (answer_.samples.size() <= sample) answer_.samples.resize(sample + 1);
  std::string& known = answer_.samples[sample].text;
  if (at != known.size()) return;
  known += part;
  conversation_.text(sample, part);
}

void TextReceiver::end(std::size_t sample, const train::GeneratedText& text) {
  if (answer_.samples.size() <= sample) answer_.samples.resize(sample + 1);
  const std::size_t known = answer_.samples[sample].text.size();
  if (known < text.text.size()) conversation_.text(sample, std::string_view(text.text).substr(known));
  answer_.samples[sample] = text;
  conversation_.ended(sample, text);
}

} // namespace triax::launch
