// SPDX-License-Identifier: Apache-2.0
#include "config/toml_error.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <vector>

#include "base/printable.hpp"
#include "triax/text.hpp"

namespace triax::config {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

/// Column of a byte in the line.
int column_of(std::string_view line, std::size_t byte) {
  int column = 1;
  for (std::string_view rest = line.substr(0, byte); !rest.empty(); ++column)
    rest.remove_prefix(std::max<std::size_t>(utf8_length(rest), 1));
  return column;
}

bool is_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

/// The name in a table header; empty if the line is not a header.
std::string_view table_of(std::string_view line) {
  line = trimmed(line);
  const std::size_t end = line.find(']');
  return line.starts_with('[') && end != std::string_view::npos ? trimmed(line.substr(1, end - 1)) : std::string_view();
}

/// Position after the closing quote of the string that `value` begins with.
std::optional<std::size_t> end_of_string(std::string_view value) {
  const char quote = value.front();
  for (std::size_t i = 1; i < value.size(); ++i) {
    if (value[i] == quote) return i + 1;
    if (value[i] == '\\' && quote == '"') ++i;
  }
  return std::nullopt;
}

/// The name without its quotes. Escapes stay as written.
std::string_view unquoted(std::string_view name) {
  const bool quoted = name.size() > 1 && (name.front() == '"' || name.front() == '\'') && name.back() == name.front();
  return quoted ? name.substr(1, name.size() - 2) : name;
}

/// "key = value # more" as written. The value is the rest of the line; `begin` is its first byte.
struct Pair {
  std::string_view key, value;
  std::size_t equals = 0, begin = 0;
};

/// A quoted key may contain "=".
std::optional<Pair> pair_of(std::string_view line) {
  const std::size_t first = std::min(line.find_first_not_of(" \t"), line.size());
  const bool quoted = first < line.size() && (line[first] == '"' || line[first] == '\'');
  const std::size_t behind = quoted ? end_of_string(line.substr(first)).value_or(line.size() - first) + first : first;
  const std::size_t equals = line.find('=', behind);
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view key = trimmed(line.substr(0, equals));
  if (quoted ? first + key.size() != behind : !is_key(key)) return std::nullopt;
  const std::string_view value = trimmed(line.substr(equals + 1));
  const std::size_t begin = value.empty() ? equals + 1 : static_cast<std::size_t>(value.data() - line.data());
  return Pair{key, value, equals, begin};
}

std::string lowered(std::string_view text) {
  std::string out;
  std::transform(text.begin(), text.end(), std::back_inserter(out),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

class TomlErrorLocator {
 public:
  TomlErrorLocator(std::string_view bytes, int line, int column, std::string_view reason)
      : error_{line, column, text("not valid TOML: {}", shortened(reason)), {}}, reason_(reason) {
    for (std::size_t begin = 0; begin <= bytes.size();) {
      const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
      lines_.push_back(bytes.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  TomlError read() {
    if (encoding()) return error_;
    line_ = error_.line > 0 && error_.line <= count() ? lines_[index()] : std::string_view();
    if (says("cannot redefine")) {
      twice();
    } else if (says("expected '='")) {
      no_equals();
    } else if (says("table header")) {
      header();
    } else if (const std::optional<Pair> pair = pair_of(line_);
               pair && error_.column > column_of(line_, pair->equals)) {
      value(*pair);
    }
    if (error_.hint.empty()) list();
    constexpr std::size_t kMax = 100; // longest line to show, in bytes
    if (error_.hint.empty() && !trimmed(line_).empty() && line_.size() <= kMax)
      error_.hint = text("it reads: {}", trimmed(line_));
    return error_;
  }

 private:
  int count() const { return static_cast<int>(lines_.size()); }
  std::size_t index() const { return static_cast<std::size_t>(error_.line - 1); }
  bool says(std::string_view words) const { return reason_.find(words) != std::string_view::npos; }
  void report(std::size_t byte, std::string_view what, std::string_view hint) {
    error_.column = column_of(line_, byte);
    error_.message = text("not valid TOML: {}", shortened(what));
    error_.hint = shortened(hint);
  }

  bool encoding() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::size_t good = 0;
      while (const std::size_t length = utf8_length(lines_[i].substr(good))) good += length;
      if (good == lines_[i].size()) continue;
      line_ = lines_[i];
      error_.line = static_cast<int>(i) + 1;
      const bool wide = i == 0 && (line_.starts_with("\xFF\xFE") || line_.starts_with("\xFE\xFF"));
      report(good, wide ? "the file is UTF-16, but TOML is UTF-8" : "invalid UTF-8", "save the file as UTF-8");
      return true;
    }
    return false;
  }

  /// A table or key that exists already. Spellings that this does not recognise keep the parser's message, except
  /// quoted names, which toml++ garbles.
  void twice() {
    if (says("'\"")) error_.message = "not valid TOML: a key is written twice";
    const std::string_view name = table_of(line_);
    if (!name.empty()) {
      for (std::size_t i = 0; i < index(); ++i) {
        if (unquoted(table_of(lines_[i])) == unquoted(name))
          return report(line_.find('['), text("[{}] is written twice, first in line {}", name, i + 1),
                        text("write its keys below line {}", i + 1));
      }
      return;
    }
    const std::optional<Pair> second = pair_of(line_);
    if (!second) return;
    for (std::size_t i = index(); i-- > 0 && table_of(lines_[i]).empty();) {
      const std::optional<Pair> first = pair_of(lines_[i]);
      if (first && unquoted(first->key) == unquoted(second->key))
        return report(line_.find(second->key), text("{} is written twice, first in line {}", second->key, i + 1),
                      "remove one of the two");
    }
  }

  void no_equals() {
    const std::string_view all = trimmed(line_.substr(0, line_.find('#')));
    const std::size_t colon = all.find(':');
    const std::string_view key = trimmed(all.substr(0, colon));
    if (!is_key(key)) return;
    if (colon == std::string_view::npos) {
      report(line_.find(key), text("{} has no value", key), text("write {} = VALUE, or remove the line", key));
    } else {
      report(line_.find(':'), text("{} needs = before its value, not :", key),
             text("write {} = {}", key, trimmed(all.substr(colon + 1))));
    }
  }

  void header() {
    const std::string_view all = trimmed(line_.substr(0, line_.find('#')));
    if (all.starts_with('[') && all.find(']') == std::string_view::npos && is_key(trimmed(all.substr(1))))
      report(line_.find('['), "the name of a table is not closed", text("write [{}]", trimmed(all.substr(1))));
  }

  /// An unclosed list is detected only at the next key or table, or at the end of the file.
  void list() {
    const bool item = table_of(line_).empty() && !pair_of(line_) && !trimmed(line_).empty();
    if (item) return;
    for (std::size_t i = std::min(index() + 1, lines_.size()); i-- > 0;) {
      const std::optional<Pair> pair = pair_of(lines_[i]);
      const bool next = i == index() && (!pair || !pair->value.starts_with('['));
      if (next) continue;
      if (lines_[i].find(']') != std::string_view::npos) return; // the list before is closed
      if (!pair) continue;
      if (!pair->value.starts_with('[')) return;
      error_.line = static_cast<int>(i) + 1;
      line_ = lines_[i];
      return report(pair->begin, text("the list of {} is not closed", pair->key), "write ] after its last item");
    }
  }

  void value(const Pair& pair) {
    if (pair.value.empty() || pair.value.starts_with('#')) {
      report(pair.begin, text("{} has no value", pair.key), text("write {} = VALUE, or remove the line", pair.key));
    } else if (pair.value.starts_with("\"\"\"") || pair.value.starts_with("'''")) {
      return; // multi-line string
    } else if (pair.value.starts_with('"') || pair.value.starts_with('\'')) {
      string(pair);
    } else if (!pair.value.starts_with('[') && !pair.value.starts_with('{')) {
      word(pair);
    }
  }

  void string(const Pair& pair) {
    const std::optional<std::size_t> end = end_of_string(pair.value);
    const char quote = pair.value.front();
    if (!end) {
      return report(pair.begin, text("the string of {} is not closed", pair.key),
                    text("write {} = {}{}", pair.key, pair.value, std::string(1, quote)));
    }
    const std::string_view inside = pair.value.substr(1, *end - 2);
    const std::size_t behind = pair.begin + *end;
    if (error_.column > column_of(line_, behind)) return more(pair.value.substr(0, *end), behind);
    if (quote != '"' || inside.find('\\') == std::string_view::npos) return;
    const bool plain = inside.find('\'') == std::string_view::npos;
    report(pair.begin, text("invalid escape in the string of {}", pair.key),
           plain ? text("write {} = '{}', where a \\ is a \\", pair.key, inside) : std::string("write each \\ twice"));
  }

  /// A value that is not a string, list or table: a number, a boolean, or a misspelled one.
  void word(const Pair& pair) {
    const std::string_view all = pair.value.substr(0, pair.value.find_first_of(" \t#,"));
    const std::size_t behind = pair.begin + all.size();
    if (error_.column > column_of(line_, behind)) return more(all, behind);
    const std::string small = lowered(all);
    const auto any_of = [&small](std::initializer_list<std::string_view> words) {
      return std::find(words.begin(), words.end(), small) != words.end();
    };
    if (any_of({"true", "yes", "on", "false", "no", "off"})) {
      const bool yes = any_of({"true", "yes", "on"});
      report(pair.begin, text("invalid value: {}", all), text("write {} = {}", pair.key, yes ? "true" : "false"));
    } else if (any_of({"none", "null", "nil"})) {
      report(pair.begin, text("invalid value: {}", all), text("leave {} out", pair.key));
    } else if (std::isdigit(static_cast<unsigned char>(all.front())) != 0 || all.find_first_of("+-.") == 0) {
      number(all, pair.begin);
    } else {
      report(pair.begin, text("invalid value: {}", all), text("a string has quotes: {} = \"{}\"", pair.key, all));
    }
  }

  void number(std::string_view all, std::size_t begin) {
    if (says("64 bits")) {
      report(begin, text("{} does not fit into 64 bits", all), "the largest integer is 9223372036854775807");
    } else {
      report(begin, text("invalid number: {}", all), "write numbers as 50, 1_000, 0.001, 1e-3");
    }
  }

  void more(std::string_view value, std::size_t behind) {
    const std::size_t at = std::min(line_.find_first_not_of(" \t", behind), line_.size());
    report(at, text("the value {} is followed by {}", value, trimmed(line_.substr(at))),
           "a line has one key and one value; a comment begins with #");
  }

  TomlError error_;
  std::string_view reason_;
  std::vector<std::string_view> lines_;
  std::string_view line_; // the line with the error
};

} // namespace

TomlError explain_toml_error(std::string_view bytes, int line, int column, std::string_view reason) {
  return TomlErrorLocator(bytes, line, column, reason).read();
}

} // namespace triax::config
