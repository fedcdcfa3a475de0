// SPDX-License-Identifier: Apache-2.0
// Adds positions to a message that names keys, so that modules and plugins can report errors without knowing files.
#include <algorithm>
#include <cctype>

#include "config/values.hpp"

namespace triax::config {

namespace {

struct Mention {
  std::size_t begin = 0, end = 0; // of the key in the text
  const ResolvedValue* value = nullptr;
};

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// Finds `word` where it is not part of a longer key. A full stop may follow.
std::size_t find_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || (!is_word(text[at - 1]) && text[at - 1] != '.' && text[at - 1] != '-');
    const char next = end < text.size() ? text[end] : ' ';
    const bool longer =
        is_word(next) || next == '-' || (next == '.' && end + 1 < text.size() && is_word(text[end + 1]));
    if (begins && !longer) return at;
  }
  return std::string::npos;
}

bool in_a_file(const ResolvedValue& value) {
  return value.origin.find(':') != std::string::npos;
}

/// The first mention of every key, in the order of the text.
std::vector<Mention> mentions(const std::string& text, const std::vector<ResolvedValue>& values) {
  std::vector<Mention> out;
  for (const ResolvedValue& value : values) {
    const std::size_t at = find_word(text, value.key);
    if (at != std::string::npos) out.push_back({at, at + value.key.size(), &value});
  }
  std::sort(out.begin(), out.end(), [](const Mention& a, const Mention& b) { return a.begin < b.begin; });
  return out;
}

/// The plugin that a message without keys names: "sched-gpipe refuses ...".
const ResolvedValue* named_plugin(const std::string& text, const std::vector<ResolvedValue>& values) {
  for (const ResolvedValue& value : values) {
    const bool plugin = value.key.ends_with(".plugin") && value.value.size() > 2;
    if (plugin && find_word(text, value.value.substr(1, value.value.size() - 2)) != std::string::npos) return &value;
  }
  return nullptr;
}

/// The end of "model.heads = 5", so that the position follows the value.
std::size_t behind_value(const std::string& text, const Mention& mention) {
  const std::string rest = text.substr(mention.end);
  for (const std::string& between : {std::string(" = "), std::string(" ")}) {
    if (rest.starts_with(between + mention.value->value))
      return mention.end + between.size() + mention.value->value.size();
  }
  if (!rest.starts_with(" = ")) return mention.end;
  std::size_t end = mention.end + 3; // another spelling of the value, such as 1e-3
  while (end < text.size() && text[end] != ' ' && text[end] != ',' && text[end] != ':' && text[end] != ';') ++end;
  return end;
}

} // namespace

Annotated annotate(const Support& support, const std::vector<ResolvedValue>& values) {
  Annotated out{support.reason(), {}};
  std::vector<Mention> keys = mentions(out.text, values);
  // A flag or a default has no line: it leads only if no other key is named.
  auto lead = std::find_if(keys.begin(), keys.end(), [](const Mention& key) { return in_a_file(*key.value); });
  if (lead == keys.end()) {
    lead = std::find_if(keys.begin(), keys.end(), [](const Mention& key) { return key.value->origin == "--set"; });
  }
  const ResolvedValue* front = lead == keys.end() ? nullptr : lead->value;
  if (keys.empty()) front = named_plugin(out.text, values);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    if (key->value != front) out.text.insert(behind_value(out.text, *key), " (" + key->value->origin + ")");
  }
  if (front) {
    out.lead = front->key;
    out.text.insert(0, front->origin + ": ");
  }
  if (!support.hint().empty()) out.text.append("\n  ").append(support.hint());
  return out;
}

Refusal refusal(const Support& support, const std::vector<ResolvedValue>& values) {
  return {annotate(support, values).text};
}

} // namespace triax::config
