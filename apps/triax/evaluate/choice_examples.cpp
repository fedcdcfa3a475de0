// SPDX-License-Identifier: Apache-2.0
#include "evaluate/choice_examples.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/printable.hpp"
#include "os/text_input.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;
using ChoiceJson = nlohmann::json;

constexpr std::size_t kMaxShownLines = 20; // then the file is not of this form
constexpr const char* kForm = R"(write {"context": "...", "endings": ["...", "..."], "label": 0} in each line)";

/// `line` 0: the whole file.
config::Diagnostic at_line(const fs::path& file, std::size_t line, const std::string& what, const std::string& hint) {
  return config::located_diagnostic({.file = file.string(), .line = static_cast<int>(line)},
                                    {ErrorCode::kInvalidValue, {"--choices"}, what, hint});
}

/// Removes white space of ASCII. Python's rstrip(), which lm-evaluation-harness uses, also removes that of Unicode.
std::string_view without_trailing_whitespace(std::string_view context) {
  const std::size_t last = context.find_last_not_of(" \t\n\v\f\r");
  return last == context.npos ? std::string_view() : context.substr(0, last + 1);
}

/// Why a context has no token that is not part of an ending.
const char* no_tokens(std::string_view context) {
  if (context.empty()) return "is empty";
  return without_trailing_whitespace(context).empty() ? "has only white space, which belongs to the endings"
                                                      : "has no token";
}

/// The parsed line; `repeated` gets a key of its object that is there twice: the parser keeps the last value only.
ChoiceJson parse_line(std::string_view line, std::optional<std::string>& repeated) {
  std::set<std::string> keys;
  const auto check_key = [&](int depth, ChoiceJson::parse_event_t event, const ChoiceJson& parsed) {
    if (depth == 1 && event == ChoiceJson::parse_event_t::key && !keys.insert(parsed.get<std::string>()).second)
      repeated = parsed.get<std::string>();
    return true;
  };
  return ChoiceJson::parse(line, check_key, false);
}

std::string not_of(const std::string& key, const char* type, const ChoiceJson& value) {
  const std::string json = value.dump(-1, ' ', false, ChoiceJson::error_handler_t::replace);
  return text("{} must be {}, got {}", key, type, shortened(printable(json)));
}

class ChoiceReader {
 public:
  ChoiceReader(const fs::path& file, std::vector<config::Diagnostic>& refusals) : file_(file), refusals_(refusals) {}

  std::vector<ChoiceExample> read() {
    const std::string content = os::read_text(file_, {.shown = file_.string(),
                                                      .format = "file of choices",
                                                      .max_bytes = std::size_t{1} << 30,
                                                      .takes_devices = false});
    std::string_view rest = content;
    for (line_ = 1; !rest.empty() && refusals_.size() < kMaxShownLines; ++line_) {
      const std::size_t end = rest.find('\n');
      read_line(rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    if (examples_.empty() && refusals_.empty()) refusals_.push_back(at_line(file_, 0, "has no line", kForm));
    return std::move(examples_);
  }

 private:
  void refuse(const std::string& what, const char* hint = kForm) {
    refusals_.push_back(at_line(file_, line_, what, hint));
  }

  void read_line(std::string_view line) {
    std::optional<std::string> repeated;
    const ChoiceJson json = parse_line(line, repeated);
    if (json.is_discarded()) return refuse("is not JSON");
    if (!json.is_object()) return refuse("is not a JSON object");
    if (repeated) return refuse(text("has the key \"{}\" twice", *repeated));
    ChoiceExample out;
    out.line = line_;
    if (!read_context(json, out) || !read_endings(json, out) || !read_label(json, out)) return;
    if (!examples_.empty() && (examples_.front().endings.size() == 1) != (out.endings.size() == 1))
      return refuse(text("has {} ending{}, but line {} has {}", out.endings.size(), out.endings.size() == 1 ? "" : "s",
                         examples_.front().line, examples_.front().endings.size()),
                    "evaluate examples with one ending in a separate file");
    examples_.push_back(std::move(out));
  }

  bool read_context(const ChoiceJson& json, ChoiceExample& out) {
    if (!json.contains("context")) return refuse("has no key \"context\""), false;
    if (!json["context"].is_string()) return refuse(not_of("context", "a string", json["context"])), false;
    out.context = json["context"].get<std::string>();
    return true;
  }

  bool read_endings(const ChoiceJson& json, ChoiceExample& out) {
    if (!json.contains("endings")) return refuse("has no key \"endings\""), false;
    const ChoiceJson& endings = json["endings"];
    if (!endings.is_array()) return refuse(not_of("endings", "a list", endings)), false;
    if (endings.empty()) return refuse("endings is empty"), false;
    for (std::size_t i = 0; i < endings.size(); ++i) {
      if (!endings[i].is_string()) return refuse(not_of(text("endings[{}]", i), "a string", endings[i])), false;
      out.endings.push_back(endings[i].get<std::string>());
      if (out.endings.back().empty()) return refuse(text("endings[{}] is empty", i)), false;
    }
    return true;
  }

  /// One ending needs no label.
  bool read_label(const ChoiceJson& json, ChoiceExample& out) {
    if (!json.contains("label")) {
      if (out.endings.size() > 1) refuse("has no key \"label\"");
      return out.endings.size() == 1;
    }
    const ChoiceJson& label = json["label"];
    if (!label.is_number_integer()) return refuse(not_of("label", "an integer", label)), false;
    const auto most = static_cast<std::int64_t>(out.endings.size()) - 1;
    if (label.is_number_unsigned() ? label.get<std::uint64_t>() > static_cast<std::uint64_t>(most) : true) {
      refuse(text("label must be in [0, {}], got {}", most, label.dump()), "it is the number of the right ending");
      return false;
    }
    out.label = label.get<std::size_t>();
    return true;
  }

  const fs::path& file_;
  std::vector<config::Diagnostic>& refusals_;
  std::size_t line_ = 0;
  std::vector<ChoiceExample> examples_;
};

} // namespace

std::vector<ChoiceExample> read_choices(const fs::path& file, std::vector<config::Diagnostic>& refusals) {
  return ChoiceReader(file, refusals).read();
}

std::vector<train::ScoredSequence> sequences_of(const std::vector<ChoiceExample>& examples, const ChoiceTokens& to,
                                                std::vector<config::Diagnostic>& refusals) {
  std::vector<train::ScoredSequence> out;
  for (const ChoiceExample& example : examples) {
    if (refusals.size() >= kMaxShownLines) break;
    const auto refuse = [&](const std::string& what, const std::string& hint) {
      refusals.push_back(at_line(to.file, example.line, what, hint));
    };
    try {
      const std::string_view stripped = without_trailing_whitespace(example.context);
      const std::vector<std::int32_t> prefix = stripped.empty() ? to.separator : std::vector<std::int32_t>();
      const std::size_t context = prefix.size() + to.tokenizer.encode(stripped).size();
      if (context == 0) {
        refuse(text("context {}; this needs a tokenizer with an end-of-document token, and this one has none",
                    no_tokens(example.context)),
               "write a context");
        continue;
      }
      for (std::size_t i = 0; i < example.endings.size(); ++i) {
        train::ScoredSequence sequence{prefix, context};
        std::ranges::copy(to.tokenizer.encode(example.context + example.endings[i]),
                          std::back_inserter(sequence.tokens));
        if (sequence.tokens.size() <= context)
          refuse(text("endings[{}] adds no token to the context", i), "write an ending that adds text to the context");
        out.push_back(std::move(sequence));
      }
    } catch (const Error& error) {
      refuse("cannot be encoded: " + error.message(), error.hint());
    }
  }
  return out;
}

std::vector<config::Diagnostic> too_long(const std::vector<ChoiceExample>& examples, const fs::path& file,
                                         const std::vector<train::ScoredSequence>& sequences, std::int64_t positions) {
  std::vector<config::Diagnostic> out;
  std::size_t number = 0;
  for (const ChoiceExample& example : examples)
    for (std::size_t i = 0; i < example.endings.size(); ++i, ++number) {
      const auto tokens = static_cast<std::int64_t>(sequences[number].tokens.size());
      if (tokens - 1 <= positions || out.size() >= kMaxShownLines) continue;
      out.push_back(
          at_line(file, example.line,
                  text("context and endings[{}] have {} tokens, but the model has {} positions", i, tokens, positions),
                  text("shorten the context: {} tokens fit", positions + 1)));
    }
  return out;
}

} // namespace triax::app
